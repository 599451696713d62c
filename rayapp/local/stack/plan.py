"""What a stack must start for given settings, and how its mongod becomes a primary."""

import contextlib
import secrets
import shutil
import socket
from collections.abc import Callable
from typing import Any

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from rayapp.core.settings.model import Settings
from rayapp.local.stack import programs
from rayapp.local.stack.front import Front
from rayapp.local.stack.paths import PortBook, StackPaths, write_private
from rayapp.local.stack.processes import Child, http_get
from rayapp.local.stack.programs import LOOPBACK, REPLICA_SET
from rayapp.serve.environment import INGRESS_PORTS, PORT_NAMES, local_environment
from rayapp.serve.haproxy_launch import listens

ASK_TIMEOUT_MS = 1_000
NOT_YET_INITIALIZED = 94
INVALID_CONFIG = 93


def is_primary(port: int) -> bool:
    """One look, one push: initiates a new set, moves an old one to this port.

    Returns:
        True once the server accepts writes; False while it is starting or electing.
    """
    if not _listens(port):
        # The driver would look again and again until its time is up.
        return False
    client: MongoClient[dict[str, Any]] = MongoClient(
        LOOPBACK,
        port,
        directConnection=True,
        serverSelectionTimeoutMS=ASK_TIMEOUT_MS,
        socketTimeoutMS=ASK_TIMEOUT_MS,
    )
    with client:
        try:
            if client.admin.command("hello").get("isWritablePrimary"):
                _keep_no_freed_memory(client)
                return True
            _push(client, f"{LOOPBACK}:{port}")
        except PyMongoError:
            return False
    return False


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(ASK_TIMEOUT_MS / 1_000)
        return probe.connect_ex((LOOPBACK, port)) == 0


def _push(client: MongoClient[dict[str, Any]], host: str) -> None:
    try:
        client.admin.command("replSetGetStatus")
    except OperationFailure as error:
        if error.code == NOT_YET_INITIALIZED:
            members = [{"_id": 0, "host": host}]
            client.admin.command("replSetInitiate", {"_id": REPLICA_SET, "members": members})
        elif error.code == INVALID_CONFIG:
            _move(client, host)


def _keep_no_freed_memory(client: MongoClient[dict[str, Any]]) -> None:
    """Without it a server keeps 60 MiB that a large fill used once (decision 0055)."""
    # Not on the command line: a mongod with another allocator refuses to start with it.
    with contextlib.suppress(OperationFailure):
        client.admin.command("setParameter", 1, tcmallocAggressiveMemoryDecommit=1)


def _move(client: MongoClient[dict[str, Any]], host: str) -> None:
    """The set knows this server under another port: it was busy, or the data was copied."""
    config = client.local["system.replset"].find_one()
    if config is not None and config["members"][0]["host"] != host:
        config["members"] = [{"_id": 0, "host": host}]
        config["version"] += 1
        client.admin.command("replSetReconfig", config, force=True)


# A large journal is replayed before mongod answers; the rest start in seconds.
MONGOD_TIMEOUT_S = 120.0
# Nobody waits at a terminal, and one that is ended while it replays begins anew.
MONGOD_AGAIN_S = 600.0
RAY_TIMEOUT_S = 90.0
SERVER_TIMEOUT_S = 30.0
STOP_WAIT_S = 20.0
RAY_STOP_WAIT_S = 5.0
PROBE_TIMEOUT_S = 1.0


