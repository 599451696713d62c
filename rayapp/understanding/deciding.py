"""How much a memory matters: what the rules need to know is gathered, then they decide."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime

import numpy as np

from rayapp.core.errors import Conflict, RayappError
from rayapp.core.ids import org_of
from rayapp.core.runtime import Runtime
from rayapp.core.settings.model import UnderstandingSettings
from rayapp.graphs.ports import GraphStore
from rayapp.inference.ports import Embedder, Encoder
from rayapp.inference.sentence_heads import READ_AS, Reading, SentenceHeads
from rayapp.memory.item import MemoryItem
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from rayapp.text.concepts import extract_concepts
from rayapp.text.language import detect_language
from rayapp.understanding.ports import UnderstandingStore
from rayapp.understanding.records import (
    MOST_MENTIONS,
    Importance,
    Mention,
    Speaker,
    Spoken,
    Understanding,
)
from rayapp.understanding.rules.importance import (
    RECURRING_WITHIN,
    Circumstances,
    ImportanceParams,
    Weighing,
    recurs,
)
from rayapp.understanding.rules.signals import SignalWords
from rayapp.understanding.rules.sources import Side, sides_of

# What the encoder may take for a sentence, seconds.
READ_S = 5.0
# Sources that texts of one batch are compared with at once; with more, each asks for its own.
MOST_PAST = 2_000
# Kinds of concepts that name somebody or something.
NAMES = frozenset({"entity", "acronym"})


@dataclass(frozen=True)
class SentenceKinds:
    """The encoder, the static model and the heads over both."""

    encoder: Encoder
    embedder: Embedder
    heads: SentenceHeads

    async def read(self, sentence: str) -> Mapping[str, float]:
        """What it is, by kind. Raises DependencyDown."""
        (vectors,) = await self.encoder.read([sentence], READ_AS, timeout_s=READ_S)
        (words,) = await self.embedder.embed([sentence], READ_AS, timeout_s=READ_S)
        unit = words / max(float(np.linalg.norm(words)), 1e-9)
        reading = Reading(detect_language(sentence), vectors, unit)
        return dict(self.heads.probabilities(reading).items())


@dataclass(eq=False)
class Deciding:
    """Asks the past and the heads, and lets the rules decide."""

    store: UnderstandingStore
    graphs: GraphStore
    words: SignalWords
    params: ImportanceParams
    _: KW_ONLY
    runtime: Runtime
    kinds: SentenceKinds | None = None
    # Whether a text, said at a time, states something lasting of a person.
    states_fact: Callable[[str, datetime], bool] | None = None

    def policy(self, org_id: str | None) -> UnderstandingSettings:
        """The settings of a tenant."""
        return self.runtime.settings.understanding.of_tenant(org_id)

    def check_on(self, user_id: str) -> None:
        """Raises Conflict where understanding is off."""
        if not self.policy(org_of(user_id)).enabled:
            raise Conflict(
                "Understanding is off here: set understanding.enabled, or store the text with "
                "POST /api/memory/store.",
                code="understanding_off",
            )

    async def decide(self, item: MemoryItem, row: Understanding) -> tuple[Importance, ...]:
        """Of each side of it."""
        (found,) = await self.decide_all([(item, row)])
        return found

    async def decide_all(
        self, texts: Sequence[tuple[MemoryItem, Understanding]]
    ) -> list[tuple[Importance, ...]]:
        """Of texts of one user, each side of each, as if one came after the other."""
        if not texts:
            return []
        first = texts[0][0]
        policy, scope = self.policy(first.org_id), ReadScope(first.user_id, include_shared=False)
        past = await self._past(scope, [row for _, row in texts])
        sides = [sides_of(item) for item, _ in texts]
        known = await self._known(scope, [item for item, _ in texts], sides)
        found = []
        for (item, row), of_text, names in zip(texts, sides, known, strict=True):
            said = row.mentions[-1]
            again = recurs(said, await past.before(row))
            tested = not set(policy.test_topics).isdisjoint(item.topics)
            scored = []
            for side, named in zip(of_text, names, strict=True):
                around = Circumstances(
                    recurs=again,
                    names=named,
                    fact=item.tier is Tier.MEMORY_BANK or self._states_fact(item, side),
                    tested=tested,
                )
                scored.append(await self._scored(side, policy, around))
            found.append(tuple(scored))
            past.add(row)
        return found

    async def _past(self, scope: ReadScope, rows: Sequence[Understanding]) -> "_Past":
        topics = dict.fromkeys(topic for row in rows for topic in row.topics)
        since = min(row.mentions[-1].at for row in rows) - RECURRING_WITHIN
        most = min(MOST_MENTIONS * len(rows), MOST_PAST)
        found = await self.store.spoken(scope, list(topics), since, most)
        whole = {one.memory_id: one for one in found} if len(found) < most else None
        return _Past(self.store, scope, whole)

    def _states_fact(self, item: MemoryItem, side: Side) -> bool:
        if self.states_fact is None or side.speaker is not Speaker.USER:
            return False
        return self.states_fact(side.text, item.created_at)

    async def _scored(
        self, side: Side, policy: UnderstandingSettings, around: Circumstances
    ) -> Importance:
        began = time.perf_counter()
        # A pass of the encoder for each sentence: of what a person said, which is short.
        asked = policy.heads and side.speaker is Speaker.USER
        weighing = Weighing(
            side.text,
            self.words,
            self.params,
            speaker=side.speaker,
            threshold=policy.threshold,
            around=around,
            heads=asked and self.kinds is not None,
        )
        await self._ask(weighing)
        self.runtime.metrics.observe(
            "understanding_stage_s", time.perf_counter() - began, stage="importance"
        )
        return weighing.importance()

    async def _ask(self, weighing: Weighing) -> None:
        """Ask the heads what may still decide; where they cannot be asked now, the tables do."""
        try:
            while self.kinds is not None and (sentence := weighing.to_ask()) is not None:
                weighing.hear(sentence, await self.kinds.read(sentence))
        except (RayappError, TimeoutError):
            self.runtime.metrics.count("degraded", reason="importance_heads")
            weighing.without_heads()

    async def _known(
        self, scope: ReadScope, items: Sequence[MemoryItem], sides: Sequence[Sequence[Side]]
    ) -> list[list[int]]:
        """Of each side, names in it that are known of the user already, from other memories."""
        keys = [
            [_names_in(side.text, item) for side in of_text]
            for item, of_text in zip(items, sides, strict=True)
        ]
        asked = {key for of_text in keys for some in of_text if len(some) > 1 for key in some}
        nodes = await self.graphs.nodes(scope, sorted(asked)) if asked else []
        sources = {one.node_id: set(one.memory_ids) for one in nodes}
        return [
            [
                sum(bool(sources.get(key, set()) - {item.memory_id}) for key in some)
                if len(some) > 1
                else 0
                for some in of_text
            ]
            for item, of_text in zip(items, keys, strict=True)
        ]


def _names_in(text: str, item: MemoryItem) -> list[str]:
    concepts = extract_concepts(text, entities=item.entities)
    return list(dict.fromkeys(one.key for one in concepts if one.type in NAMES))


@dataclass(eq=False)
class _Past:
    """What the user has said before. `known`: by memory, what the store has of all topics that are
    asked for; None: it is too much, and each text asks for its own."""

    store: UnderstandingStore
    scope: ReadScope
    known: dict[str, Spoken] | None
    _added: dict[str, Spoken] = field(default_factory=dict)

    async def before(self, row: Understanding) -> list[Mention]:
        """When one of its topics was spoken of; the latest times."""
        topics, since = set(row.topics), row.mentions[-1].at - RECURRING_WITHIN
        known = self.known
        if known is None:
            found = await self.store.spoken(self.scope, row.topics, since, MOST_MENTIONS)
            known = {one.memory_id: one for one in found}
        spoken = [
            one
            for one in {**known, **self._added}.values()
            if one.mentions[0].at >= since and not topics.isdisjoint(one.mentions[0].topics)
        ]
        spoken.sort(key=lambda one: one.mentions[0].at, reverse=True)
        return [mention for one in spoken[:MOST_MENTIONS] for mention in one.mentions]

    def add(self, row: Understanding) -> None:
        """This one is decided on, and counts for those after it."""
        one = Spoken(memory_id=row.memory_id, mentions=row.mentions)
        self._added[row.memory_id] = one
