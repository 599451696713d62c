"""The process that owns the servers of one data directory: starts, watches, stops them.

Run as `python -m rayapp.local.stack.supervisor --data-dir D`; `up` starts it detached.
It reads `<data>/run/settings.json`, fills in the addresses, writes it back for the deployment,
and keeps `<data>/run/state.json` true. It never imports Ray, so it stays small.
"""

import argparse
import contextlib
import errno
import fcntl
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from rayapp.core.disk_space import MIB, DiskSpace, measured
from rayapp.core.errors import ConfigError, RayappError
from rayapp.core.settings.model import Settings
from rayapp.local.stack import programs
from rayapp.local.stack.front import Front, is_served
from rayapp.local.stack.paths import StackPaths, tail, write_private
from rayapp.local.stack.plan import Plan
from rayapp.local.stack.processes import POLL_S, Child, ProcessRef, mark_of, spawn
from rayapp.local.stack.state import APPLICATION, StackState, Step, remove_state, write_state

# An empty mongod keeps 302 MiB and an empty engine 85 (measured); the rest is for memories and for
# the reserve.
NEW_STORE_MB = 1_000


def disk_of(paths: StackPaths, settings: Settings) -> DiskSpace:
    """The same rule as in the replicas, whatever runs."""
    limits = settings.data.disk_limits
    return DiskSpace(str(paths.data), limits, partial(measured, paths.data))


