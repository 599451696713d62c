"""What several places must agree on is defined once; a copy is found here before it drifts."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from rayapp.api.openapi import examples
from rayapp.assistant.tools.rules.definitions import MEMORY_TOOLS, TOOLS
from rayapp.wire.search import ScoreWeightsView

PACKAGE = Path(__file__).resolve().parents[2] / "rayapp"
# Names that stand for one thing wherever they are used.
SHARED_NAMES = ("MEMORY_TOOLS", "SortKey", "Language")


def definitions(name: str) -> Iterator[str]:
    """Modules that bind `name` at their top level."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body if name in text else []:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if isinstance(node, ast.AnnAssign):
                targets = [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                yield str(path.relative_to(PACKAGE))


@pytest.mark.parametrize("name", SHARED_NAMES)
def test_a_shared_name_is_bound_in_one_module(name: str) -> None:
    assert len(list(definitions(name))) == 1


def test_every_tool_of_ours_is_a_memory_tool() -> None:
    """What a memory tool answers is a memory already: kept again, it would confirm itself."""
    assert {tool.name for tool in TOOLS} | {"recall_memory"} <= MEMORY_TOOLS


def test_the_documented_weights_are_those_of_the_answer() -> None:
    shown = examples()["POST /api/memory/search"]["answer"]["results"][0]
    assert shown["score_summary"]["weights"].keys() == ScoreWeightsView.model_fields.keys()
