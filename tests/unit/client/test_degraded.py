"""Every name that a service puts into `degraded` is explained."""

import ast
from collections.abc import Iterator
from pathlib import Path

from rayapp.assistant.context.service import SESSION
from rayapp.client.calls import SKIPPED, explained
from rayapp.index.write_barrier import IndexMonitor

PACKAGE = Path(__file__).resolve().parents[3] / "rayapp"


def named(tree: ast.AST) -> Iterator[str]:
    """The literal in `degrades="x"`, and the first one of `trace.degrade("x", …)`."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        given = [word.value for word in node.keywords if word.arg == "degrades"]
        if isinstance(node.func, ast.Attribute) and node.func.attr == "degrade":
            given += node.args[:1]
        for value in given:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.value


def test_every_name_has_a_sentence_and_every_sentence_a_name() -> None:
    names = {
        name
        for path in PACKAGE.rglob("*.py")
        for name in named(ast.parse(path.read_text(encoding="utf-8")))
    }
    watch = IndexMonitor(breaker=None)  # type: ignore[arg-type]  # only its flags are read
    watch.rebuilding = True
    names.add(str(watch.reason))
    watch.refused = True
    names.add(str(watch.reason))
    assert names | {SESSION} == set(SKIPPED)


def test_a_name_is_explained_once_and_an_unknown_one_is_still_said() -> None:
    lines = explained(["priors", "nova", "priors"])
    assert [line.split(": ")[1] for line in lines] == ["priors", "nova"]
    assert all(line.startswith("degraded: ") and line.endswith(".") for line in lines)
