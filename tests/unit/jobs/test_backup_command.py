"""The command of backups, where it cannot do what it is asked: one sentence and exit code 2."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from jobs import backup
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.portability.backup import BackupService


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Of a stack whose database nobody runs: nothing gets that far."""
    mongo = {"uri": "mongodb://127.0.0.1:9/"}
    made = load_settings(env={}, overrides={"data": {"dir": str(tmp_path)}, "mongo": mongo})
    monkeypatch.setattr(backup, "attached", lambda folder: made)
    monkeypatch.setenv("COLUMNS", "400")
    return made


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert backup.main(arguments) == 2
    (line,) = capsys.readouterr().out.splitlines()
    return line


@pytest.mark.parametrize("keep", ["0", "-1"])
def test_a_cleanup_never_removes_every_backup(
    keep: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "backups" / "rayapp-backup-2026-05-01T12-00-00-000000Z.zip"
    kept.parent.mkdir()
    kept.touch()
    assert "use 1 or more" in refused(capsys, "cleanup", "--keep", keep)
    assert kept.exists()


def test_a_key_in_a_folder_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = tmp_path / "missing" / "new.key"
    said = refused(capsys, "keygen", str(key))
    assert said == f"{key} cannot be used (No such file or directory): name another place."


def test_backups_into_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    said = refused(capsys, "create", "--to", str(tmp_path / "file"))
    assert said == f"{tmp_path / 'file'} cannot be used (File exists): name another place."


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_check_that_is_stopped_ends_in_a_sentence_after_its_drop(
    sent: signal.Signals,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    dropped: list[str] = []
    # A program that a shell starts in the background is told to ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))

    async def verify(self: BackupService, name: str) -> None:
        try:
            os.kill(os.getpid(), sent)
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            dropped.append(name)

    monkeypatch.setattr(BackupService, "verify", verify)
    assert backup.main(["verify", "one"]) == 3
    assert dropped == ["one"]
    said = capsys.readouterr()
    assert (said.out, said.err) == ("`verify` was stopped before its end: run it again.\n", "")


def test_backups_are_listed_without_a_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(backup, "attached")
    monkeypatch.delenv("MONGODB_URI", raising=False)
    kept = tmp_path / "backups" / "rayapp-backup-2026-05-01T12-00-00-000000Z.zip"
    kept.parent.mkdir()
    kept.touch()
    assert backup.main(["list", "--data-dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{kept.name}  0 bytes\n1 backups ({kept.parent})\n"
