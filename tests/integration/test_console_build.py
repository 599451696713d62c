"""The console that is served is the one in `console/`, byte for byte."""

from pathlib import Path

import pytest

from jobs.build.console import BUILT, SOURCE, build

pytestmark = [pytest.mark.engine, pytest.mark.takes(30)]


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_build_makes_what_is_served(tmp_path: Path) -> None:
    build(SOURCE, tmp_path / "built")
    assert files(tmp_path / "built") == files(BUILT)