def needed_mb(paths: StackPaths, settings: Settings) -> int:
    """What must be free for a start: a store that exists has its first files already."""
    if paths.mongo.is_dir() and any(paths.mongo.iterdir()):
        return min(NEW_STORE_MB, settings.data.min_free_bytes // MIB)
    return NEW_STORE_MB


DEFAULT_APP = "rayapp.serve.app:build"
WATCH_S = 0.2
DEPLOY_TIMEOUT_S = 240.0
# Longest drain of `deploy --stop`: the deployments' own limits are 10 s each.
DRAIN_TIMEOUT_S = 30.0
# A dead GCS leaves a proxy that answers 500 for ever: no good answer for this long restarts Ray.
PROBE_EVERY_S = 5.0
PROBE_TIMEOUT_S = 5.0
PROBE_LIMIT_S = 60.0
# Servers whose files are in the data directory.
KEEPS_FILES = frozenset({"mongod", "qdrant"})


class StopRequested(Exception):
    """`down` asked for the end while something was being waited for."""


class Supervisor:
    def __init__(self, paths: StackPaths, settings: Settings, app: str) -> None:
        self._paths = paths
        self._requested = settings
        self._app = app
        self._stop = False
        self._plan: Plan | None = None
        self._deployed = False
        self._good_at = 0.0
        self._probed_at = 0.0
        self._unsaved = False
        self._disk = disk_of(paths, settings)
        self.state = StackState(
            stack_id=paths.stack_id,
            supervisor=ProcessRef.of("supervisor", os.getpid()),
            settings_sha256=settings_hash(settings),
        )

    def run(self) -> int:
        """Until SIGTERM; the exit status is 1 when the first start failed."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: setattr(self, "_stop", True))
        try:
            self._start()
            while True:
                self._keep_watching()
        except StopRequested:
            self._shut_down()
            remove_state(self._paths)
            return 0
        except RayappError as error:
            return self._fail(error.message)
        except Exception as error:  # noqa: BLE001 - whatever ends it, no child is left behind
            return self._fail(f"The supervisor ended: {type(error).__name__}: {error}.")

    # --- start -----------------------------------------------------------------------------

    def _start(self) -> None:
        self._save()
        plan = self._plan = Plan(self._paths, self._requested)
        if plan.own_ray:
            forget_clusters()
        self._publish(plan)
        for child in plan.children:
            child.start()
            self._save()
        try:
            with self._driver("--app", self._app, "--hold") as driver:
                for child in plan.children:
                    self._await(child)
                    self._step(child.name, child.started_at)
                self._deploy(driver)
        except ConfigError as error:
            self._start_ray_again(error)
        self.state.phase = "ready"
        self._save()

    def _publish(self, plan: Plan) -> None:
        """Write down where everything is."""
        write_private(self._paths.settings, plan.settings.model_dump_json(indent=1))
        http = plan.settings.http
        self.state.ports = plan.ports | {"http": http.port}
        self.state.versions = plan.versions
        self.state.http_url = f"http://{reachable(http.host)}:{http.port}"
        self.state.environment = plan.environment()
        if plan.own_ray and plan.settings.ray.dashboard:
            self.state.dashboard_url = f"http://{programs.LOOPBACK}:{plan.ports['ray_dashboard']}"

    def _start_ray_again(self, error: ConfigError) -> None:
        """Once: Ray gives its own processes 30 s to start, too few where others have work to do.
        Raises ConfigError: `error` where Ray did not end, or what the second start says."""
        ray = self._ray_child()
        if ray is None or not self._ray_ended():
            raise error
        self._log(f"{error.message} It is started once more.")
        ray.restarts += 1
        self.state.restarts[ray.name] = ray.restarts
        self._restart_ray(ray)

    def _await(self, child: Child) -> None:
        self.state.log = str(child.log)
        self.state.awaited = child.name
        self._save()
        for _ in child.wait_ready():
            self._pause(POLL_S)
            self._look_meanwhile(child)

    def _deploy(self, driver: subprocess.Popen[bytes]) -> None:
        """Hand the application to Serve; returns when its deployments are healthy."""
        begun = time.monotonic()
        log = self._paths.log("deploy")
        self.state.log = str(log)
        self.state.awaited = APPLICATION
        self._save()
        assert driver.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended, and its log says why
            driver.stdin.close()
        if self._ended(driver, DEPLOY_TIMEOUT_S) != 0:
            raise ConfigError(self._why_not_deployed(log))
        self._deployed = True
        self._good_at = time.monotonic()
        self._step(APPLICATION, begun)
        self.state.log = self.state.awaited = ""

    def _why_not_deployed(self, log: Path) -> str:
        ray = self._ray_child()
        if ray is not None and ray.ref is None:
            # The driver was cut short and had nothing to say.
            self.state.log = str(ray.log)
            return f"Ray ended while the application started: {tail(ray.log, 1)[:300]}"
        said = tail(log).splitlines() or ["it printed nothing"]
        telling = [line for line in said if "cannot bind" in line]
        return f"The application did not start: {(telling or said)[-1][:300]}"

    @contextlib.contextmanager
    def _driver(self, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """`rayapp.serve.deploy` as a child, which does not outlive the block. With `--hold` it
        imports the application meanwhile and begins when its input is closed."""
        assert self._plan is not None
        env = self._plan.environment() | programs.python_path()
        module = "rayapp.serve.deploy"
        command = [*programs.PYTHON, "-m", module, "--data-dir", str(self._paths.data)]
        with self._paths.log("deploy").open("wb") as log:
            env |= mark_of(self._paths.stack_id, "deploy")
            pipe = subprocess.PIPE
            process = spawn([*command, *arguments], env, log, stdin=pipe, detached=False)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _ended(
        self, process: subprocess.Popen[bytes], timeout_s: float, *, stoppable: bool = True
    ) -> int:
        """Its exit status, not 0 when it was cut short."""
        deadline = time.monotonic() + timeout_s
        while process.poll() is None:
            interrupted = stoppable and self._stop
            # A driver waits a minute for a cluster that is gone.
            if interrupted or self._ray_ended() or time.monotonic() > deadline:
                process.kill()
                process.wait()
            time.sleep(POLL_S)
            self._look_meanwhile(self._ray_child())
        if stoppable:
            self._pause(0)
        return process.returncode

    def _ray_ended(self) -> bool:
        ray = self._ray_child()
        return ray is not None and ray.ref is None

    def _ray_child(self) -> Child | None:
        children = self._plan.children if self._plan else []
        return next((child for child in children if child.name == "ray"), None)

    # --- watch -----------------------------------------------------------------------------

    def _keep_watching(self) -> None:
        """A look that a full disk cut short is followed by the next one."""
        try:
            self._watch()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            self._log(f"a file cannot be written: {error.strerror}")

    def _watch(self) -> None:
        """One look at every server; restarts what died."""
        self._pause(WATCH_S)
        assert self._plan is not None
        for child in self._plan.children:
            self._look(child)
        if self._deployed and self._plan.front is not None:
            self._keep_front(self._plan.front)
        if self._unsaved:
            self._save()
        if self._deployed and self._app_lost():
            ray = self._ray_child()
            if ray is not None:
                self._log(f"no good answer for {PROBE_LIMIT_S:.0f} s")
                self._restart(ray)

    def _look(self, child: Child) -> None:
        """Never waits for a server to get ready, but for Ray: the others may need it meanwhile."""
        try:
            if child.has_returned():
                self._log(f"{child.name} ready after {time.monotonic() - child.started_at:.1f} s")
                self.state.error = ""
                self._save()
        except ConfigError as error:
            self._give_up(child, error.message)
        if child.gone and not self._has_room(child):
            child.drop_pause()
        elif child.restart_due(time.monotonic()):
            self._restart(child)

    def _look_meanwhile(self, awaited: Child | None) -> None:
        """While one server is waited for; the first start ends when any of them does."""
        if self._plan is None or self.state.phase != "ready":
            return
        for child in self._plan.children:
            if child is not awaited:
                self._look(child)

    def _give_up(self, child: Child, message: str) -> None:
        """The next look finds it dead and tries again after a pause."""
        self._log(message)
        self.state.error = message
        self._end([child])
        self._save()

    def _keep_front(self, front: Front) -> None:
        pid = self._try_start(front.look)
        if pid is not None:
            self.state.restarts["haproxy"] = self.state.restarts.get("haproxy", 0) + 1
            self._log(f"haproxy restart {self.state.restarts['haproxy']}, pid {pid}")
            self._save()

    def _try_start(self, start: Callable[[], int | None]) -> int | None:
        """A full disk or table of processes must not end the stack that it is about to help."""
        try:
            return start()
        except OSError as error:
            self._log(f"haproxy cannot be started: {error}")
            return None

    def _restart(self, child: Child) -> None:
        child.restarts += 1
        self.state.restarts[child.name] = child.restarts
        self._log(f"{child.name} restart {child.restarts}")
        try:
            if child.name == "ray":
                self._restart_ray(child)
                self.state.error = ""
            else:
                child.start_again()
            self._save()
        except (ConfigError, OSError) as error:
            message = error.message if isinstance(error, ConfigError) else str(error)
            self._give_up(child, message)

    def _restart_ray(self, ray: Child) -> None:
        """With it go all replicas; the driver gets ready while Ray starts."""
        assert self._plan is not None
        self._deployed = False
        begun = time.monotonic()
        http = self._plan.settings.http
        if self._plan.front is not None:
            front = self._plan.front
            self._try_start(lambda: front.wait_for_ray(http.host, http.port))
        ray.stop()
        self._plan.renew_ray(ray)
        if self.state.ports != self._plan.ports | {"http": http.port}:
            self._log("another program has a port of Ray's: it gets a new one")
            self._publish(self._plan)
        ray.start()
        self._save()
        with self._driver("--app", self._app, "--hold") as driver:
            self._await(ray)
            ready = time.monotonic()
            self._deploy(driver)
        stopped_s, ready_s = ray.started_at - begun, ready - ray.started_at
        deployed_s = time.monotonic() - ready
        self._log(f"ray: stop {stopped_s:.1f} s, start {ready_s:.1f} s, deploy {deployed_s:.1f} s")

    def _has_room(self, child: Child) -> bool:
        """False while a server of ours that writes would only end once more for want of space."""
        if child.name not in KEEPS_FILES or not self._disk.exhausted:
            return True
        found = self._disk.look()
        sentence = f"{found.reason}; {child.name} waits for it." if found else ""
        if self.state.error != sentence:
            self._log(sentence)
            self.state.error = sentence
            self._save()
        return False

    def _app_lost(self) -> bool:
        """True when no replica has answered for a minute."""
        assert self._plan is not None
        now = time.monotonic()
        if now - self._probed_at < PROBE_EVERY_S:
            return False
        self._probed_at = now
        http = self._plan.settings.http
        if is_served(reachable(http.host), http.port, "/healthz", PROBE_TIMEOUT_S):
            self._good_at = now
        return now - self._good_at > PROBE_LIMIT_S

    # --- stop ------------------------------------------------------------------------------

    def _shut_down(self) -> None:
        """Drain the application, then end Ray, the index, the cache and last the truth."""
        self.state.phase = "stopping"
        self._save()
        if self._plan is None:
            return
        if self._deployed:
            joined = [] if self._plan.own_ray else ["--joined"]
            with self._driver("--stop", *joined) as driver:
                self._ended(driver, DRAIN_TIMEOUT_S, stoppable=False)
        self._end_all(self._plan)

    def _end(self, children: list[Child]) -> None:
        for child in children:
            forced = child.stop()
            self._log(f"{child.name} stopped, {forced} processes by force")

    def _end_all(self, plan: Plan) -> None:
        if plan.front is not None:
            plan.front.stop()
        self._end(list(reversed(plan.children)))

    def _fail(self, message: str) -> int:
        self._log(message)
        if self._plan is not None:
            self._end_all(self._plan)
        self.state.phase = "failed"
        self.state.error = message
        self._save()
        return 1

    # --- small -----------------------------------------------------------------------------

    def _pause(self, seconds: float) -> None:
        if not self._stop and seconds:
            time.sleep(seconds)
        if self._stop:
            raise StopRequested

    def _step(self, name: str, begun: float) -> None:
        if self.state.phase == "starting":
            seconds = round(time.monotonic() - begun, 2)
            self.state.steps.append(Step(name=name, seconds=seconds))
        self._save()

    def _save(self) -> None:
        children = self._plan.children if self._plan else []
        self.state.children = [ref for child in children if (ref := child.ref) is not None]
        try:
            write_state(self._paths, self.state)
        except OSError as error:
            # On a full disk the servers need somebody to look after them more than ever.
            if not self._unsaved:
                self._log(f"the state cannot be written: {error.strerror}")
            self._unsaved = True
        else:
            self._unsaved = False

    def _log(self, text: str) -> None:
        # The log lies on the same disk, and a line that is lost is no reason to end.
        with contextlib.suppress(OSError):
            print(time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), text, flush=True)


def forget_clusters() -> None:
    """What a shell tells of another cluster would reach Ray's processes, and the jobs that they
    start would go there; a token would win over the token file."""
    for name in ("RAY_AUTH_TOKEN", "RAY_ADDRESS", "RAY_API_SERVER_ADDRESS"):
        os.environ.pop(name, None)


def settings_hash(settings: Settings) -> str:
    """Tells whether a running stack has the settings that are asked for."""
    return hashlib.sha256(settings.model_dump_json().encode()).hexdigest()


def reachable(host: str) -> str:
    """The address under which a server bound to `host` answers on this machine."""
    if host in {"0.0.0.0", "", "::"}:
        return programs.LOOPBACK
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="rayapp-supervisor")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--app", default=DEFAULT_APP)
    options = parser.parse_args(argv)
    paths = StackPaths.of(options.data_dir)
    with (paths.run / "supervisor.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another supervisor owns this data directory.", file=sys.stderr)
            return 1
        settings = Settings.model_validate_json(paths.settings.read_text(encoding="utf-8"))
        return Supervisor(paths, settings, options.app).run()


if __name__ == "__main__":
    sys.exit(main())
