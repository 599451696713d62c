"""The embedded engine on a full disk: what grows is refused, and nothing is opened."""

from pathlib import Path

import pytest

from rayapp.core.disk_space import DiskLimits, DiskSpace
from rayapp.core.errors import IndexDown
from rayapp.serve.engine_actor import GROWS, VectorEngineActor
from tests.support.index_points import SCHEMA

TIMEOUT_S = 30.0
NEVER_ENOUGH = DiskLimits(warn_bytes=1 << 62, min_bytes=1 << 62)


def full(folder: Path) -> DiskSpace:
    return DiskSpace(str(folder), NEVER_ENOUGH, lambda: (1 << 40, 0))


async def test_a_folder_is_not_opened_and_so_not_taken_for_broken(tmp_path: Path) -> None:
    actor = VectorEngineActor(str(tmp_path / "qdrant"), "memories", 60.0, NEVER_ENOUGH)
    with pytest.raises(IndexDown) as caught:
        await actor.call("open", (SCHEMA,), TIMEOUT_S)
    assert caught.value.code == "disk_full"
    assert "qdrant is full: free space on it" in caught.value.message
    assert not (tmp_path / "qdrant").exists()
    await actor.close()


async def test_an_open_one_answers_and_takes_nothing_new(tmp_path: Path) -> None:
    actor = VectorEngineActor(str(tmp_path / "qdrant"), "memories", 60.0)
    await actor.call("open", (SCHEMA,), TIMEOUT_S)
    actor._disk = full(tmp_path)
    assert (await actor.call("health", (), TIMEOUT_S)).ready
    for method in sorted(GROWS):
        with pytest.raises(IndexDown, match="is full"):
            await actor.call(method, ([],), TIMEOUT_S)
    actor._disk = DiskSpace("", DiskLimits(warn_bytes=0, min_bytes=0), None)
    await actor.call("upsert", ([],), TIMEOUT_S)
    await actor.close()
