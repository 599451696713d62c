"""The real HAProxy with Ray's own configuration: slow headers, no backends, and its death."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from rayapp.api.errors import error_body
from rayapp.core.errors import DependencyDown
from rayapp.local.stack import programs
from rayapp.local.stack.front import CONFIG, Front, is_served
from rayapp.local.stack.paths import StackPaths
from rayapp.local.stack.processes import members, stop_all
from rayapp.local.stack.stack import down
from rayapp.serve import haproxy_launch
from tests.running import until
from tests.support.ports import free_port

pytestmark = [pytest.mark.ray, pytest.mark.fault]
# Starts HAProxy as Ray's manager does, prints nothing, and lives until it is killed.
MANAGER = "import subprocess, sys; subprocess.Popen(sys.argv[1:]); sys.stdin.read()"


class Proxy:
    """The files of one manager, written by Ray's code, and the HAProxy that is started on them."""

    def __init__(self, folder: Path) -> None:
        self.paths = StackPaths.of(folder)
        self.paths.create()
        haproxy = programs.find_haproxy()
        assert haproxy is not None
        self.front = Front(self.paths, haproxy)
        self.front.write()
        self.folder = self.paths.sockets / "node"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        from ray.serve._private.haproxy import HAProxyApi, HAProxyConfig
        from ray.serve.config import HTTPOptions

        config = HAProxyConfig(
            socket_path=str(self.folder / "admin.sock"),
            server_state_base=str(self.folder),
            server_state_file=str(self.folder / "server-state"),
            metrics_socket_path=str(self.folder / "metrics.sock"),
            http_options=HTTPOptions(host="127.0.0.1", port=self.port),
            metrics_port=free_port(),
            stats_port=free_port(),
            has_received_routes=True,
            is_head=True,
        )
        self.api = HAProxyApi(config, config_file_path=str(self.folder / CONFIG))
        self.command = [str(self.front.launcher), "-db", "-f", str(self.folder / CONFIG), "-dR"]
        self.managers: list[subprocess.Popen[bytes]] = []

    def written(self, backend_port: int | None = None) -> None:
        """The configuration as Ray writes it, with one server or none."""
        from ray.serve._private.haproxy import BackendConfig, ServerConfig

        servers = [ServerConfig(name="one", host="127.0.0.1", port=backend_port or 0)]
        backend = BackendConfig(name="http-app", path_prefix="/", app_name="app", servers=servers)
        self.api.set_backend_configs({"http-app": backend} if backend_port else {})
        self.api._generate_config_file_internal()

    def manager(self) -> subprocess.Popen[bytes]:
        """A process that starts HAProxy; returns when that answers."""
        manager = subprocess.Popen(
            [sys.executable, "-c", MANAGER, *self.command],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self.managers.append(manager)
        until(lambda: self.record().parent == manager.pid and self.answers())
        return manager

    def record(self) -> haproxy_launch.Record:
        record = haproxy_launch.read_record(self.folder)
        return record or haproxy_launch.Record(0, "", 0, "")

    def answers(self) -> bool:
        return httpx.get(f"{self.url}/x").status_code > 0

    def end(self) -> None:
        stop_all(members(self.paths.stack_id), wait_s=1.0)
        for manager in self.managers:
            manager.kill()
            manager.wait()
        record = self.record()
        if haproxy_launch.alive(record.pid, record.started):
            os.kill(record.pid, signal.SIGKILL)
        down(self.paths.data)


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    made = Proxy(tmp_path)
    yield made
    made.end()


@pytest.fixture
def backend() -> Iterator[int]:
    """The port of a server that answers 200."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_without_a_backend_a_route_is_not_yet_there(proxy: Proxy) -> None:
    """404 would be final for a client: the same 503 as from a replica that starts."""
    proxy.written()
    proxy.manager()
    answer = httpx.get(f"{proxy.url}/api/memory/stats")
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) >= 1
    starting = DependencyDown("The service is still starting; try again.", code="starting")
    assert answer.json() == json.loads(json.dumps(error_body(starting)))


def test_a_dead_backend_is_a_503_too(proxy: Proxy) -> None:
    proxy.written(free_port())
    proxy.manager()
    answer = httpx.get(f"{proxy.url}/api/memory/stats")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")


def test_half_a_request_header_is_not_held_open(proxy: Proxy, backend: int) -> None:
    proxy.written(backend)
    proxy.manager()
    with socket.create_connection(("127.0.0.1", proxy.port)) as slow:
        slow.settimeout(4 * haproxy_launch.HEADER_LIMIT_S)
        slow.sendall(b"GET /api/memory/stats HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        begun = time.monotonic()
        assert slow.recv(100).startswith(b"HTTP/1.1 408")
        while slow.recv(4096):
            pass
        assert time.monotonic() - begun < 3 * haproxy_launch.HEADER_LIMIT_S


def test_a_killed_haproxy_is_back_and_gives_way_to_the_next(proxy: Proxy, backend: int) -> None:
    proxy.written(backend)
    manager = proxy.manager()
    until(lambda: httpx.get(f"{proxy.url}/x").status_code == 200)
    assert proxy.front.look() is None, "it runs"
    os.kill(proxy.record().pid, signal.SIGKILL)
    seen: list[int] = []

    def stood_in() -> bool:
        seen.extend(pid for pid in [proxy.front.look()] if pid is not None)
        return bool(seen)

    until(stood_in)
    assert manager.wait() == -signal.SIGKILL, "it would never reload the one that stands in"
    until(lambda: httpx.get(f"{proxy.url}/x").status_code == 200)
    assert proxy.record().pid == seen[0]
    # The next manager has heard of no backends yet.
    proxy.written()
    proxy.manager()
    assert httpx.get(f"{proxy.url}/x").status_code == 200
    assert proxy.record().pid != seen[0]
    until(lambda: not haproxy_launch.started_at(seen[0]))
    assert proxy.front.look() is None


def test_a_haproxy_whose_manager_died_gives_way_to_the_next(proxy: Proxy, backend: int) -> None:
    proxy.written(backend)
    manager = proxy.manager()
    first = proxy.record()
    manager.kill()
    manager.wait()
    assert proxy.front.look() is None, "HAProxy serves on"
    proxy.manager()
    until(lambda: not haproxy_launch.alive(first.pid, first.started))
    until(lambda: httpx.get(f"{proxy.url}/x").status_code == 200)


def test_a_haproxy_that_died_with_its_manager_is_back(proxy: Proxy, backend: int) -> None:
    proxy.written(backend)
    manager = proxy.manager()
    manager.kill()
    manager.wait()
    os.kill(proxy.record().pid, signal.SIGKILL)
    until(lambda: proxy.front.look() is not None)
    until(lambda: httpx.get(f"{proxy.url}/x").status_code == 200)
    # It dies as well: there is nobody to end now, least of all this process.
    os.kill(proxy.record().pid, signal.SIGKILL)
    until(lambda: proxy.front.look() is not None)
    until(lambda: httpx.get(f"{proxy.url}/x").status_code == 200)


def test_while_ray_starts_again_there_is_an_answer(proxy: Proxy, backend: int) -> None:
    proxy.written(backend)
    proxy.manager()
    until(lambda: httpx.get(f"{proxy.url}/x").status_code == 200)
    pid = proxy.front.wait_for_ray("127.0.0.1", proxy.port)
    until(lambda: httpx.get(f"{proxy.url}/x").status_code == 503)
    proxy.front.write()  # as every start of Ray does
    proxy.folder.mkdir()
    answer = httpx.get(f"{proxy.url}/api/memory/stats")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert not is_served("127.0.0.1", proxy.port, "/healthz", 5.0)
    proxy.written(backend)
    proxy.manager()
    until(lambda: httpx.get(f"{proxy.url}/x").status_code == 200)
    assert is_served("127.0.0.1", proxy.port, "/healthz", 5.0)
    until(lambda: not haproxy_launch.started_at(pid))
    assert proxy.front.look() is None, "the one that gave way is not missed"


def test_after_a_start_that_failed_the_next_one_takes_over(proxy: Proxy, backend: int) -> None:
    """Its record was written over: the HAProxy that stands in kept the port for ever."""
    proxy.front.wait_for_ray("127.0.0.1", proxy.port)
    until(proxy.answers)
    proxy.written(backend)
    with socket.create_server(("", proxy.api.cfg.metrics_port)):
        failing = subprocess.run(proxy.command, capture_output=True, text=True)
    assert "cannot bind" in failing.stderr
    pid = proxy.front.wait_for_ray("127.0.0.1", proxy.port)
    proxy.manager()
    until(lambda: httpx.get(f"{proxy.url}/x").status_code == 200)
    until(lambda: not haproxy_launch.started_at(pid))


def test_one_whose_folder_is_gone_gives_way(proxy: Proxy, backend: int) -> None:
    """Every start of Ray clears the folders of the last one."""
    proxy.written(backend)
    proxy.manager()
    first = proxy.record()
    proxy.front.write()
    proxy.folder.mkdir()
    proxy.written(backend)
    proxy.manager()
    until(lambda: not haproxy_launch.alive(first.pid, first.started))
    until(lambda: httpx.get(f"{proxy.url}/x").status_code == 200)


def test_what_stands_in_ends_with_the_stack(proxy: Proxy) -> None:
    pid = proxy.front.wait_for_ray("127.0.0.1", proxy.port)
    until(proxy.answers)
    proxy.front.stop()
    assert not haproxy_launch.started_at(pid)


def test_a_search_is_asked_again_when_its_replica_dies_and_a_store_is_not(proxy: Proxy) -> None:
    """Nobody knows what became of the store: its client repeats it with its idempotency key."""
    asked: Counter[str] = Counter()

    class Dying(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked[self.path] += 1
            if asked[self.path] == 1:
                self.close_connection = True
                return
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Dying) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        proxy.written(server.server_address[1])
        proxy.manager()
        until(lambda: httpx.get(f"{proxy.url}/x").status_code == 200)
        assert httpx.post(f"{proxy.url}/api/memory/search", json={}).status_code == 200
        assert httpx.post(f"{proxy.url}/api/memory/store", json={}).status_code == 503
        server.shutdown()
    assert asked == {"/api/memory/search": 2, "/api/memory/store": 1}


@pytest.mark.parametrize("replica", [True, False], ids=["dead", "none"])
def test_what_no_replica_answers_is_not_waited_for(proxy: Proxy, replica: bool) -> None:
    """Serve's own proxy would hold a request for as long as there is no replica."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        proxy.written(free_port())
        text = (proxy.folder / CONFIG).read_text()
        port = silent.getsockname()[1]
        config = text.replace(
            "listen stats", f"    server held 127.0.0.1:{port} backup\nlisten stats"
        )
        if not replica:
            config = re.sub(r"\n    server one .*", "", config)
        (proxy.folder / CONFIG).write_text(config)
        proxy.manager()
        begun = time.monotonic()
        answer = httpx.get(f"{proxy.url}/x", timeout=4 * haproxy_launch.HOLD_S)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert time.monotonic() - begun < 3 * haproxy_launch.HOLD_S