class Plan:
    """Servers to start, and the settings with every address filled in."""

    def __init__(self, paths: StackPaths, settings: Settings) -> None:
        self.paths = paths
        self.children: list[Child] = []
        self.versions: dict[str, str] = {}
        self.own_ray = not settings.ray.address
        self.front: Front | None = None
        self._book = PortBook(paths.ports, paths.stack_id)
        self._set: dict[str, dict[str, object]] = {"data": {"dir": str(paths.data)}}
        self._settings = settings
        self._http()
        self._mongod()
        self._valkey()
        self._qdrant()
        self._ray()
        self.settings = _update(settings, self._set)

    @property
    def ports(self) -> dict[str, int]:
        return self._book.ports

    def environment(self) -> dict[str, str]:
        """What a job, a replica or a shell needs to attach to this stack."""
        env = {
            "MONGODB_URI": self.settings.mongo.uri,
            "QDRANT_URL": self.settings.qdrant.url,
            "REDIS_URL": self.settings.redis.url,
            "RAY_ADDRESS": self.settings.ray.address,
        }
        env = {name: value for name, value in env.items() if value}
        if self.own_ray:
            env |= programs.ray_auth(self.paths, self._settings)
            env |= local_environment(self.paths.sockets, self.ports)
        return env

    def _http(self) -> None:
        if self._settings.http.port == 0:
            self._book.take(["http"])
            self._set["http"] = {"port": self.ports["http"]}

    def _mongod(self) -> None:
        if self._settings.mongo.uri:
            return
        binary = programs.require_mongod()
        self.versions["mongod"] = programs.version_of(binary)
        self._book.take(["mongod"])
        port = self.ports["mongod"]
        self.paths.mongo.mkdir(mode=0o700, exist_ok=True)
        command = programs.mongod_command(binary, self.paths, port, self._settings)
        self._add("mongod", command, lambda: is_primary(port), MONGOD_TIMEOUT_S, STOP_WAIT_S)
        self.children[-1].again_timeout_s = MONGOD_AGAIN_S
        self._set["mongo"] = {"uri": programs.mongodb_uri(port)}
        self._set["data"]["holds_store"] = True

    def _valkey(self) -> None:
        binary = programs.find_valkey()
        if self._settings.redis.url or binary is None:
            return
        self.versions["valkey"] = programs.version_of(binary)
        path = self.paths.valkey_socket
        command = programs.valkey_command(binary, path)
        self._add("valkey", command, lambda: listens(path), SERVER_TIMEOUT_S, STOP_WAIT_S)
        self._set["redis"] = {"url": f"unix://{path}"}

    def _qdrant(self) -> None:
        binary = programs.find_qdrant()
        if self._settings.qdrant.url:
            return
        if binary is None:
            # Said now: in a replica of Ray it would be said minutes later.
            programs.require_engine()
            return
        self.versions["qdrant"] = programs.version_of(binary)
        self._book.take(["qdrant", "qdrant_grpc"])
        port = self.ports["qdrant"]
        self.paths.qdrant.mkdir(mode=0o700, exist_ok=True)
        env = programs.qdrant_environment(self.paths, self.ports)

        def ready() -> bool:
            answer = http_get(LOOPBACK, port, "/readyz", PROBE_TIMEOUT_S)
            return answer is not None and answer.status == 200

        self._add("qdrant", [str(binary)], ready, SERVER_TIMEOUT_S, STOP_WAIT_S, env)
        url = f"http://{programs.LOOPBACK}:{port}"
        self._set["qdrant"] = {"url": url, "grpc_port": self.ports["qdrant_grpc"]}

    def _ray(self) -> None:
        if not self.own_ray:
            return
        write_private(self.paths.token, secrets.token_hex(32))
        self.front = self._find_front()
        raylet = self.paths.ray / "session_latest" / "sockets" / "raylet"
        command, env = self._ray_program()
        self._add("ray", command, lambda: listens(raylet), RAY_TIMEOUT_S, RAY_STOP_WAIT_S, env)
        self.children[-1].clean = self._clean_ray

    def renew_ray(self, ray: Child) -> None:
        """Another port for each that somebody took while Ray was down; `ray` is stopped."""
        ray.command, ray.env = self._ray_program()
        self.settings = _update(self._settings, self._set)

    def _ray_program(self) -> tuple[list[str], dict[str, str]]:
        """Command and environment of a head with ports that are free now."""
        kept = self.front.holds if self.front is not None else frozenset()
        single = [name for name in PORT_NAMES.values() if name not in {"ingress_first", *kept}]
        self._book.take([*programs.RAY_PORTS, *single])
        self._book.take(["ingress_first"], width=INGRESS_PORTS)
        self._set["ray"] = {"address": f"{programs.RAY_NODE_IP}:{self.ports['ray_gcs']}"}
        env = programs.ray_auth(self.paths, self._settings) | programs.python_path()
        env |= local_environment(self.paths.sockets, self.ports)
        if self.front is not None:
            # Ray starts our launcher in its place.
            env["RAY_SERVE_HAPROXY_BINARY_PATH"] = str(self.front.launcher)
        return programs.ray_command(self.paths, self.ports, self._settings), env

    def _clean_ray(self) -> None:
        clean_ray(self.paths)
        if self.front is not None:
            self.front.write()

    def _find_front(self) -> Front | None:
        """Without a binary Ray says what is missing."""
        binary = programs.find_haproxy()
        return Front(self.paths, binary) if binary is not None else None

    def _add(
        self,
        name: str,
        command: list[str],
        ready: Callable[[], bool],
        start_timeout_s: float,
        stop_wait_s: float,
        env: dict[str, str] | None = None,
    ) -> None:
        self.children.append(
            Child(
                name=name,
                command=command,
                env=env or {},
                stack_id=self.paths.stack_id,
                log=self.paths.log(name),
                ready=ready,
                start_timeout_s=start_timeout_s,
                stop_wait_s=stop_wait_s,
            )
        )


def _update(settings: Settings, changes: dict[str, dict[str, object]]) -> Settings:
    tree = settings.model_dump()
    for concern, values in changes.items():
        tree[concern].update(values)
    return Settings.model_validate(tree)


def clean_ray(paths: StackPaths) -> None:
    """Keep the logs of the last session only."""
    sessions = sorted(path for path in paths.ray.glob("session_2*") if path.is_dir())
    for path in sessions[:-1]:
        shutil.rmtree(path, ignore_errors=True)
    with contextlib.suppress(FileNotFoundError):
        (paths.ray / "session_latest").unlink()
