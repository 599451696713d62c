"""Puts a HAProxy that died back at once; Ray alone needs half a minute (decision 0045)."""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from rayapp.local.stack.paths import StackPaths, write_private
from rayapp.local.stack.processes import http_get, mark_of, spawn
from rayapp.serve import haproxy_launch

CONFIG = "haproxy.cfg"
WAITING_FOLDER = "waiting"
# A HAProxy that cannot start is not tried more often.
AGAIN_S = 1.0
# One that answers nothing else, while Ray starts again.
WAITING = """global
    stats socket {socket} mode 600 level admin expose-fd listeners
    nbthread 1
defaults
    mode http
    timeout client 30s
    errorfile 503 {answer}
frontend http_frontend
    bind {host}:{port}
    default_backend default_backend
backend default_backend
    http-request return status 503 default-errorfiles
"""


def is_served(host: str, port: int, path: str, timeout_s: float) -> bool:
    """True when the application has answered a GET, even with an error of its own."""
    answer = http_get(host, port, path, timeout_s)
    # Serve's proxy says 500 for ever once its cluster is gone.
    return answer is not None and answer.status != 500 and not answer.getheader(haproxy_launch.FROM)


class Front:
    """The HAProxies of one stack, seen by the supervisor."""

    def __init__(self, paths: StackPaths, haproxy: Path) -> None:
        self._paths = paths
        self._haproxy = haproxy
        # What Ray starts as its HAProxy, and what that gives away.
        self.launcher = paths.sockets / "haproxy"
        self._answer = paths.sockets / haproxy_launch.ANSWER_FILE
        self._started: list[subprocess.Popen[bytes]] = []
        self._again_at = 0.0

    @property
    def holds(self) -> frozenset[str]:
        """Names of the ports that a HAProxy of this stack has, which gives way to the next one."""
        found = haproxy_launch.living(self._paths.sockets, str(self._haproxy))
        whole = any(config.parent.name != WAITING_FOLDER for _, config in found)
        return frozenset({"haproxy_metrics", "haproxy_stats"}) if whole else frozenset()

    def write(self) -> None:
        """The files, and none of an earlier Ray; before Ray starts."""
        for config in self._paths.sockets.glob(f"*/{CONFIG}"):
            if config.parent.name != WAITING_FOLDER:
                shutil.rmtree(config.parent, ignore_errors=True)
        self._answer.write_bytes(haproxy_launch.ANSWER)
        program = [sys.executable, "-IS", haproxy_launch.__file__, self._haproxy, self._answer]
        write_private(self.launcher, f'#!/bin/sh\nexec {shlex.join(map(str, program))} "$@"\n')
        self.launcher.chmod(0o700)

    def look(self) -> int | None:
        """The pid that stands in for a HAProxy that has died; None when there was nothing to do.

        Ray's manager keeps a handle on the dead one and would never reload the new one, so it goes
        too: Serve starts another manager, whose HAProxy takes over from the one started here.
        """
        now = time.monotonic()
        folder = haproxy_launch.newest(self._paths.sockets) if now >= self._again_at else None
        record = None if folder is None else haproxy_launch.read_record(folder)
        if folder is None or record is None or haproxy_launch.alive(record.pid, record.started):
            return None
        self._again_at = now + AGAIN_S
        manager = haproxy_launch.alive(record.parent, record.parent_started)
        if manager and record.parent != os.getpid():
            with contextlib.suppress(ProcessLookupError):
                os.kill(record.parent, signal.SIGKILL)
        return self._start(folder)

    def wait_for_ray(self, host: str, port: int) -> int:
        """Answer 503 with Retry-After until the HAProxy of the next Ray takes over; its pid.

        Call it before the old Ray is stopped: it takes over from the old HAProxy.
        """
        folder = self._paths.sockets / WAITING_FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        config = WAITING.format(
            socket=folder / haproxy_launch.SOCKET,
            answer=self._answer,
            host="*" if host in {"0.0.0.0", "::", ""} else host,
            port=port,
        )
        (folder / CONFIG).write_text(config, encoding="utf-8")
        return self._start(folder)

    def stop(self) -> None:
        """End what was started here; what Ray started ends with Ray."""
        for process in self._started:
            process.kill()
            process.wait()

    def _start(self, folder: Path) -> int:
        self._started = [process for process in self._started if process.poll() is None]
        with (folder / "supervisor.log").open("wb") as log:
            command = [str(self.launcher), "-db", "-dR", "-f", str(folder / CONFIG)]
            process = spawn(command, mark_of(self._paths.stack_id, "front"), log)
        self._started.append(process)
        return process.pid
