"""The integrations of `examples`: the real packages, apart from ours, at the running service."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.running import RunningService

pytestmark = [pytest.mark.ray, pytest.mark.engine]
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
MOST_LINES = 15
LIMIT_S = 300.0
USER = "int-frameworks"
STORED = ("דנה עברה לחיפה במאי", "Omer plays the cello")
QUESTION = "לאן עברה דנה?"
BEGIN = """
import asyncio, json, sys
from rayapp.client import MemoryClient, SyncMemoryClient
url, user, question = sys.argv[1:]
"""
# How each is used; the last line prints what was found, best first.
USED = {
    "langgraph_node": """
from examples.langgraph_node import recalling

async def main():
    async with MemoryClient(url, user_id=user) as memory:
        state = await recalling(memory).ainvoke({"question": question})
    assert state["question"] == question
    print(json.dumps([{"text": text} for text in state["memories"]]))

asyncio.run(main())
""",
    "langchain_retriever": """
from examples.langchain_retriever import MemoryRetriever

with SyncMemoryClient(url, user_id=user) as memory:
    found = MemoryRetriever(memory=memory).invoke(question)
print(json.dumps([{"text": d.page_content, "id": d.id, "tier": d.metadata["tier"]} for d in found]))
""",
    "llamaindex_retriever": """
from examples.llamaindex_retriever import MemoryRetriever

with SyncMemoryClient(url, user_id=user) as memory:
    found = MemoryRetriever(memory).retrieve(question)
print(json.dumps([{"text": n.text, "id": n.node_id, "score": n.score} for n in found]))
""",
}


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that knows the packages at their exact versions, and nothing of ours."""
    folder = tmp_path_factory.mktemp("integrations")
    said = run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    assert said == ""
    found = folder / "bin" / "python"
    run(
        sys.executable, "-m", "pip", "--python", str(found), "install", "--quiet", "--no-deps",
        "--no-compile", "--disable-pip-version-check", "-r", str(EXAMPLES / "requirements.txt"),
    )  # fmt: skip
    return found


@pytest.fixture(scope="module")
def ids(service: RunningService) -> dict[str, str]:
    """The stored memories by their text."""
    with service.client(USER) as http:
        return {
            text: http.post("/api/memory/store", json={"text": text, "tier": "history"}).json()[
                "memory_id"
            ]
            for text in STORED
        }


def run(*command: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=env
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", USED)
def test_it_finds_what_the_user_told(
    python: Path, service: RunningService, ids: dict[str, str], name: str
) -> None:
    said = run(str(python), "-c", BEGIN + USED[name], service.url, USER, QUESTION)
    found: list[dict[str, Any]] = json.loads(said)
    assert found[0]["text"] == STORED[0]
    assert found[0].get("id", ids[STORED[0]]) == ids[STORED[0]]


@pytest.mark.parametrize("name", USED)
def test_it_is_short(name: str) -> None:
    """Lines of code, imports included."""
    tree = ast.parse((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"))
    lines = {
        line
        for node in tree.body
        if not isinstance(node, ast.Expr)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").splitlines()
    code = [text[line - 1] for line in lines if text[line - 1].strip()]
    assert len(code) < MOST_LINES, len(code)
