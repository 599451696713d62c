"""A newer memory replaces an older one: what is hidden, what is kept, and what is refused."""

from datetime import timedelta

import pytest

from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.memory.requests import ItemQuery, MemoryEdit, NewMemory
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.harness import Harness

ME = WriteScope("dana")
READ = ReadScope("dana")
DAY = timedelta(days=1)


async def moved(service: Harness) -> None:
    """`old` a day ago, `new` now."""
    await service.store("lives in Haifa גרה בחיפה", memory_id="old", tier=Tier.HISTORY)
    await service.drain()
    service.clock.advance(DAY.total_seconds())
    await service.store(
        "lives in Jaffa גרה ביפו", memory_id="new", tier=Tier.HISTORY, supersedes="old"
    )


async def listed(service: Harness, **where: object) -> set[str]:
    page = await service.services.memories.page(READ, ItemFilter(**where), ItemQuery())  # type: ignore[arg-type]
    return {item.memory_id for item in page.items}


@pytest.mark.parametrize("question", ["lives in", "איפה גרה"])
@pytest.mark.parametrize("indexed", [True, False])
async def test_the_older_one_is_hidden_and_kept(
    service: Harness, question: str, *, indexed: bool
) -> None:
    await moved(service)
    if indexed:
        await service.drain()
    now = service.clock.now()
    assert await service.found(question) == ["new"]
    assert await listed(service) == {"new"}
    assert await listed(service, include_superseded=True) == {"old", "new"}
    both = ItemFilter(include_superseded=True)
    assert await service.found(question, where=both) == ["new"], "its validity has ended"
    assert await service.found(question, as_of=now - DAY / 2) == ["old"]
    assert await service.found(question, as_of=now + DAY) == ["new"]
    old = await service.services.memories.get(READ, "old")
    new = await service.services.memories.get(READ, "new")
    assert (old.superseded_by, old.valid_to) == ("new", now)
    assert (new.supersedes, new.valid_from) == ("old", now)


async def test_the_change_may_have_happened_earlier(service: Harness) -> None:
    await service.store("lives in Haifa", memory_id="old", tier=Tier.HISTORY)
    before = service.clock.now()
    service.clock.advance(10 * DAY.total_seconds())
    at = before + 3 * DAY
    await service.store(
        "lives in Jaffa", memory_id="new", tier=Tier.HISTORY, supersedes="old", valid_from=at
    )
    assert await service.found("lives in", as_of=at - timedelta(seconds=1)) == ["old"]
    assert await service.found("lives in", as_of=at) == ["new"]


async def test_only_the_end_of_a_chain_is_shown(service: Harness) -> None:
    times = []
    for number, older in ((0, None), (1, "m0"), (2, "m1")):
        times.append(service.clock.now())
        await service.store(
            f"the linter is number {number}",
            memory_id=f"m{number}",
            tier=Tier.HISTORY,
            supersedes=older,
        )
        service.clock.advance(DAY.total_seconds())
    await service.drain()
    assert await service.found("linter") == ["m2"]
    for number, at in enumerate(times):
        assert await service.found("linter", as_of=at + DAY / 2) == [f"m{number}"]


async def test_a_batch_may_hold_a_chain(service: Harness) -> None:
    new = [
        NewMemory(text="tea at four", memory_id="a", tier=Tier.HISTORY),
        NewMemory(text="tea at five", memory_id="b", tier=Tier.HISTORY, supersedes="a"),
        NewMemory(text="tea at six", memory_id="c", tier=Tier.HISTORY, supersedes="nothing"),
    ]
    results = await service.services.memories.store_batch(ME, new)
    assert [one.status for one in results] == ["stored", "stored", "rejected"]
    assert results[2].code == "bad_supersedes"
    assert await service.found("tea") == ["b"]


@pytest.mark.parametrize(
    ("named", "error", "words"),
    [
        ("gone", InvalidInput, "no memory of yours"),
        ("theirs", InvalidInput, "no memory of yours"),
        ("bad id!", InvalidInput, "must be the id"),
        ("new", InvalidInput, "itself"),
        ("archived", InvalidInput, "restore it first"),
        ("deleted", InvalidInput, "no memory of yours"),
        ("closed", Conflict, "already superseded by closer"),
    ],
)
async def test_what_cannot_be_replaced_is_said_and_nothing_is_stored(
    service: Harness, named: str, error: type[Exception], words: str
) -> None:
    memories = service.services.memories
    await service.store("of omer", user="omer", memory_id="theirs")
    for name in ("archived", "deleted", "closed"):
        await service.store(f"text of {name}", memory_id=name)
    await memories.archive(ME, "archived")
    await memories.delete(ME, "deleted")
    await service.store("text of the closer", memory_id="closer", supersedes="closed")
    with pytest.raises(error, match=words):
        await service.store("the new text", memory_id="new", supersedes=named)
    with pytest.raises(NotFound):
        await memories.get(READ, "new")


