"""The application of `serve_options`: an echo route, and one that asks a second deployment.

A module of its own: pickled from a main script, its annotations could not be resolved by FastAPI.
"""

from typing import Any

from fastapi import FastAPI
from ray import serve

OPTIONS: Any = {"max_ongoing_requests": 128, "ray_actor_options": {"num_cpus": 0.1}}
api = FastAPI()


class Inner:
    async def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        return body


@serve.ingress(api)
class Front:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    @api.post("/echo")
    async def echo(self, body: dict[str, Any]) -> dict[str, Any]:
        return body

    @api.post("/hop")
    async def hop(self, body: dict[str, Any]) -> Any:
        return await self.inner.remote(body)


def application() -> serve.Application:
    deployment: Any = serve.deployment(**OPTIONS)
    built: serve.Application = deployment(Front).bind(deployment(Inner).bind())
    return built
