"""Command lines and environments of the servers of a local stack. Pure."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rayapp.core.settings.model import Settings
from rayapp.local.stack.paths import StackPaths

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
PORTS = ("mongod", "qdrant", "qdrant_grpc")
RAY_PORTS = (
    "ray_gcs",
    "ray_dashboard",
    "ray_metrics",
    "ray_agent",
    "ray_agent_grpc",
    "ray_runtime_env",
    "ray_client",
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
        *(sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"),
        f"--node-ip-address={RAY_NODE_IP}",
        f"--port={ports['ray_gcs']}",
        f"--dashboard-host={LOOPBACK}",
        f"--dashboard-port={ports['ray_dashboard']}",
        f"--dashboard-agent-listen-port={ports['ray_agent']}",
        f"--dashboard-agent-grpc-port={ports['ray_agent_grpc']}",
        f"--runtime-env-agent-port={ports['ray_runtime_env']}",
        f"--metrics-export-port={ports['ray_metrics']}",
        f"--ray-client-server-port={ports['ray_client']}",
        f"--include-dashboard={str(settings.ray.dashboard).lower()}",
        f"--num-cpus={cpus}",
        f"--object-store-memory={settings.ray.object_store_mb << 20}",
        f"--temp-dir={paths.ray}",
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
