"""The application in process: real ASGI, no socket."""

from collections.abc import Callable, Mapping
from typing import Any

import httpx

from rayapp.api.app import create_api
from rayapp.api.services import Services
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings

LOCAL = "http://127.0.0.1:8000"


def client_of(
    services: Services | Callable[[], Services | None], headers: Mapping[str, str] | None = None
) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app=create_api(services)), base_url=LOCAL, headers=headers
    )


def settings_with(**concerns: Any) -> Settings:
    return load_settings("local", env={}, overrides=concerns)


def short_time_limit() -> Settings:
    """Requests end after 50 ms; the limits within a request must stay below."""
    return settings_with(serve={"request_timeout_s": 0.05}, search={"timeout_s": 0.04})


def json_bytes(client: httpx.AsyncClient, method: str, path: str, body: bytes) -> Any:
    """A request with a body that no JSON writer would produce."""
    return client.request(method, path, content=body, headers={"Content-Type": "application/json"})
