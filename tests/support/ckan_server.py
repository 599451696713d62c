"""A CKAN site over real HTTP on loopback that plays a catalogue, well or badly."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import orjson

from rayapp.datagov.ports import Dataset, Resource
from tests.support.socket_server import listening

Send = Callable[[dict[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[dict[str, Any]]]
NOT_FOUND = {"success": False, "error": {"message": "Not Found", "__type": "Not Found Error"}}


class CkanServer:
    """ASGI application.

    Attributes:
        packages: what it lists.
        tables: the reply of `datastore_search` by resource id.
        rows_max: most packages in one page.
        delay_s: pause before each answer.
        failures: so many requests of an action are answered with `status` first; -1: all.
        status: see `failures`.
        raw: a body sent instead of the right one, by action, once each.
        cut: actions whose next reply breaks off in the middle, once each.
        count: a number of packages it claims instead of the right one.
        change: edits a page of packages before it is sent.
        requests: action, parameters and headers of every request.
        most_at_once: largest number of requests that were under way together.
    """

    def __init__(self, datasets: tuple[Dataset, ...] = ()) -> None:
        self.url = ""
        self.packages = [package_of(dataset) for dataset in datasets]
        self.tables = {
            resource.resource_id: table_of(resource)
            for dataset in datasets
            for resource in dataset.resources
            if resource.fields
        }
        self.rows_max = 1_000
        self.delay_s = 0.0
        self.failures: dict[str, int] = {}
        self.status = 500
        self.headers: list[tuple[bytes, bytes]] = []
        self.raw: dict[str, bytes] = {}
        self.cut: set[str] = set()
        self.count: int | None = None
        self.change: Callable[[list[Any]], list[Any]] = lambda packages: packages
        self.requests: list[tuple[str, dict[str, str], dict[str, str]]] = []
        self.most_at_once = 0
        self._under_way = 0

    def asked(self, action: str) -> list[dict[str, str]]:
        """The parameters of every request of an action."""
        return [params for name, params, _ in self.requests if name == action]

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        action = scope["path"].removeprefix("/api/3/action/")
        query = parse_qs(scope["query_string"].decode())
        params = {name: values[0] for name, values in query.items()}
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.requests.append((action, params, headers))
        self._under_way += 1
        self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            await asyncio.sleep(self.delay_s)
            await self._reply(action, params, send)
        finally:
            self._under_way -= 1

    async def _reply(self, action: str, params: dict[str, str], send: Send) -> None:
        left = self.failures.get(action, 0)
        if left:
            self.failures[action] = left - 1
            await _answer(send, self.status, b"no", self.headers)
            return
        raw = self.raw.pop(action, None)
        if raw is not None:
            await _answer(send, 200, raw, [])
            return
        status, body = self._body(action, params)
        content = orjson.dumps(body)
        if action in self.cut:
            self.cut.remove(action)
            await _answer(send, status, content[: len(content) // 2], [], length=len(content))
            return
        await _answer(send, status, content, [])

    def _body(self, action: str, params: dict[str, str]) -> tuple[int, Any]:
        if action == "package_search":
            start, rows = int(params.get("start", 0)), int(params.get("rows", 10))
            page = self.packages[start : start + min(rows, self.rows_max)]
            count = len(self.packages) if self.count is None else self.count
            return 200, {"success": True, "result": {"count": count, "results": self.change(page)}}
        table = self.tables.get(params.get("resource_id", ""))
        if action == "datastore_search" and table is not None:
            return 200, {"success": True, "result": table}
        return 404, NOT_FOUND


async def _answer(
    send: Send,
    status: int,
    body: bytes,
    headers: list[tuple[bytes, bytes]],
    length: int | None = None,
) -> None:
    """`length` above that of the body: the client sees the connection break off."""
    size = str(len(body) if length is None else length).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", size), *headers]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


def package_of(dataset: Dataset) -> dict[str, Any]:
    """A dataset as `package_search` shows it."""
    return {
        "id": dataset.dataset_id,
        "name": dataset.name or dataset.dataset_id,
        "title": dataset.title,
        "notes": dataset.description,
        "organization": {
            "name": dataset.organization_en.lower().replace(" ", "_") or "owner",
            "title": dataset.organization,
        },
        "tags": [{"name": tag} for tag in dataset.tags],
        "resources": [
            {
                "id": one.resource_id,
                "name": one.name,
                "format": one.format,
                "url": one.url,
                "datastore_active": bool(one.fields),
            }
            for one in dataset.resources
        ],
    }


def table_of(resource: Resource) -> dict[str, Any]:
    """A table as `datastore_search` describes it."""
    return {
        "fields": [{"id": one.name, "type": one.type or "text"} for one in resource.fields],
        "total": resource.total_records or 0,
        "records": [],
    }


@asynccontextmanager
async def ckan_server(datasets: tuple[Dataset, ...] = ()) -> AsyncIterator[CkanServer]:
    """A running server on a free loopback port, in this event loop."""
    app = CkanServer(datasets)
    async with listening(app) as app.url:
        yield app
