"""Version, short health and disk space, for the settings page of the first client."""

from __future__ import annotations

import asyncio
import shutil
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response

from rayapp.admin.ports import Component
from rayapp.api.call import Call
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.wire import client_answers as client


@cache
def package_version() -> str:
    """Version of the installed package; `unknown` when it runs from a bare source tree."""
    try:
        return version("rayapp")
    except PackageNotFoundError:
        return "unknown"


async def system_version(call: Call) -> Response:
    return answer(
        {
            "success": True,
            "version": package_version(),
            "build": {"git_sha": None, "node_env": call.services.settings.profile},
        }
    )


async def system_health(call: Call) -> Response:
    components = await call.services.health.components()
    urls = {
        "qdrant": public_url(call.services.settings.qdrant.url),
        "embedding": public_url(call.services.settings.embedding.url),
    }
    return answer(
        {
            "success": True,
            "health": {
                "ok": all(component.healthy for component in components),
                "warnings": [f"{c.name}: {c.message}" for c in components if not c.healthy],
                "services": {c.name: _service(c, urls.get(c.name)) for c in components},
            },
        }
    )


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


async def disk_space(call: Call) -> Response:
    folder = call.services.settings.data.dir.absolute()
    usage = await asyncio.to_thread(_usage, folder)
    used = usage.total - usage.free
    return answer(
        {
            "success": True,
            "disk": {
                "path": str(folder),
                "total_bytes": usage.total,
                "free_bytes": usage.free,
                "used_bytes": used,
                "used_ratio": round(used / usage.total, 4) if usage.total else 0.0,
            },
        }
    )


def _usage(folder: Path) -> Any:
    """Of the nearest folder that exists: the data directory may not have been made yet."""
    existing = next(one for one in (folder, *folder.parents) if one.exists())
    return shutil.disk_usage(existing)


_TAG = "system"

OPERATIONS = (
    Operation(
        method="GET",
        path="/api/system/version",
        tag=_TAG,
        summary="Version",
        handler=system_version,
        answer=client.VersionAnswer,
        example={
            "success": True,
            "version": "0.1.0",
            "build": {"git_sha": None, "node_env": "local"},
        },
    ),
    Operation(
        method="GET",
        path="/api/system/health",
        tag=_TAG,
        summary="Short health",
        handler=system_health,
        answer=client.SystemHealthAnswer,
        example={
            "success": True,
            "health": {
                "ok": True,
                "warnings": [],
                "services": {"qdrant": {"ok": True, "base_url": None}},
            },
        },
    ),
    Operation(
        method="GET",
        path="/api/system/disk-space",
        tag=_TAG,
        summary="Disk space of the data directory",
        handler=disk_space,
        answer=client.DiskAnswer,
        example={
            "success": True,
            "disk": {
                "path": "/data",
                "total_bytes": 1000,
                "free_bytes": 400,
                "used_bytes": 600,
                "used_ratio": 0.6,
            },
        },
    ),
)
