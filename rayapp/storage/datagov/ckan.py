"""A catalogue from a live CKAN site, politely, and the source that keeps it as a snapshot."""

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import orjson

from rayapp.bulk.params import CKAN
from rayapp.core.deadline import Deadline
from rayapp.core.errors import ConfigError, DependencyDown
from rayapp.core.retry import RetryPolicy, retry
from rayapp.datagov.ports import Catalogue, Dataset, Field, Resource
from rayapp.datagov.rules.prepare import Anomalies
from rayapp.storage.datagov.files import FolderSource, said, words_of_slug
from rayapp.storage.datagov.parquet import ParquetSnapshots

ACTIONS = "/api/3/action/"
# The site asks programs to name themselves; some CKAN sites refuse the client library's own name.
USER_AGENT = "datagov-external-client rayapp"
# A page of 100 datasets is about 1 MB; beyond this the reply is a fault.
MAX_REPLY_BYTES = 64 << 20
MAX_REDIRECTS = 3
# Tables without an answer in a row after which the site is taken to be down, and their share
# after which the run is given up: stored columns are better than none. Our choice.
UNREAD_IN_A_ROW = 10
UNREAD_SHARE = 0.05
# The one answer that says that a table is not there. Any other refusal (a firewall's 403, a limit)
# says nothing about the table.
NOT_THERE = 404
# Pages read at most: a site that never stops sending must not keep the job for ever.
MAX_PAGES = 2_000
RETRIES = RetryPolicy(attempts=4, base_s=0.5, max_s=8.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class CkanLimits:
    """How hard the site may be asked. 20 requests/s read the whole site in two minutes."""

    page_rows: int = 100
    concurrency: int = 4
    per_second: float = 20.0
    timeout_s: float = 30.0
    total_s: float = 1_800.0
    retries: RetryPolicy = RETRIES


class _Refused(Exception):
    """The site does not want to answer this: a retry changes nothing."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


class CkanSource:
    """A reader of the catalogue over one CKAN site."""

    def __init__(self, url: str, limits: CkanLimits | None = None) -> None:
        try:
            valid = httpx.URL(url).scheme in ("http", "https")
        except httpx.InvalidURL:
            valid = False
        if not valid:
            raise ConfigError("datagov.ckan_url must be an http:// or https:// address.")
        self._limits = limits or CkanLimits()
        self._base = url.rstrip("/") + ACTIONS
        self._client = httpx.AsyncClient(
            headers={"User-Agent": USER_AGENT, "Accept": "application/json"},
            timeout=self._limits.timeout_s,
            limits=httpx.Limits(max_connections=self._limits.concurrency),
            follow_redirects=True,
            max_redirects=MAX_REDIRECTS,
        )
        self._slot = asyncio.Semaphore(self._limits.concurrency)
        self._next_at = 0.0
        self._deadline = Deadline(self._limits.total_s, time.monotonic)

    @property
    def origin(self) -> str:
        return CKAN

    async def close(self) -> None:
        await self._client.aclose()

    async def read(self) -> Catalogue:
        """DependencyDown when the site does not answer, or not with a CKAN catalogue."""
        self._deadline = Deadline(self._limits.total_s, time.monotonic)
        oddities = Anomalies()
        packages = await self._packages(oddities)
        datasets = []
        for package in packages:
            try:
                datasets.append(_dataset(package))
            except (KeyError, TypeError, ValueError, AttributeError):
                oddities.add("row_unreadable", str(package)[:80])
        tables, unread = await self._tables(_active(packages), oddities)
        return Catalogue(
            origin=self.origin,
            datasets=tuple(_with_tables(dataset, tables) for dataset in datasets),
            odd_counts=dict(oddities.counts),
            oddities={kind: tuple(found) for kind, found in oddities.samples.items()},
            unread=tuple(unread),
        )

    async def _packages(self, oddities: Anomalies) -> list[Any]:
        """Every package once; the site may change while its pages are read."""
        found: dict[str, Any] = {}
        unreadable: list[Any] = []
        start, total = 0, 1
        for _ in range(MAX_PAGES):
            params = {"rows": self._limits.page_rows, "start": start, "sort": "name asc"}
            page = await self._action("package_search", params)
            try:
                rows, total = list(page["results"]), int(page["count"])
            except (KeyError, TypeError, ValueError):
                raise DependencyDown(
                    "The site's list of datasets has another shape: check datagov.ckan_url."
                ) from None
            for row in rows:
                if isinstance(row, dict) and isinstance(row.get("id"), str):
                    found.setdefault(row["id"], row)
                else:
                    unreadable.append(row)
            start += len(rows)
            if not rows or start >= total:
                break
        oddities.add("rows_short", times=total - len(found) - len(unreadable))
        return [*found.values(), *unreadable]

    async def _tables(
        self, resource_ids: list[str], oddities: Anomalies
    ) -> tuple[dict[str, Mapping[str, Any] | str], list[str]]:
        """Columns and counts by resource, or the error of one that is not there; and the
        resources that did not answer, of which nothing is known."""
        tables: dict[str, Mapping[str, Any] | str] = {}
        unread: list[str] = []
        in_a_row, size = 0, self._limits.concurrency
        for at in range(0, len(resource_ids), size):
            some = resource_ids[at : at + size]
            answers = await asyncio.gather(*map(self._table, some))
            for one, answer in zip(some, answers, strict=True):
                if not isinstance(answer, DependencyDown):
                    tables[one], in_a_row = answer, 0
                    continue
                unread.append(one)
                oddities.add("fields_unread", one)
                in_a_row += 1
                if in_a_row >= UNREAD_IN_A_ROW:
                    raise answer
        if len(unread) > max(UNREAD_IN_A_ROW, UNREAD_SHARE * len(resource_ids)):
            raise DependencyDown(
                f"{len(unread)} of {len(resource_ids)} tables did not answer: nothing was changed, "
                "run the job again later or with --offline."
            )
        return tables, unread

    async def _table(self, resource_id: str) -> Mapping[str, Any] | str | DependencyDown:
        """Its description, the error of one that is not there, or why it did not answer."""
        try:
            found = await self._action("datastore_search", {"resource_id": resource_id, "limit": 0})
        except _Refused as refused:
            return str(refused)
        except DependencyDown as down:
            return down
        return found if isinstance(found, dict) else "The table's description has another shape."

    async def _action(self, name: str, params: Mapping[str, Any]) -> Any:
        """The `result` of an action."""

        async def call() -> Any:
            async with self._slot:
                await self._pace()
                return await self._get(name, params)

        try:
            return await retry(
                call,
                policy=self._limits.retries,
                deadline=self._deadline,
                retryable=(DependencyDown,),
                sleep=asyncio.sleep,
                random=random.random,
            )
        except _Refused as refused:
            if name == "datastore_search" and refused.status == NOT_THERE:
                raise
            raise DependencyDown(
                f"The site answers {refused} at {name}: check datagov.ckan_url and that the site "
                "lets programs in, or run with --offline."
            ) from None

    async def _get(self, name: str, params: Mapping[str, Any]) -> Any:
        try:
            async with self._client.stream("GET", self._base + name, params=params) as response:
                status = response.status_code
                if 400 <= status < 500 and status not in (408, 429):
                    raise _Refused(status)
                if status != 200:
                    raise _down(f"answers {status}", _retry_after_s(response))
                raw = bytearray()
                async for part in response.aiter_bytes():
                    raw += part
                    if len(raw) > MAX_REPLY_BYTES:
                        raise _down("sends more than a page")
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise _down(f"does not answer ({type(error).__name__})") from error
        try:
            reply = orjson.loads(raw)
        except orjson.JSONDecodeError:
            raise _down("sends a reply that is cut short or not JSON") from None
        if not isinstance(reply, dict) or reply.get("success") is not True:
            raise _down("reports a failure of its own")
        return reply.get("result")

    async def _pace(self) -> None:
        """Requests start at an even rate, whatever the number that is under way."""
        now = time.monotonic()
        at = max(now, self._next_at)
        self._next_at = at + 1.0 / self._limits.per_second
        await asyncio.sleep(at - now)


def _down(what: str, retry_after_s: float | None = None) -> DependencyDown:
    return DependencyDown(
        f"The CKAN site {what}: retry later, or run with --offline.", retry_after_s=retry_after_s
    )


def _retry_after_s(response: httpx.Response) -> float | None:
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None


def _active(packages: list[Any]) -> list[str]:
    """Ids of the resources that are tables."""
    found = []
    for package in packages:
        resources = package.get("resources") if isinstance(package, dict) else None
        for one in resources if isinstance(resources, list) else ():
            if isinstance(one, dict) and one.get("datastore_active") is True:
                found.append(str(one.get("id", "")))
    return [one for one in dict.fromkeys(found) if one]


def _dataset(package: Mapping[str, Any]) -> Dataset:
    owner = package.get("organization") or {}
    return Dataset(
        dataset_id=package["id"],
        title=said(package.get("title")),
        name=said(package.get("name")),
        organization=said(owner.get("title")),
        organization_en=words_of_slug(said(owner.get("name"))),
        description=said(package.get("notes")),
        tags=tuple(str(tag["name"]) for tag in package.get("tags") or ()),
        resources=tuple(_resource(one) for one in package.get("resources") or ()),
    )


def _resource(row: Mapping[str, Any]) -> Resource:
    return Resource(
        resource_id=str(row["id"]),
        name=said(row.get("name")),
        format=said(row.get("format")),
        url=said(row.get("url")),
    )


def _with_tables(dataset: Dataset, tables: Mapping[str, Mapping[str, Any] | str]) -> Dataset:
    if not any(one.resource_id in tables for one in dataset.resources):
        return dataset
    resources = [_with_table(one, tables.get(one.resource_id)) for one in dataset.resources]
    return replace(dataset, resources=tuple(resources))


def _with_table(resource: Resource, table: Mapping[str, Any] | str | None) -> Resource:
    if table is None:
        return resource
    if isinstance(table, str):
        return replace(resource, fields=(), total_records=None, error=table)
    fields = tuple(
        Field(name=one["id"], type=str(one.get("type") or ""))
        for one in table.get("fields") or ()
        if isinstance(one, dict) and isinstance(one.get("id"), str)
    )
    total = table["total"] if isinstance(table.get("total"), int) else None
    return replace(resource, fields=fields, total_records=total, error=None)


@dataclass(eq=False)
class SnapshotSource:
    """Implements `CatalogueSource`. `offline`: the newest snapshot instead of the reader."""

    reader: FolderSource | CkanSource
    snapshots: ParquetSnapshots
    _: KW_ONLY
    name: str
    offline: bool = False

    async def read(self) -> tuple[str, Catalogue]:
        if self.offline:
            key = await self.snapshots.newest(self.reader.origin)
            if key is None:
                raise ConfigError(
                    "Nothing was kept for an offline run: run the job once without --offline."
                )
            return key, await self.snapshots.load(key)
        catalogue = await self.reader.read()
        return await self.snapshots.keep(catalogue), catalogue

    async def load(self, key: str) -> Catalogue:
        return await self.snapshots.load(key)

    async def close(self) -> None:
        await self.reader.close()


def open_source(name: str, *, data_dir: Path, ckan_url: str, offline: bool) -> SnapshotSource:
    """`name` is `ckan` or a folder; snapshots are kept under `data_dir`."""
    reader = CkanSource(ckan_url) if name == CKAN else FolderSource(Path(name))
    snapshots = ParquetSnapshots(data_dir.resolve() / "datagov")
    return SnapshotSource(reader, snapshots, name=name, offline=offline)
