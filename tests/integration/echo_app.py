"""The smallest application the local stack can deploy."""

import os

from fastapi import FastAPI
from ray import serve

from rayapp.core.settings.model import Settings

api = FastAPI()


@serve.deployment(
    ray_actor_options={"num_cpus": 0.1}, max_ongoing_requests=64, graceful_shutdown_timeout_s=1
)
@serve.ingress(api)
class Echo:
    def __init__(self, mongodb_uri: str) -> None:
        self._uri = mongodb_uri

    @api.get("/healthz")
    async def healthz(self) -> dict[str, bool]:
        return {"ok": True}

    @api.get("/readyz")
    async def readyz(self) -> dict[str, bool]:
        return {"ready": True}

    @api.get("/echo")
    async def echo(self) -> dict[str, str | int]:
        return {"mongodb_uri": self._uri, "pid": os.getpid()}


def build(settings: Settings) -> serve.Application:
    return Echo.bind(settings.mongo.uri)  # type: ignore[no-any-return, attr-defined]
