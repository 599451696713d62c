"""Version, short health and disk space, for the settings page of the first client."""

import asyncio
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.parse import urlsplit

from rayapp.admin.ports import Component
from rayapp.api.route import CurrentCall, router
from rayapp.core.disk_space import measured
from rayapp.wire import system as wire

routes = router("system")


@cache
def package_version() -> str:
    """Version of the installed package; `unknown` when it runs from a bare source tree."""
    try:
        return version("rayapp")
    except PackageNotFoundError:
        return "unknown"


@routes.get("/api/system/version", summary="Version")
async def system_version(call: CurrentCall) -> wire.VersionAnswer:
    build = wire.BuildView(node_env=call.services.settings.profile)
    return wire.VersionAnswer(version=package_version(), build=build)


@routes.get("/api/system/health", summary="Short health")
async def system_health(call: CurrentCall) -> wire.SystemHealthAnswer:
    components = await call.services.health.components()
    urls = {
        "qdrant": public_url(call.services.settings.qdrant.url),
        "embedding": public_url(call.services.settings.embedding.url),
    }
    health = wire.SystemHealthBody(
        ok=all(component.healthy for component in components),
        warnings=tuple(f"{c.name}: {c.message}" for c in components if not c.healthy),
        services={c.name: _service(c, urls.get(c.name)) for c in components},
    )
    return wire.SystemHealthAnswer(health=health)


def _service(component: Component, url: str | None) -> dict[str, Any]:
    view: dict[str, Any] = {"ok": component.healthy, "base_url": url}
    if "breaker" in component.details:
        view["circuit_breaker"] = component.details["breaker"]
    return view


def public_url(url: str) -> str | None:
    """`url` without user, password and query; None when the service is embedded."""
    if not url:
        return None
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if parts.hostname and ":" in parts.hostname else parts.hostname
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path}"


@routes.get("/api/system/disk-space", summary="Disk space of the data directory")
async def disk_space(call: CurrentCall) -> wire.DiskAnswer:
    folder = call.services.settings.data.dir.absolute()
    total, free = await asyncio.to_thread(measured, folder)
    used = total - free
    disk = wire.DiskView(
        path=str(folder),
        total_bytes=total,
        free_bytes=free,
        used_bytes=used,
        used_ratio=round(used / total, 4) if total else 0.0,
    )
    return wire.DiskAnswer(disk=disk)
