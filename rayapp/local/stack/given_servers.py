"""Asks the servers that the environment provides whether they answer; for `rayapp doctor`.

Addresses are shown without user and password.
"""

import re
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from rayapp.local.stack.readiness import Check

# A person waits for each of them; a healthy server answers in milliseconds.
ASK_TIMEOUT_S = 3.0
RAY_CLIENT_PORT = 10_001
REFUSED = (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN)


def mongodb(uri: str) -> Check:
    """Version, and that it is a replica set: changes run in transactions."""
    name, where = "mongodb", shown(uri)
    timeout_ms = int(ASK_TIMEOUT_S * 1000)
    try:
        client: MongoClient[dict[str, Any]] = MongoClient(
            uri, serverSelectionTimeoutMS=timeout_ms, connectTimeoutMS=timeout_ms
        )
        with client:
            version = client.server_info()["version"]
            hello = client.admin.command("hello")
            client.admin.command("connectionStatus")
    except OperationFailure as error:
        fix = "correct user and password in MONGODB_URI"
        return Check(name, "blocks", f"{where} refuses: {_first_line(error)}", fix)
    except (PyMongoError, ValueError) as error:
        fix = "start it, or correct or unset MONGODB_URI"
        return Check(name, "blocks", f"{where} does not answer: {_first_line(error)}", fix)
    if "setName" not in hello and hello.get("msg") != "isdbgrid":
        fix = "start it with --replSet and initiate the set"
        return Check(name, "blocks", f"{version} at {where} is no replica set", fix)
    return Check(name, "ok", f"server {version} at {where}")


def cache(url: str) -> Check:
    name, where = "cache", shown(url)
    try:
        client = Redis.from_url(
            url,
            socket_timeout=ASK_TIMEOUT_S,
            socket_connect_timeout=ASK_TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
        )
        with client:
            client.ping()
    except (RedisError, OSError, ValueError) as error:
        fix = "start it, or correct or unset REDIS_URL"
        return Check(name, "blocks", f"{where} does not answer: {_first_line(error)}", fix)
    return Check(name, "ok", f"server at {where}")


def qdrant(url: str, api_key: str) -> Check:
    """Version, readiness and the key."""
    name, where = "qdrant", shown(url)
    fix = "start it, or correct or unset QDRANT_URL"
    headers = {"api-key": api_key} if api_key else {}
    try:
        with httpx.Client(
            base_url=url, headers=headers, timeout=ASK_TIMEOUT_S, trust_env=False
        ) as http:
            root, ready, used = (http.get(path) for path in ("/", "/readyz", "/collections"))
        version = root.json()["version"]
    except httpx.HTTPError as error:
        found = f"{where} does not answer: {type(error).__name__}"
        return Check(name, "blocks", found, fix)
    except (ValueError, KeyError, TypeError, httpx.InvalidURL):
        return Check(name, "blocks", f"{where} is no Qdrant server", fix)
    if used.status_code in REFUSED:
        fix = "set RAYAPP_QDRANT__API_KEY"
        return Check(name, "blocks", f"{where} refuses the key ({used.status_code})", fix)
    if not (ready.is_success and used.is_success):
        found = f"{version} at {where} is not ready ({ready.status_code}, {used.status_code})"
        return Check(name, "blocks", found, "see its log")
    return Check(name, "ok", f"server {version} at {where}")


def ray_cluster(address: str) -> Check:
    """A TCP connection to the head; `auto` is looked up by Ray itself."""
    name = "cluster"
    if address == "auto":
        return Check(name, "note", "RAY_ADDRESS is auto", "ray status")
    parts = urlsplit(address if "://" in address else f"//{address}")
    try:
        port = parts.port or RAY_CLIENT_PORT
        socket.create_connection((parts.hostname or "", port), ASK_TIMEOUT_S).close()
    except (OSError, ValueError) as error:
        fix = "start the head, or correct or unset RAY_ADDRESS"
        return Check(name, "blocks", f"{address} does not answer: {_first_line(error)}", fix)
    return Check(name, "ok", f"head answers at {address}")


def shown(url: str) -> str:
    """The address without user, password and options; a password may hold any character."""
    scheme, _, rest = url.partition("://")
    try:
        server, options, _ = rest.rpartition("/?")  # they may hold an `@`, and secrets
        address = f"{server}/" if options else rest
        parts = urlsplit(f"{scheme}://{address.rpartition('@')[2]}")
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _first_line(error: Exception) -> str:
    """The cause; drivers append a description of their whole state."""
    text = re.split(r", Timeout:| \(configured timeouts", str(error))[0].splitlines()
    return (text[0] if text else type(error).__name__)[:200]
