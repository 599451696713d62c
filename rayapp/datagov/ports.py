"""The seams of the open-data catalogue: where it comes from, where it is kept.

Errors: an implementation raises only classes of `rayapp.core.errors`. Times are tz-aware UTC.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from pydantic import TypeAdapter

from rayapp.graphs.records import ContentEdge, ContentNode
from rayapp.memory.item import MemoryItem, Status

# Records of the catalogue, the same whatever source they came from, and as plain JSON.

Kind = Literal["category", "dataset", "resource", "expansion"]
KINDS: tuple[Kind, ...] = ("category", "dataset", "resource", "expansion")
# What the fields of a table tell about; named as the client's catalogue names them.
FLAGS = ("has_phone", "has_address", "has_location", "has_email", "has_date")
# Set on a resource that its source could not read.
ERROR_FLAG = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A column. `semantic` is the source's guess and often wrong: nothing is built on it."""

    name: str
    type: str = ""
    semantic: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One file or table. `total_records` None: nobody counted; `error`: it could not be read."""

    resource_id: str
    name: str
    format: str = ""
    url: str = ""
    fields: tuple[Field, ...] = ()
    total_records: int | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One package of the catalogue.

    Attributes:
        name: its name in addresses.
        categories: slugs, the main one first; empty when the source has none.
        flags: what the source says of its fields; None when it says nothing.
    """

    dataset_id: str
    title: str
    name: str = ""
    organization: str = ""
    organization_en: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    flags: frozenset[str] | None = None
    resources: tuple[Resource, ...] = ()

    @property
    def total_records(self) -> int:
        return sum(resource.total_records or 0 for resource in self.resources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """All of it. `oddities`: what the source itself lacked, as kind -> samples.

    `odd_counts` says how many there were; samples are only a few of them.
    `unread`: ids of resources whose table did not answer: its columns and records are not known.
    """

    origin: str
    generated_at: str = ""
    datasets: tuple[Dataset, ...] = ()
    odd_counts: Mapping[str, int] = field(default_factory=dict)
    oddities: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()


_DATASET = TypeAdapter(Dataset)


def dataset_document(dataset: Dataset) -> dict[str, Any]:
    """Plain JSON of a dataset with its resources."""
    flags = None if dataset.flags is None else sorted(dataset.flags)
    document: dict[str, Any] = _DATASET.dump_python(dataset, mode="json")
    return document | {"flags": flags}


def dataset_of(doc: Mapping[str, Any]) -> Dataset:
    """The inverse of `dataset_document`."""
    return _DATASET.validate_python(doc)


class CatalogueSource(Protocol):
    """A catalogue as it was read, kept under a key so that every worker sees the same one."""

    @property
    def name(self) -> str:
        """What it was opened with: `ckan` or a folder."""

    async def read(self) -> tuple[str, Catalogue]:
        """Read it now. ConfigError: it is not there; DependencyDown: the site does not answer."""

    async def load(self, key: str) -> Catalogue:
        """What `read` gave with this key, also in another process. ConfigError when it is gone."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PutCounts:
    """What a put wrote; items that were there already are in neither."""

    inserted: int = 0
    updated: int = 0


class SharedItems(Protocol):
    """The items and the graph of the shared tenant (`core.ids.SYSTEM_USER`).

    The only way to write them. Items of another user are refused with Forbidden, before anything
    is written.
    """

    async def record_hashes(
        self, memory_ids: Sequence[str] | None = None
    ) -> dict[str, tuple[str, Status]]:
        """Hash and status by memory id, of these or of all items in the shared tiers."""

    async def put(self, items: Sequence[MemoryItem]) -> PutCounts:
        """Store what is new or has another record hash, and restore what was archived.

        A changed item keeps its stats and the times it was made and stored at, gets the next
        version, leaves a version row and is indexed again. Repeating it writes nothing.
        """

    async def retire(self, memory_ids: Sequence[str], reason: str, at: datetime) -> int:
        """Archive those that are active; how many were."""

    async def put_graph(self, nodes: Sequence[ContentNode], edges: Sequence[ContentEdge]) -> int:
        """Make the graph exactly this; how many rows were written or removed."""