async def test_a_time_before_the_older_one_began_is_refused(service: Harness) -> None:
    now = service.clock.now()
    await service.store("lives in Haifa", memory_id="old", valid_from=now)
    with pytest.raises(InvalidInput, match="later valid_from"):
        await service.store("lives in Jaffa", supersedes="old", valid_from=now - DAY)


@pytest.mark.parametrize("memory_id", ["new", None])
async def test_a_repeated_store_changes_nothing(service: Harness, memory_id: str | None) -> None:
    await service.store("lives in Haifa", memory_id="old", tier=Tier.HISTORY)
    new = NewMemory(text="lives in Jaffa", memory_id=memory_id, tier=Tier.HISTORY, supersedes="old")
    first = await service.services.memories.store(ME, new)
    closed = await service.services.memories.get(READ, "old")
    again = await service.services.memories.store(ME, new)
    assert (again.status, again.memory_id) == ("duplicate", first.memory_id)
    assert await service.services.memories.get(READ, "old") == closed


async def test_a_repeat_finishes_what_a_crash_left(service: Harness) -> None:
    await service.store("lives in Haifa", memory_id="old", tier=Tier.HISTORY)
    await service.store("lives in Jaffa", memory_id="new", tier=Tier.HISTORY)
    await service.store("lives in Jaffa", tier=Tier.HISTORY, supersedes="old")
    assert await service.found("lives in") == ["new"]
    assert (await service.services.memories.get(READ, "old")).superseded_by == "new"


async def test_a_repeated_import_does_not_bring_the_older_one_back(service: Harness) -> None:
    await moved(service)
    await service.store("lives in Haifa גרה בחיפה", memory_id="old", tier=Tier.HISTORY)
    assert await service.found("lives in") == ["new"]


async def test_what_is_said_again_is_current_again(service: Harness) -> None:
    await moved(service)
    service.clock.advance(DAY.total_seconds())
    again = "lives in Haifa גרה בחיפה"
    await service.store(again, memory_id="again", tier=Tier.HISTORY, supersedes="new")
    assert await service.found("lives in") == ["again"]
    memories = service.services.memories
    assert (await memories.get(READ, "new")).superseded_by == "again"
    assert (await memories.get(READ, "old")).superseded_by == "new"


async def test_deleting_the_newer_one_does_not_bring_the_older_one_back(service: Harness) -> None:
    await moved(service)
    await service.services.memories.delete(ME, "new")
    assert await service.found("lives in") == []
    await service.services.memories.restore(ME, "old")
    assert await service.found("lives in") == ["old"]
    old = await service.services.memories.get(READ, "old")
    assert (old.superseded_by, old.valid_to) == (None, None)
    await service.drain()
    assert await service.found("lives in") == ["old"]


async def test_edits_of_either_keep_the_link(service: Harness) -> None:
    await moved(service)
    memories = service.services.memories
    await memories.edit(ME, "old", MemoryEdit(text="lived in Haifa"))
    await memories.edit(ME, "new", MemoryEdit(text="lives in Old Jaffa"))
    await service.drain()
    assert await service.found("lives in") == ["new"]
    assert (await memories.get(READ, "old")).superseded_by == "new"
    versions = await memories.versions(READ, "old")
    assert "superseded by new" in {row.reason for row in versions}


async def test_a_closed_pin_is_not_listed(service: Harness) -> None:
    fact = {"tier": Tier.MEMORY_BANK, "tags": ("f",), "importance": 0.9, "confidence": 0.9}
    await service.store("speaks French", memory_id="a", always_inject=True, **fact)
    await service.store("speaks Spanish", memory_id="b", supersedes="a", **fact)
    assert await listed(service, always_inject=True) == set()
    assert await listed(service) == {"b"}


async def test_a_resolved_one_is_hidden_from_its_end_on(service: Harness) -> None:
    now = service.clock.now()
    await service.store("debating two plans", memory_id="q", valid_to=now)
    assert await listed(service, valid_at=now) == set()
    assert await service.found("plans") == []
    assert await service.found("plans", as_of=now - DAY) == ["q"]
