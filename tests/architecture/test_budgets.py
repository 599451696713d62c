"""Budgets that keep the code small: file, function and parameter counts, names, broad handlers."""

from __future__ import annotations

import ast
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((*(ROOT / "rayapp").rglob("*.py"), *(ROOT / "jobs").rglob("*.py")))
MEDIAN_LINES, P95_LINES, MAX_LINES = 150, 400, 600
MAX_FUNCTION_LINES = 80
MAX_PARAMETERS = 7
# Words that say nothing about what a file holds.
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "manager", "managers", "common", "misc"}


def lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_files_are_small() -> None:
    sizes = sorted(lines(path) for path in SOURCES)
    assert statistics.median(sizes) <= MEDIAN_LINES
    assert sizes[int(len(sizes) * 0.95)] <= P95_LINES
    assert sizes[-1] <= MAX_LINES


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))
def test_functions_are_small(path: Path) -> None:
    for node in functions(path):
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        assert length <= MAX_FUNCTION_LINES, f"{node.name} has {length} lines"
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        total = sum(argument.arg not in {"self", "cls"} for argument in arguments)
        assert total <= MAX_PARAMETERS, f"{node.name} has {total} parameters"


def test_file_names_say_what_is_inside() -> None:
    assert not [path for path in SOURCES if path.stem in EMPTY_NAMES]


def test_every_broad_handler_gives_its_reason() -> None:
    """On its line or the one above; ruff refuses those that neither raise nor explain."""
    broad = re.compile(r"except Exception\b.*:|except:")
    for path in SOURCES:
        text = path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(text):
            if broad.search(line):
                assert "#" in line + text[number - 1], f"{path.name}:{number + 1} needs a reason"


def test_every_public_module_says_what_it_is_for() -> None:
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if tree.body:
            assert ast.get_docstring(tree), f"{path} has no docstring"
