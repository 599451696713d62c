"""A cluster of three hosts: stores, Ray and the application, started by the documented commands."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import yaml
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from rayapp.local.stack.programs import find_valkey
from tests.cluster.hosts import ROOT, Host, plug_bridge, unplug_bridge
from tests.support.mongo_server import mongod_binary
from tests.support.qdrant_binary import fetch_qdrant

REPLICA_SET, MONGO, QDRANT, PEERS = "rayapp", 27017, 6333, 6335
CACHE, RAYS_OWN, FRONT = 6381, 6380, 8000
# By MongoDB's own 10 s a primary that died is missed for longer than a search waits.
ELECTION = {"electionTimeoutMillis": 3_000}
START_S, WHOLE_S = 240.0, 240.0
# So many may be needed until the replicas stand on both workers.
RELEASES = 3
NOT_YET = (AssertionError, httpx.HTTPError, PyMongoError, KeyError, TypeError, ValueError)
# What only `ray up` writes on a head.
OF_RAY_UP = "--autoscaling-config=~/ray_bootstrap_config.yaml"
# Two cores stand in for three hosts: what each says it has decides where replicas may go.
SMALL = "--num-cpus=4 --object-store-memory=300000000"
SMALL_HEAD = "--object-store-memory=300000000"


@dataclass
class Cluster:
    """Head `a`, workers `b` and `c`; `d` holds what Ray itself remembers, and the cache."""

    folder: Path
    hosts: dict[str, Host] = field(default_factory=dict)
    key: str = ""
    deployed_s: float = 0.0

    @property
    def workers(self) -> list[Host]:
        return [self.hosts["b"], self.hosts["c"]]

    @property
    def fronts(self) -> list[str]:
        return [front_of(host) for host in self.workers]

    def start(self) -> None:
        plug_bridge()
        files = self._files()
        for number, name in enumerate("abcd", 10):
            self.hosts[name] = Host(f"node-{name}", number, self.folder / name, files)
            self.hosts[name].start()
        self._start_memories(self.hosts["d"])
        for host in self._of_stores():
            self.start_stores(host)
        self._make_set()
        for name in "abc":
            self.start_ray(self.hosts[name])
        begun = time.monotonic()
        self.deploy()
        self.until_whole()
        self.deployed_s = time.monotonic() - begun
        made = self.on_head("rayapp keys create ops --scope admin --user admin")
        self.key = next(word for word in made.split() if word.startswith("rk_"))

    def stop(self) -> None:
        for host in self.hosts.values():
            host.die()
        unplug_bridge()

    def _files(self) -> dict[str, str]:
        """Of `/etc` on every host."""
        peers = [f"10.77.0.{number}" for number in (10, 11, 12)]
        archives = self.folder / "archives"
        archives.mkdir()
        members = ",".join(f"{peer}:{MONGO}" for peer in peers)
        uri = f"mongodb://{members}/?replicaSet={REPLICA_SET}&w=majority&journal=true"
        variables = {
            "MONGODB_URI": f'"{uri}"',
            "QDRANT_URL": f"http://qdrant:{QDRANT}",
            "REDIS_URL": f"redis://10.77.0.13:{CACHE}",
            "RAY_REDIS_ADDRESS": f"10.77.0.13:{RAYS_OWN}",
            "RAYAPP_AUTH__SESSIONS": "true",
            "RAYAPP_AUTH__SESSION_SECRET": secrets.token_hex(32),
            "RAYAPP_BACKUP__DIR": str(archives),
            "RAYAPP_PROFILE": "prod",
        }
        names = "".join(f"10.77.0.{10 + at} node-{name}\n" for at, name in enumerate("abcd"))
        # One name for all peers, as a name service gives it.
        names += "".join(f"{peer} qdrant\n" for peer in peers)
        return {
            "rayapp.env": "".join(f"{name}={value}\n" for name, value in variables.items()),
            "rayapp.token": secrets.token_hex(32),
            "hosts": f"127.0.0.1 localhost\n{names}",
            "host.conf": "multi on\n",
        }

    def _of_stores(self) -> list[Host]:
        return [self.hosts[name] for name in "abc"]

    def _start_memories(self, host: Host) -> None:
        for name, port in (("cache", CACHE), ("rays", RAYS_OWN)):
            self.start_memory(host, name, port)

    def start_memory(self, host: Host, name: str, port: int) -> None:
        options = "--bind 0.0.0.0 --protected-mode no --save '' --maxmemory 256mb"
        host.spawn(name, f"{find_valkey()} --port {port} {options}")

    def start_stores(self, host: Host) -> None:
        self.start_mongo(host)
        self.start_qdrant(host)

    def start_mongo(self, host: Host) -> None:
        (host.folder / "mongo").mkdir(exist_ok=True)
        host.spawn(
            "mongod",
            f"{mongod_binary()} --dbpath {host.folder}/mongo --port {MONGO} --bind_ip 0.0.0.0"
            f" --replSet {REPLICA_SET} --networkMessageCompressors disabled --oplogSize 256"
            " --wiredTigerCacheSizeGB 0.25 --nounixsocket"
            " --setParameter transactionLifetimeLimitSeconds=8"
            " --setParameter diagnosticDataCollectionEnabled=false",
        )

    def start_qdrant(self, host: Host) -> None:
        folder = host.folder / "qdrant"
        folder.mkdir(exist_ok=True)
        first = self.hosts["a"]
        joined = "" if host is first else f" --bootstrap http://{first.address}:{PEERS}"
        host.spawn(
            "qdrant",
            "env QDRANT__SERVICE__HOST=0.0.0.0 QDRANT__CLUSTER__ENABLED=true"
            f" QDRANT__STORAGE__STORAGE_PATH={folder}/storage QDRANT__TELEMETRY_DISABLED=true"
            f" QDRANT__STORAGE__SNAPSHOTS_PATH={folder}/snapshots QDRANT__LOG_LEVEL=WARN"
            f" {fetch_qdrant()} --uri http://{host.address}:{PEERS}{joined}",
        )

    def _make_set(self) -> None:
        members = [
            # b by default, so that the death of another host is not that of the primary too.
            {"_id": at, "host": f"{host.address}:{MONGO}", "priority": 2 if at == 1 else 1}
            for at, host in enumerate(self._of_stores())
        ]
        uri = f"mongodb://{self.hosts['a'].address}:{MONGO}/?directConnection=true"
        config = {"_id": REPLICA_SET, "members": members, "settings": ELECTION}
        command = {"replSetInitiate": config}
        with MongoClient[dict[str, object]](uri, serverSelectionTimeoutMS=500) as client:
            until(lambda: bool(client.admin.command(command)["ok"]), START_S)
        until(lambda: self.primary() is not None, START_S)

    def primary(self) -> Host | None:
        for host in self._of_stores():
            uri = f"mongodb://{host.address}:{MONGO}/?directConnection=true"
            try:
                with MongoClient[dict[str, object]](uri, serverSelectionTimeoutMS=500) as client:
                    if client.admin.command("hello").get("isWritablePrimary"):
                        return host
            except PyMongoError:
                continue
        return None

    def start_ray(self, host: Host) -> None:
        """As `cluster.yaml` says, on a host that `ray up` did not prepare."""
        plan = yaml.safe_load((ROOT / "cluster.yaml").read_text())
        is_head = host is self.hosts["a"]
        lines = plan["head_start_ray_commands" if is_head else "worker_start_ray_commands"]
        line = lines[-1].replace(OF_RAY_UP, "").strip()
        own = SMALL_HEAD if is_head else SMALL
        host.run(f"export RAY_HEAD_IP={self.hosts['a'].address}; {line} {own}", START_S)

    def on_head(self, line: str) -> str:
        return self.hosts["a"].run(f". ~/rayapp/configs/node.sh && {line}", START_S)

    def deploy(self) -> None:
        """As `cluster.yaml` says."""
        self.on_head("serve deploy ~/rayapp/configs/serve.prod.yaml")

    def deploy_anew(self) -> None:
        """A release: Serve replaces every replica when an argument is another one."""
        plan = yaml.safe_load((ROOT / "configs" / "serve.prod.yaml").read_text())
        plan["applications"][0]["args"]["release"] = secrets.token_hex(4)
        (self.hosts["a"].home / "serve.yaml").write_text(yaml.safe_dump(plan))
        before = self.replicas()
        self.on_head("serve deploy ~/serve.yaml")
        until(lambda: not before.keys() & self.replicas().keys(), WHOLE_S)
        until(self._is_running, START_S)

    def details(self) -> dict[str, Any]:
        """What Serve tells of the application, by the dashboard of the head."""
        token = (self.hosts["a"].folder / "etc" / "rayapp.token").read_text()
        address = f"http://{self.hosts['a'].address}:8265/api/serve/applications/"
        answer = httpx.get(address, headers={"Authorization": f"Bearer {token}"}, timeout=20)
        found: dict[str, Any] = answer.json()["applications"]["rayapp"]
        return found

    def replicas(self) -> dict[str, str]:
        """The replicas of search that run, each with the address of its host."""
        rows = self.details()["deployments"]["search"]["replicas"]
        return {one["replica_id"]: one["node_ip"] for one in rows if one["state"] == "RUNNING"}

    def until_whole(self) -> None:
        """Every replica runs, each worker has one and answers, and the primary is where it was."""
        until(self._is_running, START_S)
        until(lambda: self.primary() is self.hosts["b"], WHOLE_S)
        for _ in range(RELEASES):
            if self._is_spread():
                break
            # A host that comes back gets nothing by itself: Serve moves no replica that runs.
            self.deploy_anew()
        until(lambda: all(map(is_ready, self.fronts)), WHOLE_S)

    def _is_spread(self) -> bool:
        return set(self.replicas().values()) == {host.address for host in self.workers}

    def _is_running(self) -> bool:
        return bool(self.details()["status"] == "RUNNING")

    def until_indexed(self) -> None:
        """Nothing waits for the index, and every shard has two whole copies."""
        until(lambda: not any(one[1] != "Active" for one in self.shards()), WHOLE_S)
        until(lambda: self._pending() == 0, WHOLE_S)

    def call(
        self, front: str, method: str, path: str, body: object = None, **headers: str
    ) -> dict[str, Any]:
        """What a front answers an operator, or whom the headers name, to a call that succeeds."""
        sent = {"Authorization": f"Bearer {self.key}", "X-User-Id": "admin", **headers}
        answer = httpx.request(method, f"{front}{path}", json=body, headers=sent, timeout=30)
        assert answer.is_success, (path, answer.status_code, answer.text)
        found: dict[str, Any] = answer.json()
        return found

    def _pending(self) -> int:
        found = self.call(self.fronts[0], "GET", "/api/memory/diagnostics")
        pending: int = found["index"]["pending"]
        return pending

    def shards(self) -> list[tuple[int, str]]:
        """Each copy of each shard of each collection, and how it is, as a living peer sees it."""
        base = f"http://{self.hosts['b'].address}:{QDRANT}/collections"
        names = [one["name"] for one in httpx.get(base).json()["result"]["collections"]]
        found = []
        for name in names:
            seen = httpx.get(f"{base}/{name}/cluster").json()["result"]
            parts = (*seen["local_shards"], *seen["remote_shards"])
            found += [(part["shard_id"], part["state"]) for part in parts]
        return found


def front_of(host: Host) -> str:
    return f"http://{host.address}:{FRONT}"


def is_ready(front: str) -> bool:
    return httpx.get(f"{front}/readyz", timeout=5).status_code == 200


def until(check: Callable[[], bool], limit_s: float) -> None:
    """Repeat until it holds; what is not there yet counts as not yet."""
    end = time.monotonic() + limit_s
    last: Exception | None = None
    while True:
        try:
            if check():
                return
        except NOT_YET as error:
            last = error
        assert time.monotonic() < end, f"still not after {limit_s:g} s: {last}"
        time.sleep(0.5)
