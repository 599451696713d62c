"""What is changed in the configuration that Ray writes for HAProxy, and who gives way to whom."""

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from rayapp.serve import haproxy_launch
from rayapp.serve.haproxy_launch import (
    LAST_GOOD,
    amend,
    prepare_file,
    read_record,
    taking_over,
    write_record,
)
from tests.running import until

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


BINARY = "/bin/haproxy"


@contextmanager
def running(config: Path, program: str = BINARY) -> Iterator[int]:
    """A process that looks like a HAProxy; its pid."""
    with subprocess.Popen([program, "-f", str(config)], executable=shutil.which("tail")) as process:
        while program.encode() not in Path(f"/proc/{process.pid}/cmdline").read_bytes():
            time.sleep(0.01)  # until it has become one
        yield process.pid
        process.kill()


def test_every_living_haproxy_of_the_stack_gives_way(tmp_path: Path) -> None:
    path, other = tmp_path / "b" / "haproxy.cfg", tmp_path / "a" / "haproxy.cfg"
    for config in (path, other):
        config.parent.mkdir()
        config.write_text(HEAD.format(folder=tmp_path))
    elsewhere = tmp_path / "haproxy.cfg"
    elsewhere.write_text("")
    arguments = ["-db", "-f", str(path)]
    assert taking_over(arguments, path, BINARY) == arguments, "there is none"
    with running(elsewhere), running(other, "/bin/editor"):
        assert taking_over(arguments, path, BINARY) == arguments, "of another stack, or none"
    with running(other) as first, running(path) as second:
        others = {first, second}
        made = taking_over(arguments, path, BINARY)
        assert (made[:4], {int(pid) for pid in made[4:]}) == ([*arguments, "-sf"], others)
        name = str(other.parent / haproxy_launch.SOCKET)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(name)
            listening.listen()
            assert taking_over(arguments, path, BINARY)[-2:] == ["-x", name]
        assert "-x" not in taking_over(arguments, path, BINARY), "the file of one that died"
        reload = [*arguments, "-sf", "77"]
        assert taking_over(reload, path, BINARY) == reload, "Ray knows the other one"
    assert taking_over(arguments, path, BINARY) == arguments, "they have ended"


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


REPLICAS = [f"SERVE_REPLICA--rayapp-search-{name}" for name in ("ab1", "cd2", "ef3", "gh4")]
BALANCED = """global
    maxconn 100
    nbthread 1
defaults
    mode http
    timeout connect 2s
    timeout client 5s
    timeout server 5s
    balance hdr(X-User-Id)
frontend http_frontend
    bind 127.0.0.1:{port}
    use_backend http-rayapp if TRUE
backend http-rayapp
{servers}
    # Where there is none
    server proxy 127.0.0.1:9 backup
"""
USERS = 300


@pytest.mark.process
def test_a_replica_more_or_less_moves_few_users(tmp_path: Path) -> None:
    """The installed command in the place of HAProxy: every user of the replica that went moves, and
    of the others hardly one."""
    with ExitStack() as stack:
        ports = {name: stack.enter_context(telling(name)) for name in REPLICAS}
        before = stack.enter_context(users_of(tmp_path / "before" / "front", ports))
        assert set(before.values()) == set(REPLICAS)
        gone = REPLICAS[1]
        left = {name: port for name, port in ports.items() if name != gone}
        after = stack.enter_context(users_of(tmp_path / "after" / "front", left))
        moved = {user for user in before if before[user] != after[user]}
        assert {user for user, name in before.items() if name == gone} <= moved
        assert len(moved) <= USERS / 3


@contextmanager
def telling(name: str) -> Iterator[int]:
    """A replica that answers with its name; its port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(name)))
            self.end_headers()
            self.wfile.write(name.encode())

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """HAProxy looks whether it listens and hangs up."""

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()


@contextmanager
def users_of(folder: Path, replicas: dict[str, int]) -> Iterator[dict[str, str]]:
    """Whom each user is sent to by `rayapp-haproxy` before these replicas."""
    folder.mkdir(parents=True)  # of its own: those of one folder give way to each other
    lines = [f"    server {name} 127.0.0.1:{port} check" for name, port in replicas.items()]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = folder / "haproxy.cfg"
    config.write_text(BALANCED.format(port=port, servers="\n".join(lines)))
    command = [str(Path(sys.executable).with_name("rayapp-haproxy")), "-db", "-f", str(config)]
    running = subprocess.Popen(command, env={"PATH": "/usr/bin:/bin"})
    try:
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False)
        until(lambda: client.get("/").status_code == 200, 20)
        yield {
            user: client.get("/", headers={"X-User-Id": user}).text
            for user in (f"user-{at}" for at in range(USERS))
        }
    finally:
        running.terminate()
        running.wait(10)
