"""Archives on disk: what a death left goes later, what is being written stays."""

import errno
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rayapp.core.errors import StoreFull
from rayapp.portability.files import ABANDONED_S, UNFINISHED, ArchiveFiles

NAMES = [f"rayapp-export-2026-05-06T07-08-0{second}-000000Z.zip" for second in range(4)]


async def chunks() -> AsyncIterator[bytes]:
    yield b"PK"


def aged(folder: Path) -> tuple[Path, Path, Path]:
    """An old archive, one that a death left, and one that is written."""
    (whole,) = folder.rglob(NAMES[0])
    left, written = (whole.with_name(name + UNFINISHED) for name in NAMES[1:3])
    for path, age_s in ((left, ABANDONED_S + 5), (written, ABANDONED_S - 60), (whole, 1e7)):
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age_s,) * 2)
    return whole, left, written


@pytest.mark.parametrize("by", ["keep", "cleanup"])
async def test_what_a_death_left_goes_and_what_is_written_stays(tmp_path: Path, by: str) -> None:
    files = ArchiveFiles(tmp_path)
    await files.keep("דנה", NAMES[0], chunks())
    whole, left, written = aged(tmp_path)
    if by == "keep":
        await files.keep("דנה", NAMES[3], chunks())
    else:
        await files.cleanup("דנה", 1)
        await files.cleanup("noa", 1)  # who never kept one
    assert (left.exists(), written.exists(), whole.exists()) == (False, True, True)


async def test_all_go_where_their_folder_is_a_link(tmp_path: Path) -> None:
    """To another disk: what is in it goes, and the next archive is kept there again."""
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "users").symlink_to(other)
    files = ArchiveFiles(tmp_path)
    await files.keep("dana", NAMES[0], chunks())
    await files.erase_all()
    assert await files.kept("dana") == []
    assert not list(other.iterdir())
    await files.keep("dana", NAMES[1], chunks())
    assert len(await files.kept("dana")) == 1


async def test_one_that_goes_while_they_are_listed_hides_no_other(tmp_path: Path) -> None:
    files = ArchiveFiles(tmp_path)
    await files.keep("dana", NAMES[0], chunks())
    whole, *_ = aged(tmp_path)
    whole.with_name(NAMES[1]).symlink_to(tmp_path / "gone")
    assert [one.name for one in await files.kept("dana")] == [NAMES[0]]


async def test_a_full_disk_has_no_room_for_the_folder_of_a_new_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(StoreFull, match="There is no room"):
        await ArchiveFiles(tmp_path).keep("dana", NAMES[0], chunks())
