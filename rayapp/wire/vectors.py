"""Memories by their vectors over HTTP."""

from typing import Annotated, ClassVar

from pydantic import Field

from rayapp.wire import bases
from rayapp.wire.search import Filters, TierList

# Far above the vectors of any embedder.
MAX_NUMBERS = 8_192


class VectorBody(bases.Strict):
    """A vector, and which memories are meant."""

    aliases: ClassVar = {"tier": "tiers"}
    vector: Annotated[tuple[float, ...], Field(min_length=1, max_length=MAX_NUMBERS)]
    limit: Annotated[bases.Whole, Field(ge=1, le=bases.MAX_PAGE)] = 10
    tiers: TierList | None = bases.optional("Tiers; the five core ones when absent.")
    filters: Filters | None = bases.optional("Conditions on the memories.")


class NearestQuery(Filters):
    """Which memories, and how many."""

    aliases: ClassVar = {"tier": "tiers"}
    limit: int = Field(10, ge=1, le=bases.MAX_PAGE, description="Memories.")
    tiers: TierList | None = bases.optional("Tiers; the five core ones when absent.")
    include_superseded: bool = Field(False, description="Also what a newer memory replaced.")
    always_inject: bool | None = bases.optional("Pinned, or not pinned.")
    has_code: bool | None = bases.optional("Passages of documents with code.")


class CompareBody(bases.Strict):
    """Two memories."""

    memory_ids: tuple[bases.MemoryId, bases.MemoryId]


class NearView(bases.Answer):
    """`cosine`: of the vectors, from -1 to 1; `passage`: which part of the text, from 0."""

    memory_id: str = bases.path("item.memory_id", alias="memory_id")
    tier: bases.TierWord = bases.path("item.tier", alias="tier")
    text: str = bases.path("item.text", alias="text")
    cosine: float
    passage: int


class NearAnswer(bases.Success):
    """Best first."""

    model: str
    memories: tuple[NearView, ...]


class CompareAnswer(bases.Success):
    model: str
    cosine: float
