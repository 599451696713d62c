"""Makes a started mongod the primary of its own replica set."""

from __future__ import annotations

import socket
from typing import Any

from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from rayapp.local.stack.programs import LOOPBACK, REPLICA_SET

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


def _move(client: MongoClient[dict[str, Any]], host: str) -> None:
    """The set knows this server under another port: it was busy, or the data was copied."""
    config = client.local["system.replset"].find_one()
    if config is not None and config["members"][0]["host"] != host:
        config["members"] = [{"_id": 0, "host": host}]
        config["version"] += 1
        client.admin.command("replSetReconfig", config, force=True)
