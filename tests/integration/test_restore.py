"""A lost machine: the README's two commands on an empty one, as processes."""

import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.running import SETTLE_S, RunningService
from tests.shell import typed
from tests.support.ports import free_port

pytestmark = [pytest.mark.ray, pytest.mark.engine, pytest.mark.takes(45)]
ROOT = Path(__file__).resolve().parents[2]
HEADING = "Yesterday's backup on an empty machine:"
DANA, NOA = "dana-restored", "noa-restored"
WORDS = {DANA: "Dana keeps the spare key under the blue pot", NOA: "נועה גרה ליד הנמל של חיפה"}


def commands() -> list[str]:
    """Of the README, below the heading."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").split(HEADING)[1]
    block = re.search(r"^```\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert block is not None
    return block[1].splitlines()


@pytest.fixture
def empty() -> Iterator[Path]:
    """The home of an empty machine; what was started there ends with it."""
    # A short folder: unix sockets below it have at most 107 bytes.
    with tempfile.TemporaryDirectory(prefix="rayapp-t-") as name:
        yield Path(name)
        typed("rayapp down", Path(name))


def found(url: str, user: str) -> list[str]:
    with httpx.Client(base_url=url, headers={"X-User-Id": user}, timeout=20) as http:
        body = {"query": WORDS[user], "limit": 3}
        answer = http.post("/api/memory/search", json=body)
    return [hit["content"] for hit in answer.json()["results"]] if answer.is_success else []


def test_yesterdays_backup_comes_back_with_two_commands(
    service: RunningService, tmp_path: Path, empty: Path
) -> None:
    for user, text in WORDS.items():
        with service.client(user) as http:
            assert http.post("/api/memory/store", json={"text": text}).is_success
    plain, sealed, keys = (tmp_path / name for name in ("plain", "sealed", "keys"))
    job = f"rayapp job --data-dir {service.folder} backup create"
    for line in (f"{job} --dir {plain}", f"{job} --dir {sealed} --user-keys {keys}"):
        made = typed(line, tmp_path)
        assert made.returncode == 0, made.stdout + made.stderr

    port = str(free_port())
    lines = [
        line.replace(".venv/bin/", "").replace("/mnt/backups", str(plain)) for line in commands()
    ]
    assert len(lines) == 2
    for line in lines:
        done = typed(line, empty, RAYAPP_HTTP__PORT=port)
        assert done.returncode == 0, done.stdout + done.stderr
    url, until = f"http://127.0.0.1:{port}", time.monotonic() + SETTLE_S
    while {user: found(url, user)[:1] for user in WORDS} != {u: [t] for u, t in WORDS.items()}:
        assert time.monotonic() < until, {user: found(url, user) for user in WORDS}
        time.sleep(0.5)

    # An erasure on the machine that is lost now, and its sealed backup of before.
    with service.client(DANA) as http:
        assert http.delete("/api/memory/user", params={"confirm": "DELETE"}).json()["complete"]
    again = typed(f"{job} --dir {tmp_path / 'newer'} --user-keys {keys}", tmp_path)
    assert again.returncode == 0, again.stdout + again.stderr
    restore = f"rayapp job backup restore --dir {sealed} --replace DELETE"
    refused = typed(restore, empty)
    assert (refused.returncode, "--user-keys" in refused.stdout) == (2, True), refused.stdout
    done = typed(f"{restore} --user-keys {keys}", empty)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rows of users who were erased since are unreadable" in done.stdout
    assert "start the service anew" in done.stdout
    with httpx.Client(base_url=url, timeout=20) as http:
        lists = {
            user: http.get("/api/memory/search", headers={"X-User-Id": user}).json()["memories"]
            for user in WORDS
        }
    assert {user: len(items) for user, items in lists.items()} == {DANA: 0, NOA: 1}
