"""`up`, `down` and `attach` of the local stack of one data directory."""

import contextlib
import fcntl
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from rayapp.core.disk_space import MIB, measured
from rayapp.core.errors import ConfigError, DependencyDown
from rayapp.core.settings.model import Settings
from rayapp.local.stack import programs
from rayapp.local.stack.paths import PortBook, StackPaths, is_free, rotate, tail, write_private
from rayapp.local.stack.processes import mark_of, members, spawn, stop_all
from rayapp.local.stack.readiness import OnWait, wait_ready
from rayapp.local.stack.state import APPLICATION, StackState, Step, read_state, remove_state
from rayapp.local.stack.supervisor import DEFAULT_APP, needed_mb, settings_hash

# Ray rotates its logs at 100 MB; one that grew this long repeats itself.
LARGEST_FILE_BYTES = 50 << 20


def keep_ray_logs(paths: StackPaths) -> Path | None:
    """Copy the logs of the last session to `<data>/logs/ray`, over the earlier copy.

    Returns:
        The folder; None when no session was left.

    Raises:
        ConfigError: they cannot be written; the originals are still there.
    """
    source = paths.ray_session_logs
    if not source.is_dir():
        return None
    part = paths.kept_ray_logs.with_name(".ray.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        shutil.copytree(source, part, symlinks=True, ignore=_too_large)
        if paths.kept_ray_logs.exists():
            shutil.rmtree(paths.kept_ray_logs)
        part.rename(paths.kept_ray_logs)
    except (OSError, shutil.Error) as error:
        shutil.rmtree(part, ignore_errors=True)
        raise ConfigError(
            f"The logs in {source} cannot be kept ({str(error)[:200]}): free disk space, then "
            "`rayapp down` again."
        ) from None
    return paths.kept_ray_logs


def _too_large(folder: str, names: list[str]) -> set[str]:
    """Files above the limit, and what is neither file, folder nor link."""
    return {name for name in names if not _copied((Path(folder) / name).lstat())}


def _copied(info: os.stat_result) -> bool:
    if stat.S_ISREG(info.st_mode):
        return info.st_size <= LARGEST_FILE_BYTES
    return stat.S_ISDIR(info.st_mode) or stat.S_ISLNK(info.st_mode)


POLL_S = 0.1
START_TIMEOUT_S = 420.0
# Draining, then each server's own limit; beyond it the processes are ended one by one.
STOP_TIMEOUT_S = 90.0
LEFTOVER_WAIT_S = 20.0
# Proportional set size of a whole stack with the dashboard, measured: 1.4 GB.
MIN_MEMORY_MB = 1_600

# What `ready` of each server asks for, in `plan.py`.
AWAITED = {
    "mongod": "waiting until it is the primary of its replica set",
    "valkey": "waiting until its socket answers",
    "qdrant": "waiting until it is ready",
    "ray": "waiting until its raylet answers",
    APPLICATION: "importing it",
}

RAY_NAMES = ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH")

OnStep = Callable[[Step], None]


@dataclass(frozen=True, slots=True)
class UpResult:
    state: StackState
    started: bool
    other_settings: bool = False
    ready_s: float = 0.0


def up(
    settings: Settings,
    *,
    wait: bool = True,
    app: str = DEFAULT_APP,
    on_step: OnStep | None = None,
    on_wait: OnWait | None = None,
) -> UpResult:
    """Start what the settings leave empty; a no-op on a running stack.

    Args:
        wait: return when `/readyz` answers 200, else as soon as the supervisor runs.
        app: `module:function` that builds the Serve application from settings.
        on_step: hears every finished step.
        on_wait: hears what is being waited for, on every change: a server, a phase of the
            application, at last why the service is not ready yet.

    Raises:
        ConfigError: it cannot start; one sentence that names the log.
        DependencyDown: it started but is not ready in time; names the reasons.
    """
    paths = StackPaths.of(settings.data.dir)
    paths.create()
    begun = time.monotonic()
    tell = on_wait or (lambda _: None)
    with _only_one(paths):
        # Once more: a `down` that ended meanwhile removed the folder of the sockets.
        paths.create()
        state = _running(paths)
        started = state is None
        if state is None:
            stop_leftovers(paths)
            check_room(paths, settings)
            _spawn(paths, settings, app)
    # Steps of an earlier call are no news.
    seen = len(state.steps) if state else 0
    news = _News(on_step or (lambda _: None), tell, seen)
    state = _wait_started(paths, wait, news)
    if wait:
        wait_ready(state.http_url, lambda reasons: tell(f"service: {reasons}"))
    other = not started and state.settings_sha256 != settings_hash(settings)
    return UpResult(state, started, other, round(time.monotonic() - begun, 2))


def down(data_dir: Path | str) -> bool:
    """Stop what `up` started for this data directory; False when nothing ran.

    Raises ConfigError: all is stopped, but Ray's logs cannot be kept; a second call tries again.
    """
    paths = StackPaths.of(data_dir)
    with _only_one(paths) if paths.run.exists() else contextlib.nullcontext():
        state = _readable_state(paths)
        stopped = bool(state and state.living())
        if state is not None and (supervisor := state.supervisor.find()) is not None:
            supervisor.terminate()
            psutil.wait_procs([supervisor], timeout=STOP_TIMEOUT_S)
        stopped = stop_leftovers(paths) > 0 or stopped
        remove_state(paths)
        keep_ray_logs(paths)
        shutil.rmtree(paths.sockets, ignore_errors=True)
    return stopped


def stop_leftovers(paths: StackPaths) -> int:
    """End processes of this stack that have no supervisor any more; returns how many there were.

    They are known by the pid and creation time in the state, their session, and their mark.
    """
    state = _readable_state(paths)
    leaders = state.children if state else []
    found = {process.pid: process for process in members(paths.stack_id, leaders=leaders)}
    for ref in state.living() if state else []:
        if (process := ref.find()) is not None:
            found[process.pid] = process
    # mongod may need seconds for its last checkpoint; Ray's processes need no goodbye.
    stop_all(found.values(), wait_s=LEFTOVER_WAIT_S)
    return len(found)


def stack_environment(data_dir: Path | str) -> dict[str, str]:
    """MONGODB_URI, REDIS_URL, RAY_ADDRESS, RAY_AUTH_* and the Serve options of a running stack.

    Raises ConfigError: no stack runs for this data directory.
    """
    state = read_state(StackPaths.of(data_dir))
    if state is None or not state.running:
        raise ConfigError(f"No stack runs for {data_dir}: start it with `rayapp up`.")
    return dict(state.environment)


def ray_environment(data_dir: Path | str) -> dict[str, str]:
    """What `ray`, `serve` and `ray job` need to reach the cluster of a running stack.

    Only Ray's: a MONGODB_URI in a shell would be a server of its own to the next `up`.
    Raises ConfigError: no stack runs for this data directory.
    """
    environment = stack_environment(data_dir)
    found = {name: environment[name] for name in RAY_NAMES if name in environment}
    state = read_state(StackPaths.of(data_dir))
    if state is not None and state.dashboard_url:
        # `ray job` reads the first, `serve` the second.
        found |= dict.fromkeys(
            ("RAY_API_SERVER_ADDRESS", "RAY_DASHBOARD_ADDRESS"), state.dashboard_url
        )
    return found


def without_local_cluster(settings: Settings) -> Settings:
    """The settings without a RAY_ADDRESS that names the head of a local stack, this or another.

    `eval "$(rayapp env)"` leaves it in the shell. The next `up` would join what is gone, or one of
    another data directory would take over the application and the vector engine of that stack.
    """
    address = settings.ray.address
    if address != _own_head(settings) and not _of_local_stack(address):
        return settings
    ray = settings.ray.model_copy(update={"address": ""})
    return settings.model_copy(update={"ray": ray})


def not_joined(settings: Settings) -> str:
    """One line when RAY_ADDRESS names the head of another local stack; empty otherwise."""
    address = settings.ray.address
    if address == _own_head(settings) or not _of_local_stack(address):
        return ""
    return f"RAY_ADDRESS names another local stack ({address}); this one has a Ray of its own."


def _own_head(settings: Settings) -> str:
    paths = StackPaths.of(settings.data.dir)
    return f"{programs.RAY_NODE_IP}:{PortBook(paths.ports, paths.stack_id).ports.get('ray_gcs')}"


def _of_local_stack(address: str) -> bool:
    """No cluster that somebody set up listens on this address of the loopback network. Where it has
    one address alone, that says nothing."""
    if programs.RAY_NODE_IP == programs.LOOPBACK:
        return False
    with contextlib.suppress(ValueError):
        parts = urlsplit(address if "://" in address else f"//{address}")
        return parts.hostname == programs.RAY_NODE_IP
    return False


def is_running(data_dir: Path | str) -> bool:
    """True when a supervisor looks after this data directory."""
    return _running(StackPaths.of(data_dir)) is not None


def url_of(data_dir: Path | str) -> str:
    """Where the stack answers. Raises ConfigError when none runs."""
    state = _running(StackPaths.of(data_dir))
    if state is None:
        raise ConfigError(f"No stack runs for {data_dir}: start it with `rayapp up`.")
    return state.http_url


def attach(data_dir: Path | str) -> Settings:
    """Make this process part of a running stack: its environment, and its settings as answer.

    Call it before Ray is imported. Raises ConfigError when no stack runs.
    """
    os.environ.update(stack_environment(data_dir))
    text = StackPaths.of(data_dir).settings.read_text(encoding="utf-8")
    return Settings.model_validate_json(text)


def check_room(paths: StackPaths, settings: Settings) -> None:
    """Refuse before anything starts. Raises ConfigError: port, disk or memory."""
    http = settings.http
    if http.port and not settings.ray.address and not is_free(http.port, http.host):
        raise ConfigError(
            f"Port {http.port} on {http.host} is in use: stop its owner, or choose another with "
            "RAYAPP_HTTP__PORT (setting http.port)."
        )
    free_mb = measured(paths.data)[1] // MIB
    needed = needed_mb(paths, settings)
    if free_mb < needed:
        raise ConfigError(
            f"Only {free_mb} MB are free under {paths.data}: {needed} MB are needed; "
            "free some, or use --data-dir on another disk."
        )
    memory_mb = psutil.virtual_memory().available >> 20
    if memory_mb < MIN_MEMORY_MB:
        raise ConfigError(
            f"Only {memory_mb} MB of memory are available: {MIN_MEMORY_MB} MB are needed; stop "
            "other programs, or set RAYAPP_RAY__DASHBOARD=false and join a cluster."
        )


def _running(paths: StackPaths) -> StackState | None:
    state = _readable_state(paths)
    return state if state is not None and state.running else None


def _readable_state(paths: StackPaths) -> StackState | None:
    """The state, or None when there is none or it is damaged: the mark still finds everything."""
    try:
        return read_state(paths)
    except ConfigError:
        return None


@contextlib.contextmanager
def _only_one(paths: StackPaths) -> Iterator[None]:
    """Two `up` of one data directory start one supervisor, and none starts while a `down` ends."""
    with (paths.run / "up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _spawn(paths: StackPaths, settings: Settings, app: str) -> None:
    remove_state(paths)
    write_private(paths.settings, settings.model_dump_json(indent=1))
    module = "rayapp.local.stack.supervisor"
    command = [*programs.PYTHON, "-m", module, "--data-dir", str(paths.data), "--app", app]
    log_path = paths.log("supervisor")
    rotate(log_path)
    with log_path.open("ab") as log:
        mark = mark_of(paths.stack_id, "supervisor")
        process = spawn(command, programs.python_path() | mark, log)
    deadline = time.monotonic() + START_TIMEOUT_S
    while read_state(paths) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise ConfigError(f"The supervisor did not start.\n{tail(log_path)}")
        time.sleep(POLL_S)


@dataclass(slots=True)
class _News:
    """Tells of every step and of every phase once."""

    on_step: OnStep
    on_wait: OnWait
    seen: int
    last: str = ""

    def look(self, paths: StackPaths, state: StackState) -> None:
        for step in state.steps[self.seen :]:
            self.on_step(step)
        self.seen = len(state.steps)
        now = describe_wait(paths, state)
        if now and now != self.last:
            self.last = now
            self.on_wait(now)


def describe_wait(paths: StackPaths, state: StackState) -> str:
    """What a start is waiting for, as `part: what`; empty when it is over."""
    if state.phase != "starting":  # a server that is started again is no news to who attaches
        return ""
    if not state.awaited:
        return "supervisor: looking for servers and free ports"
    phase = ""
    if state.awaited == APPLICATION:
        with contextlib.suppress(OSError):
            phase = paths.deploy_phase.read_text(encoding="utf-8")
    return f"{state.awaited}: {phase or AWAITED.get(state.awaited, 'starting')}"


def _wait_started(paths: StackPaths, wait: bool, news: _News) -> StackState:
    """Report each step and phase, until the supervisor is done starting."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        state = read_state(paths)
        if state is None:
            raise ConfigError("The stack was stopped while it was starting.")
        news.look(paths, state)
        if state.phase == "failed":
            if (supervisor := state.supervisor.find()) is not None:
                psutil.wait_procs([supervisor], timeout=LEFTOVER_WAIT_S)
            raise ConfigError(_with_log(state))
        if state.phase == "ready" or not wait:
            return state
        if not state.running:
            raise ConfigError(f"The supervisor stopped: see {paths.log('supervisor')}.")
        if time.monotonic() > deadline:
            raise DependencyDown(
                f"It is still starting after {START_TIMEOUT_S:.0f} s: `rayapp status` shows how "
                "far."
            )
        time.sleep(POLL_S)


def _with_log(state: StackState) -> str:
    """Why it failed, and where more is written."""
    return f"{state.error.rstrip('.')}; see {state.log}." if state.log else state.error
