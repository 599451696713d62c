"""What is changed in the configuration that Ray writes for HAProxy, and who gives way to whom."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rayapp.serve import haproxy_launch
from rayapp.serve.haproxy_launch import (
    LAST_GOOD,
    amend,
    prepare_file,
    read_record,
    started_at,
    taking_over,
    write_record,
)

ANSWER = Path("/run/starting.http")
HEAD = """global
    stats socket {folder}/admin.sock mode 666 level admin expose-fd listeners
defaults
    mode http
    timeout client 3600s
    errorfile 502 /x/500.http
    errorfile 503 /x/500.http
    errorfile 504 /x/500.http
frontend http_frontend
    bind 127.0.0.1:8000
"""
TAIL = """    default_backend default_backend
backend default_backend
    http-request return status 404 content-type text/plain lf-string "Path not found."
listen stats
  bind *:8404
"""
EMPTY = HEAD + TAIL
FULL = HEAD + "    use_backend http-rayapp if is_http-rayapp\n" + TAIL


def test_every_error_of_haproxy_is_our_answer() -> None:
    lines = [line.split() for line in amend(EMPTY, ANSWER).splitlines() if "errorfile " in line]
    assert lines == [["errorfile", code, str(ANSWER)] for code in ("502", "503", "504")]


def test_an_unknown_route_is_no_404_and_the_rest_stays() -> None:
    made = amend(EMPTY, ANSWER)
    assert "status 404" not in made
    assert made.endswith(
        "backend default_backend\n    http-request return status 503 default-errorfiles\n"
        "listen stats\n  bind *:8404\n"
    )


def test_a_path_that_no_known_route_serves_is_not_found() -> None:
    """Waiting brings no route for it, so nobody is told to come again."""
    assert "status 404" in amend(FULL, ANSWER)


def test_a_header_has_a_limit_once_whatever_ray_says() -> None:
    given = EMPTY.replace("    mode http\n", "    mode http\n    timeout http-request 90s\n")
    for config in (EMPTY, given, amend(EMPTY, ANSWER)):
        assert [line for line in amend(config, ANSWER).splitlines() if "http-request 5s" in line]
        assert amend(config, ANSWER).count("timeout http-request") == 1


def test_replicas_hear_who_asks() -> None:
    assert amend(amend(FULL, ANSWER), ANSWER).count("option forwardfor") == 1


def test_amending_twice_changes_nothing() -> None:
    assert amend(amend(FULL, ANSWER), ANSWER) == amend(FULL, ANSWER)


def test_a_start_without_backends_keeps_those_of_the_last_one(tmp_path: Path) -> None:
    path = tmp_path / "haproxy.cfg"
    for written, kept in ((EMPTY, EMPTY), (FULL, FULL), (EMPTY, FULL)):
        path.write_text(written)
        prepare_file(path, ANSWER)
        assert path.read_text() == amend(kept, ANSWER)
    assert (tmp_path / LAST_GOOD).read_text() == amend(FULL, ANSWER)


@pytest.fixture
def other() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for another HAProxy."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process
    process.kill()
    process.wait()


def recorded(folder: Path, pid: int) -> None:
    haproxy_launch.replace(folder / haproxy_launch.RECORD, f'[{pid}, "{started_at(pid)}", 1, "0"]')


def test_a_living_haproxy_gives_way(tmp_path: Path, other: subprocess.Popen[bytes]) -> None:
    path = tmp_path / "haproxy.cfg"
    path.write_text(HEAD.format(folder=tmp_path))
    arguments = ["-db", "-f", str(path)]
    assert taking_over(arguments, path) == arguments, "there is none"
    recorded(tmp_path, other.pid)
    assert taking_over(arguments, path) == [*arguments, "-sf", str(other.pid)]
    reload = [*arguments, "-sf", "77"]
    assert taking_over(reload, path) == reload, "Ray knows the other one"
    other.kill()
    other.wait()
    assert taking_over(arguments, path) == arguments, "it has ended"


def test_a_pid_with_another_owner_is_not_taken_for_ours(tmp_path: Path) -> None:
    path = tmp_path / "haproxy.cfg"
    path.write_text(HEAD.format(folder=tmp_path))
    haproxy_launch.replace(tmp_path / haproxy_launch.RECORD, f'[{os.getpid()}, "1", 1, "0"]')
    assert taking_over(["-f", str(path)], path) == ["-f", str(path)]


def test_a_record_says_who_runs(tmp_path: Path) -> None:
    write_record(tmp_path)
    record = read_record(tmp_path)
    assert record is not None
    assert (record.pid, record.parent) == (os.getpid(), os.getppid())
    assert haproxy_launch.alive(record.pid, record.started)


@pytest.mark.parametrize("text", ["", "[1, 2]", "{}", "no json"])
def test_a_record_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / haproxy_launch.RECORD).write_text(text)
    assert read_record(tmp_path) is None


def test_an_unknown_configuration_starts_as_it_is(tmp_path: Path) -> None:
    """Ray sees what HAProxy itself says about it."""
    command = [sys.executable, "-IS", haproxy_launch.__file__, "/bin/echo", str(ANSWER)]
    arguments = ["-db", "-f", str(tmp_path / "none.cfg")]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.split() == arguments


def test_a_backend_limits_what_its_backup_holds() -> None:
    section = (
        "backend http-rayapp\n    log global\n    server one 127.0.0.1:1 check\n"
        "    server two 127.0.0.1:2 check\n    server held 127.0.0.1:3 check backup\n"
    )
    made = amend(FULL + section, ANSWER)
    assert [line.strip() for line in made.splitlines() if "acl served" in line] == [
        "acl served srv_is_up(http-rayapp/one)",
        "acl served srv_is_up(http-rayapp/two)",
    ]
    assert made.index("unless served") < made.index("server one")
    assert made.count("unless served") == 1
    assert amend(made, ANSWER) == made


def test_a_backend_without_replicas_holds_no_longer() -> None:
    section = "backend http-rayapp\n    log global\n    server held 127.0.0.1:3 check backup\n"
    made = amend(FULL + section, ANSWER)
    assert "    http-request set-timeout server 8s\n" in made
    assert "served" not in made
