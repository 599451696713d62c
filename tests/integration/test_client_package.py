"""`rayapp-client`, built and installed alone, stores and finds in a running service."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.running import RunningService
from tests.shell import printed

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.takes(45)]

LIMIT_S = 240
# What the client may bring along, with what that needs itself.
MOST_PACKAGES = 15
CALLS = """
import asyncio, json, sys
from rayapp.client import Memory, MemoryClient, SyncMemoryClient

url, user = sys.argv[1:]
with SyncMemoryClient(url, user_id=user) as client:
    stored = client.store(Memory(text="Dana parks on the second floor", tier="history"))
    found = client.search("where does Dana park?", limit=3)

async def judged():
    async with MemoryClient(url, user_id=user) as client:
        return await client.record_outcome("worked", receipt_id=found.receipt_id)

updated = [one.memory_id for one in asyncio.run(judged()).updated]
print(json.dumps({"stored": stored.memory_id, "found": found.ids, "updated": updated}))
"""


def run(command: Sequence[str | Path], folder: Path) -> str:
    """What the command printed, in a shell without our variables."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    kept |= {name: one for name, one in os.environ.items() if name.startswith(("PIP_", "UV_"))}
    return printed(command, folder, kept, LIMIT_S)


def test_the_client_alone_stores_finds_and_judges(service: RunningService, tmp_path: Path) -> None:
    built = [sys.executable, "-m", "jobs.build.client", "--out", tmp_path]
    run(built, Path(__file__).resolve().parents[2])
    (wheel,) = tmp_path.glob("*.whl")
    run([sys.executable, "-m", "venv", "alone"], tmp_path)
    python = tmp_path / "alone" / "bin" / "python"
    run([python, "-m", "pip", "install", "-q", wheel], tmp_path)
    packages = json.loads(run([python, "-m", "pip", "list", "--format", "json"], tmp_path))
    names = {one["name"] for one in packages}
    assert {"rayapp-client", "httpx", "pydantic", "orjson"} <= names
    assert "rayapp" not in names
    assert len(names) <= MOST_PACKAGES, names
    (tmp_path / "calls.py").write_text(CALLS, encoding="utf-8")
    seen = json.loads(run([python, "calls.py", service.url, "alone"], tmp_path))
    assert seen["found"][0] == seen["stored"]
    assert seen["updated"] == seen["found"]
