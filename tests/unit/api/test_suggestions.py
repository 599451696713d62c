"""A search that finds nothing says how memory spells it; one that finds something does not."""

import httpx
import pytest

from rayapp.memory.tiers import Tier
from tests.support.harness import Harness

SEARCH, TOOL = "/api/memory/search", "/api/memory/tools/search_memory"


@pytest.mark.parametrize(
    ("text", "asked", "meant"),
    [
        ("Dana runs Kubernetes at the harbour", "kubernets", "kubernetes"),
        ("ירושלים היא העיר של דנה", "ירושליים", "ירושלים"),
    ],
)
async def test_nothing_found(
    world: Harness, api: httpx.AsyncClient, text: str, asked: str, meant: str
) -> None:
    fields = {"tier": Tier.MEMORY_BANK, "tags": ("fact",), "importance": 0.8, "confidence": 0.8}
    await world.store(text, user="admin", memory_id="m-1", **fields)
    await world.drain()
    await world.settle()
    empty = (await api.post(SEARCH, json={"query": asked, "tiers": ["documents"]})).json()
    assert (empty["results"], empty["suggestions"]) == ([], [meant])
    full = (await api.post(SEARCH, json={"query": text})).json()
    assert full["results"]
    assert "suggestions" not in full
    called = (await api.post(TOOL, json={"query": asked, "tiers": ["documents"]})).json()
    assert called["data"]["suggestions"] == [meant]
    assert f'Did you mean "{meant}"?' in called["text"]
