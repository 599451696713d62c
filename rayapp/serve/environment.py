"""Environment of the fast Ray Serve options: one table, a reason for each row.

They are read when Ray's modules are imported, so every process of a cluster needs them before Ray
starts; a Serve YAML or a runtime_env cannot set them. Echo route on 2 cores: 2.0 ms p50
(one client) and 780 requests/s (eight) by default, 0.2 ms and 6,400 requests/s with the table.
"""

import os
from pathlib import Path
from typing import NamedTuple


class EnvRow(NamedTuple):
    name: str
    value: str
    reason: str


# For every node of every cluster.
FAST: tuple[EnvRow, ...] = (
    EnvRow("RAY_SERVE_ENABLE_HA_PROXY", "1", "HAProxy, not Python, accepts the requests"),
    EnvRow("RAY_SERVE_THROUGHPUT_OPTIMIZED", "1", "user code on the router's loop, gRPC hops"),
    EnvRow(
        "RAY_SERVE_REQUEST_LATENCY_BUCKETS_MS",
        "1,2,3,5,8,10,15,20,30,50,100,250,1000,5000",
        "the default buckets start too high for answers of a few milliseconds",
    ),
    EnvRow(
        "RAY_SERVE_HAPROXY_TUNE_BUFSIZE",
        "65536",
        "request line and headers must fit: a long Hebrew query in a URL is six bytes a letter",
    ),
    EnvRow(
        "RAY_SERVE_HAPROXY_BALANCE_ALGORITHM",
        "hdr(X-User-Id)",
        "a user stays with the replica that holds their view, which two would make twice (0055)",
    ),
    EnvRow(
        "RAY_worker_niceness",
        "0",
        "15 by default: replicas and the vector engine would wait for everything else of the node",
    ),
    EnvRow(
        "RAY_SERVE_PROXY_HEALTH_CHECK_PERIOD_S",
        "1",
        "three failed checks replace a proxy; the default of 10 s makes that half a minute",
    ),
    EnvRow(
        "RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S",
        "20",
        "a proxy that starts slowly on a busy machine is waited for; the default ends it after 5 s",
    ),
    EnvRow(
        "TOKENIZERS_PARALLELISM",
        "false",
        "thirty words are read in the time in which a pool of threads takes them up",
    ),
    EnvRow(
        "GRPC_DNS_RESOLVER",
        "native",
        "a name of all Qdrant peers may stand in /etc/hosts, of which gRPC's own reads one line",
    ),
    EnvRow("RAY_USAGE_STATS_ENABLED", "0", "no report leaves the machine"),
)

# For the head that `rayapp up` starts: one node, one owner.
LOCAL: tuple[EnvRow, ...] = (
    EnvRow("RAY_SERVE_REQUEST_PATH_LOG_BUFFER_SIZE", "1", "1,000 buffered records look like none"),
    EnvRow(
        "RAY_SERVE_DIRECT_INGRESS_MIN_DRAINING_PERIOD_S",
        "1",
        "no proxy of another node can still route to a replica; the default waits 30 s",
    ),
    EnvRow("RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", "0", "the application is drained before"),
    EnvRow(
        "RAY_SERVE_CONTROL_LOOP_INTERVAL_S",
        "0.3",
        "at the default of 0.1 the idle controller is the busiest process of a laptop",
    ),
    EnvRow(
        "RAY_SERVE_METRICS_EXPORT_INTERVAL_MS",
        "2000",
        "by default each replica writes its metrics down ten times a second",
    ),
)

# Ports that a second stack on the machine would fight over: environment variable -> our name.
PORT_NAMES: dict[str, str] = {
    "RAY_SERVE_HAPROXY_METRICS_PORT": "haproxy_metrics",
    "RAY_SERVE_HAPROXY_STATS_PORT": "haproxy_stats",
    "RAY_SERVE_FALLBACK_PROXY_HTTP_PORT": "fallback_proxy",
    "AUTOSCALER_METRIC_PORT": "autoscaler_metrics",
    "DASHBOARD_METRIC_PORT": "dashboard_metrics",
    "RAY_SERVE_DIRECT_INGRESS_MIN_HTTP_PORT": "ingress_first",
}
# Ports a stack's ingress replicas may bind, one each; Ray's own range holds 1,000.
INGRESS_PORTS = 50
# Ray Serve's default is 4 threads; more than half of the cores starves the replicas (2 cores: 1).
MAX_PROXY_THREADS = 4


def fast_environment() -> dict[str, str]:
    """The rows that any cluster needs, the number of proxy threads included."""
    threads = max(1, min(MAX_PROXY_THREADS, (os.cpu_count() or 1) // 2))
    return {row.name: row.value for row in FAST} | {"RAY_SERVE_HAPROXY_NBTHREAD": str(threads)}


def local_environment(directory: Path, ports: dict[str, int]) -> dict[str, str]:
    """The whole environment of a local head.

    Args:
        directory: short private folder for HAProxy's files and sockets (a socket path is limited
            to 107 bytes); the default `/tmp/haproxy-serve` is shared by every Ray of the machine.
        ports: our names (values of `PORT_NAMES`) to chosen ports.
    """
    env = fast_environment() | {row.name: row.value for row in LOCAL}
    env |= {variable: str(ports[name]) for variable, name in PORT_NAMES.items()}
    last = ports["ingress_first"] + INGRESS_PORTS - 1
    return env | {
        "RAY_SERVE_DIRECT_INGRESS_MAX_HTTP_PORT": str(last),
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(directory / "haproxy.cfg"),
        "RAY_SERVE_HAPROXY_SOCKET_PATH": str(directory / "admin.sock"),
        "RAY_SERVE_HAPROXY_METRICS_SOCKET_PATH": str(directory / "metrics.sock"),
        "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(directory),
        "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": str(directory / "server-state"),
    }
