"""How much a memory matters: what the rules need to know is gathered, then they decide."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
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
from rayapp.understanding.records import MOST_MENTIONS, Importance, Speaker, Understanding
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

    async def earlier(self, rows: Sequence[Understanding]) -> Sequence[Understanding] | None:
        """What a user said before, of the topics of rows of theirs; None: too much to be read at
        once."""
        scope = ReadScope(rows[0].user_id, include_shared=False)
        topics = dict.fromkeys(topic for row in rows for topic in row.topics)
        found = await self.store.speaking_of(scope, list(topics), min(map(_since, rows)))
        return found if len(found) < MOST_MENTIONS else None

    async def decide(
        self, item: MemoryItem, row: Understanding, earlier: Sequence[Understanding] | None = None
    ) -> tuple[Importance, ...]:
        """Of each side of it. `earlier`: as that was read for several; None: it is read here."""
        policy, scope = self.policy(item.org_id), ReadScope(item.user_id, include_shared=False)
        since = _since(row)
        if earlier is None:
            earlier = await self.store.speaking_of(scope, row.topics, since)
        near = [one for one in earlier if one.said_at >= since]
        again = recurs(row.mentions[-1], [heard for one in near for heard in one.mentions])
        tested = not set(policy.test_topics).isdisjoint(item.topics)
        found = []
        for side in sides_of(item):
            around = Circumstances(
                recurs=again,
                names=await self._names(scope, item, side),
                fact=item.tier is Tier.MEMORY_BANK or self._states_fact(item, side),
                tested=tested,
            )
            found.append(await self._scored(side, policy, around))
        return tuple(found)

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

    async def _names(self, scope: ReadScope, item: MemoryItem, side: Side) -> int:
        """Names in it that are known of the user already, from other memories."""
        concepts = extract_concepts(side.text, entities=item.entities)
        keys = [one.key for one in concepts if one.type in NAMES]
        if len(keys) < 2:
            return 0
        nodes = await self.graphs.nodes(scope, keys)
        others = [one for one in nodes if set(one.memory_ids) - {item.memory_id}]
        return len(others)


def _since(row: Understanding) -> datetime:
    """From when on a topic of it counts as coming again."""
    return row.mentions[-1].at - RECURRING_WITHIN
