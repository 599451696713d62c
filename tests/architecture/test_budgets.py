"""Budgets that keep the code small: file, function and parameter counts, names, broad handlers."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((*(ROOT / "rayapp").rglob("*.py"), *(ROOT / "jobs").rglob("*.py")))
P95_LINES, MAX_LINES = 500, 800
# A module under so many lines that only one other imports belongs into that one.
SMALL_LINES, MOST_SMALL = 60, 10
MAX_FUNCTION_LINES = 80
MAX_PARAMETERS = 7
# Of a command of the command line: each parameter is an option with a name, nobody passes them by
# their place.
MAX_OPTIONS, COMMANDS = 10, ROOT / "rayapp" / "local" / "cli"
# Words that say nothing about what a file holds.
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "manager", "managers", "common", "misc"}


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


def lines(path: Path) -> int:
    return len(text_of(path).splitlines())


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_files_are_small() -> None:
    sizes = sorted(lines(path) for path in SOURCES)
    assert sizes[int(len(sizes) * 0.95)] <= P95_LINES
    assert sizes[-1] <= MAX_LINES


def imported_by(path: Path) -> Iterator[str]:
    """Modules that a file imports, by their whole names."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_few_small_modules_have_one_importer() -> None:
    importers: dict[str, set[Path]] = {}
    for path in SOURCES:
        for name in imported_by(path):
            importers.setdefault(name, set()).add(path)
    small = [
        module_of(path)
        for path in SOURCES
        if path.name not in {"__init__.py", "__main__.py"}
        and lines(path) < SMALL_LINES
        and len(importers.get(module_of(path), ())) == 1
    ]
    assert len(small) <= MOST_SMALL, small


def too_big(
    node: ast.FunctionDef | ast.AsyncFunctionDef, parameters: int = MAX_PARAMETERS
) -> Iterator[str]:
    """Which limits a function breaks."""
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    if length > MAX_FUNCTION_LINES:
        yield f"{length} lines"
    arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    total = sum(argument.arg not in {"self", "cls"} for argument in arguments)
    if total > parameters:
        yield f"{total} parameters"


def test_functions_are_small() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {node.name} has {what}"
        for path in SOURCES
        for node in functions(path)
        for what in too_big(node, MAX_OPTIONS if path.parent == COMMANDS else MAX_PARAMETERS)
    ]
    assert found == []


def test_a_big_function_would_be_found() -> None:
    long = "def long():\n" + "    pass\n" * MAX_FUNCTION_LINES
    wide = f"def wide(self, {', '.join(f'a{n}' for n in range(MAX_PARAMETERS + 1))}): ..."
    good = f"def good(self, {', '.join(f'a{n}' for n in range(MAX_PARAMETERS))}): ..."
    made = [ast.parse(source).body[0] for source in (long, wide, good)]
    assert [list(too_big(node)) for node in made if isinstance(node, ast.FunctionDef)] == [
        [f"{MAX_FUNCTION_LINES + 1} lines"],
        [f"{MAX_PARAMETERS + 1} parameters"],
        [],
    ]


def test_file_names_say_what_is_inside() -> None:
    assert not [path for path in SOURCES if path.stem in EMPTY_NAMES]


def test_every_broad_handler_gives_its_reason() -> None:
    """On its line or the one above; ruff refuses those that neither raise nor explain."""
    broad = re.compile(r"except Exception\b.*:|except:")
    for path in SOURCES:
        text = text_of(path).splitlines()
        for number, line in enumerate(text):
            if broad.search(line):
                assert "#" in line + text[number - 1], f"{path.name}:{number + 1} needs a reason"


def test_every_public_module_says_what_it_is_for() -> None:
    for path in SOURCES:
        tree = tree_of(path)
        if tree.body:
            assert ast.get_docstring(tree), f"{path} has no docstring"
