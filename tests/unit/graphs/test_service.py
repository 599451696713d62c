"""The views of the graphs: what each call answers and how often it asks the truth."""

from itertools import pairwise
from typing import Any

import pytest

from rayapp.container import bootstrap
from rayapp.core.errors import NotFound, StoreDown
from rayapp.graphs.rules.views import MAX_CONTENT, MAX_EDGES, MAX_ROUTING
from rayapp.graphs.service import GraphsService
from rayapp.memory.item import MemoryItem, Outcome, Stats, Status
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from rayapp.text.concepts import extract_concepts
from tests.support.builders import an_item
from tests.support.clock import START, FakeClock
from tests.support.stores import InMemoryMemoryStore
from tests.unit.graphs.fake_graphs import Counting, GraphRows, runtime
from tests.unit.graphs.rules.rows import action, counted, edge, example, later, node, routing

READ = ReadScope("dana")


class World:
    """The service over rows that a test writes down."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.rows = GraphRows()
        self.graphs: Any = Counting(self.rows)
        self.items: Any = Counting(InMemoryMemoryStore(self.clock))
        self.service = GraphsService(
            self.graphs, self.items, texts=bootstrap.load_texts(), runtime=runtime(self.clock)
        )

    async def store(self, **fields: Any) -> MemoryItem:
        item = an_item(**fields)
        assert (await self.items.inner.insert(item)).inserted
        return item

    @property
    def reads(self) -> list[str]:
        return [*self.graphs.calls, *self.items.calls]


@pytest.fixture
def world() -> World:
    return World()


def grown(world: World) -> None:
    """A graph larger than any picture, with a chain of concepts in both languages."""
    names = [f"n{at:03}" for at in range(300)]
    world.rows.routing = [
        routing(name, {Tier.PATTERNS: counted(5)}, last_seen_at=later(at))
        for at, name in enumerate(names)
    ]
    world.rows.content = [node(name, quality_sum=float(300 - at)) for at, name in enumerate(names)]
    world.rows.edges = [
        edge(one, other, weight=float(at))
        for at, (one, other) in enumerate(
            (names[a], names[b]) for a in range(300) for b in range(a + 1, min(300, a + 20))
        )
    ]
    world.rows.used = [
        action("general", f"t{at}", counted(at), tier) for at in range(30) for tier in Tier
    ]


# --- pictures ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "kinds", "reads"),
    [
        ("routing", {"routing": MAX_ROUTING}, 1),
        ("content", {"content": MAX_CONTENT}, 3),
        ("both", {"routing": MAX_ROUTING, "content": MAX_CONTENT, "action": 25}, 4),
    ],
)
async def test_a_picture_shows_what_its_mode_asks_for(
    world: World, mode: Any, kinds: dict[str, int], reads: int
) -> None:
    grown(world)
    view = await world.service.picture(READ, mode)
    found = [one.type for one in view.nodes]
    assert {kind: found.count(kind) for kind in set(found)} == kinds
    assert len(view.edges) <= MAX_EDGES
    assert [one.weight for one in view.edges] == sorted(
        (one.weight for one in view.edges), reverse=True
    )
    ids = {one.id for one in view.nodes}
    assert all({one.source, one.target} <= ids for one in view.edges)
    assert len(world.reads) == reads <= 5


@pytest.mark.parametrize(("mode", "reads"), [("routing", 2), ("content", 4), ("both", 4)])
async def test_a_listing_is_the_picture_and_its_rows(world: World, mode: Any, reads: int) -> None:
    grown(world)
    listing = await world.service.listing(READ, mode, concepts=250, actions=3)
    assert len(world.reads) == len(set(world.reads)) == reads
    assert listing.picture == await world.service.picture(READ, mode)
    assert listing.concepts == await world.service.concepts(READ, 250)
    assert listing.actions == await world.service.actions(READ, context_type=None, limit=3)


async def test_a_picture_takes_the_newest_routing_concepts(world: World) -> None:
    grown(world)
    view = await world.service.picture(READ, "routing")
    assert {one.concept for one in view.nodes} == {f"n{at:03}" for at in range(270, 300)}


async def test_a_user_without_a_graph_sees_an_empty_picture(world: World) -> None:
    grown(world)
    view = await world.service.picture(ReadScope("omer"), "both")
    assert (view.nodes, view.edges) == ((), ())


async def test_concepts_and_actions_are_rows(world: World) -> None:
    grown(world)
    assert [row.concept for row in await world.service.concepts(READ, 2)] == ["n299", "n298"]
    rows = await world.service.actions(READ, context_type="general", limit=3)
    assert [row.counters.uses for row in rows] == [29, 29, 29]
    assert await world.service.actions(READ, context_type="docker", limit=3) == ()


# --- definitions ---------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "routing_", "content_"])
@pytest.mark.parametrize("concept", ["docker", "ביטוח לאומי"])
async def test_a_concept_is_defined_by_all_graphs(world: World, prefix: str, concept: str) -> None:
    fact = await world.store(tier=Tier.MEMORY_BANK)
    tried = await world.store(tier=Tier.HISTORY)
    world.rows.routing = [routing(concept, examples=(example(tried, Outcome.WORKED),))]
    world.rows.content = [node(concept, label="Label", memory_ids=(fact.memory_id, "gone"))]
    world.rows.edges = [edge(concept, f"x{at}", weight=at) for at in range(40)]
    found = await world.service.definition(READ, prefix + concept)
    assert (found.concept.key, found.concept.label) == (concept, "Label")
    assert (found.routing, found.node) == (world.rows.routing[0], world.rows.content[0])
    assert [one.weight for one in found.edges] == list(range(39, 14, -1))
    assert {one.memory_id for one in found.memories} == {fact.memory_id, tried.memory_id}
    assert found.actions == ()
    assert len(world.reads) <= 5


async def test_a_concept_of_the_routing_graph_alone_is_defined(world: World) -> None:
    world.rows.routing = [routing("docker", label="Docker")]
    found = await world.service.definition(READ, "docker")
    assert (found.concept.label, found.node, found.edges, found.memories) == (
        "Docker",
        None,
        (),
        (),
    )


async def test_a_label_or_its_translation_finds_the_concept(world: World) -> None:
    expansions = bootstrap.load_texts().expansions
    key = extract_concepts("", tags=("cars",), expansions=expansions)[0].key
    world.rows.content = [node(key)]
    for name in ("cars", "Car", "מכוניות", "המכונית"):
        assert (await world.service.definition(READ, name)).concept.key == key


async def test_an_action_is_found_though_its_context_holds_an_underscore(world: World) -> None:
    tried = await world.store(tier=Tier.HISTORY)
    world.rows.used = [
        action(
            "coding_help",
            "search_memory",
            counted(3),
            tier,
            examples=(example(tried, Outcome.WORKED),),
        )
        for tier in (Tier.HISTORY, Tier.PATTERNS)
    ] + [action("coding_help", "other", counted(9))]
    found = await world.service.definition(READ, "action_coding_help_search_memory")
    assert found.concept.label == "search_memory@coding_help"
    assert [row.action for row in found.actions] == ["search_memory"] * 2
    assert [one.memory_id for one in found.memories] == [tried.memory_id]
    assert len(world.reads) <= 5


async def test_only_living_memories_define_a_concept(world: World) -> None:
    kept = await world.store(tier=Tier.MEMORY_BANK)
    archived = await world.store(tier=Tier.MEMORY_BANK, status=Status.ARCHIVED)
    over = await world.store(expires_at=START)
    foreign = await world.store(user_id="omer", tier=Tier.MEMORY_BANK)
    names = tuple(one.memory_id for one in (kept, archived, over, foreign))
    world.rows.content = [node("docker", memory_ids=names)]
    found = await world.service.definition(READ, "docker")
    assert [one.memory_id for one in found.memories] == [kept.memory_id]


async def test_a_definition_shows_the_ten_memories_changed_last(world: World) -> None:
    stored = [await world.store(tier=Tier.MEMORY_BANK, updated_at=later(at)) for at in range(15)]
    world.rows.content = [node("docker", memory_ids=tuple(one.memory_id for one in stored))]
    found = await world.service.definition(READ, "docker")
    assert [one.memory_id for one in found.memories] == [
        one.memory_id for one in reversed(stored[5:])
    ]


@pytest.mark.parametrize(
    "name", ["unknown", "content_unknown", "action_docker_nothing", "action_plan", "", "לא ידוע"]
)
async def test_what_no_graph_knows_is_not_found(world: World, name: str) -> None:
    grown(world)
    with pytest.raises(NotFound, match="take an id"):
        await world.service.definition(READ, name)
    assert len(world.reads) <= 5


async def test_another_users_concept_is_not_found(world: World) -> None:
    world.rows.content = [node("docker")]
    with pytest.raises(NotFound):
        await world.service.definition(ReadScope("omer"), "docker")


@pytest.mark.parametrize("name", ["docker", "action_docker_search_memory"])
async def test_a_new_memory_under_a_judged_id_defines_nothing(world: World, name: str) -> None:
    new = await world.store(stored_at=later(5))
    told = (example(new, Outcome.FAILED, later(1)),)
    world.rows.routing = [routing("docker", examples=told)]
    world.rows.used = [action("docker", "search_memory", counted(1), examples=told)]
    assert (await world.service.definition(READ, name)).memories == ()
    told = (example(new, Outcome.WORKED, later(6)), *told)
    world.rows.routing = [routing("docker", examples=told)]
    world.rows.used = [action("docker", "search_memory", counted(1), examples=told)]
    (found,) = (await world.service.definition(READ, name)).memories
    assert found.memory_id == new.memory_id


# --- paths ---------------------------------------------------------------------------------


def chain(world: World, keys: list[str]) -> None:
    world.rows.content = [node(key) for key in keys]
    world.rows.edges = [edge(one, other) for one, other in pairwise(keys)]


async def test_a_path_of_six_edges_is_found_with_five_reads(world: World) -> None:
    keys = ["docker", "b", "c", "משרד", "e", "f", "kubernetes"]
    chain(world, keys)
    found = await world.service.path(READ, "content_docker", "Kubernetes")
    assert [one.node_id for one in found.nodes] == keys
    assert [{one.source, one.target} for one in found.edges] == [
        set(step) for step in pairwise(keys)
    ]
    assert len(world.reads) <= 5


async def test_the_shortest_of_two_ways_is_taken(world: World) -> None:
    chain(world, ["docker", "b", "c", "kubernetes"])
    world.rows.edges.append(edge("docker", "kubernetes", weight=0.1))
    found = await world.service.path(READ, "docker", "kubernetes")
    assert [one.node_id for one in found.nodes] == ["docker", "kubernetes"]
    assert [one.weight for one in found.edges] == [0.1]


async def test_a_concept_is_next_to_itself(world: World) -> None:
    chain(world, ["docker", "b"])
    found = await world.service.path(READ, "Docker", "docker")
    assert ([one.node_id for one in found.nodes], found.edges) == (["docker"], ())


@pytest.mark.parametrize(
    ("source", "target"), [("docker", "island"), ("docker", "unknown"), ("", "docker")]
)
async def test_without_a_way_the_path_is_empty(world: World, source: str, target: str) -> None:
    chain(world, ["docker", "b"])
    world.rows.content.append(node("island"))
    found = await world.service.path(READ, source, target)
    assert (found.nodes, found.edges) == ((), ())
    assert len(world.reads) <= 5


async def test_a_way_beyond_the_reads_is_not_found(world: World) -> None:
    chain(world, list("abcdefgh"))
    assert (await world.service.path(READ, "content_a", "content_h")).nodes == ()
    assert len(world.reads) <= 5


# --- the rest ------------------------------------------------------------------------------


@pytest.mark.parametrize("dry_run", [True, False])
async def test_backfill_says_how_many_items_will_be_looked_at(world: World, dry_run: bool) -> None:
    assert await world.service.backfill(WriteScope("dana"), 250, dry_run=dry_run) == 12
    assert world.rows.asked == {"limit": 250, "dry_run": dry_run}


async def test_patterns_come_by_their_wilson_score(world: World) -> None:
    for score, wilson in ((0.9, 0.2), (0.1, 0.8), (0.5, 0.5)):
        stats = Stats(score=score, wilson_score=wilson)
        await world.store(tier=Tier.PATTERNS, stats=stats)
    await world.store(tier=Tier.PATTERNS, status=Status.ARCHIVED)
    await world.store(tier=Tier.HISTORY, stats=Stats(wilson_score=0.9))
    found = await world.service.patterns(READ, 2)
    assert [one.stats.wilson_score for one in found] == [0.8, 0.5]
    assert await world.service.patterns(READ, 0) == ()


async def test_stats_are_those_of_the_content_graph(world: World) -> None:
    chain(world, ["a", "b", "c"])
    found = await world.service.stats(READ)
    assert (found.nodes, found.edges) == (3, 2)


async def test_an_absent_truth_is_said(world: World) -> None:
    world.graphs.error = StoreDown("away")
    calls = (
        world.service.picture(READ, "both"),
        world.service.definition(READ, "docker"),
        world.service.path(READ, "a", "b"),
        world.service.stats(READ),
    )
    for call in calls:
        with pytest.raises(StoreDown):
            await call
