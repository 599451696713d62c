"""Derives episodes and thoughts from what a text gave to the typed graph: one difference."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rayapp.core.errors import EmbedderDown
from rayapp.core.runtime import Clock
from rayapp.core.scope import ReadScope
from rayapp.inference.ports import Embedder
from rayapp.memory.item import derived_id
from rayapp.memory.ports import MemoryStore
from rayapp.text.normalize import content_hash
from rayapp.understanding.derived.ports import DerivedRows, DerivedWanted
from rayapp.understanding.derived.records import Derived, DerivedKind, Evidence, State
from rayapp.understanding.derived.rules.patterns import PatternReader, Sign
from rayapp.understanding.derived.rules.scenes import GAP, joined, middle, scene_of, worded
from rayapp.understanding.derived.rules.support import (
    revised,
    settled,
    with_evidence,
    without_source,
)
from rayapp.understanding.derived.rules.wording import Wording
from rayapp.understanding.ports import SourceText
from rayapp.understanding.rules.signals import SignalWords
from rayapp.understanding.rules.sources import stands
from rayapp.understanding.statements.records import Graph, Level

# Scenes about the time of a text that it is compared with, and what that may take within a change,
# seconds.
MOST_SCENES = 20
EMBED_S = 3.0


@dataclass(frozen=True)
class DerivedRules:
    """What reads patterns and scenes, and words them."""

    patterns: PatternReader
    wording: Wording
    signals: SignalWords


@dataclass(eq=False)
class DerivingService:
    """Turns what texts of one user gave to the typed graph into episodes and thoughts."""

    items: MemoryStore
    embedder: Embedder
    rules: DerivedRules
    clock: Clock

    async def settle(
        self, rows: DerivedRows, sources: Sequence[SourceText], graphs: Sequence[Graph]
    ) -> None:
        """What each text speaks for is put in the place of what it spoke for before, one text after
        the other. `graphs`: what each of them says."""
        signs = [
            self.rules.patterns.signs(source, graph)
            for source, graph in zip(sources, graphs, strict=True)
        ]
        # Read at once what is asked for one by one below, where the rows are held.
        await rows.of_sources([one.source_id for one in sources])
        await rows.by_ids([each.derived_id for some in signs for each in some])
        quotes = _Quotes(self.embedder)
        for source, graph, spoken in zip(sources, graphs, signs, strict=True):
            part = scene_of(source, graph, self.rules.signals)
            scene_id = None if part is None else await self._scene(rows, source, part, quotes)
            await self._settle(rows, source, spoken, scene_id, part)

    async def take_back(self, rows: DerivedRows, user_id: str, source_ids: Sequence[str]) -> None:
        """What rests on these loses them, and falls where too little is left. What a person told of
        one stays while it is there, whether it matters or not."""
        await rows.of_sources(source_ids)
        for source_id in source_ids:
            found = await rows.of_sources([source_id])
            told = any(one.made_by is not None for one in found)
            stays = told and await self._is_there(user_id, source_id)
            losing = [one for one in found if one.made_by is None or not stays]
            await self._put(rows, [(one, without_source(one, source_id)) for one in losing])

    async def _is_there(self, user_id: str, source_id: str) -> bool:
        item = await self.items.get(ReadScope(user_id, include_shared=False), source_id)
        return item is not None and item.memory_id == source_id and stands(item, self.clock.now())

    # --- scenes

    async def _scene(
        self, rows: DerivedRows, source: SourceText, part: Evidence, quotes: "_Quotes"
    ) -> str:
        """The id of the scene that a part belongs to, or begins."""
        wanted = DerivedWanted(
            kind=DerivedKind.EPISODE,
            states=(State.ACCEPTED,),
            subject_ids=(source.subject_id,),
            perspective_ids=(source.perspective_owner_id,),
            since=part.happened_at - GAP,
            until=part.happened_at + GAP,
        )
        found = await rows.wanted(wanted, MOST_SCENES)
        alone = (without_source(one, part.source_id) for one in found if one.made_by is None)
        others = [one for one in alone if one.sources]
        scene = joined(part, others, await quotes.cosines(part, others)) if others else None
        if scene is not None:
            return scene.derived_id
        about = (source.subject_id or "", source.perspective_owner_id or "")
        made = derived_id(source.user_id, "episode", *about, part.source_id)
        if any(one.derived_id == made for one in others):
            # It began a scene that goes on without it.
            made = derived_id(made, content_hash(part.quote))
        return made

    # --- one difference

    async def _settle(
        self,
        rows: DerivedRows,
        source: SourceText,
        signs: Sequence[Sign],
        scene_id: str | None,
        part: Evidence | None,
    ) -> None:
        # What a person made of a source stands until the source goes.
        found = await rows.of_sources([source.source_id])
        resting = [one for one in found if one.made_by is None]
        stored = {one.derived_id: one for one in resting}
        new = {one.derived_id for one in signs} | ({scene_id} if scene_id else set())
        missing = sorted(new - stored.keys())
        stored |= {one.derived_id: one for one in await rows.by_ids(missing)} if missing else {}
        changes: list[tuple[Derived | None, Derived]] = []
        for sign in signs:
            old = stored.get(sign.derived_id)
            base = old or self._new(source, sign.derived_id, DerivedKind.THOUGHT)
            level = sign.pattern.level
            base = replace(base, pattern=sign.pattern, level=level)
            changes.append((old, with_evidence(base, sign.evidence)))
        if scene_id is not None and part is not None:
            scene = stored.get(scene_id)
            begun = scene or self._new(source, scene_id, DerivedKind.EPISODE)
            changes.append((scene, with_evidence(begun, part)))
        changes += [
            (one, without_source(one, source.source_id))
            for one in resting
            if one.derived_id not in new
        ]
        await self._put(rows, changes)

    def _new(self, source: SourceText, key: str, kind: DerivedKind) -> Derived:
        scene = kind is DerivedKind.EPISODE
        now = self.clock.now()
        return Derived(
            derived_id=key,
            kind=kind,
            state=State.ACCEPTED if scene else State.FORMING,
            level=Level.EXPLICIT,
            sources=(),
            subject_id=source.subject_id,
            perspective_owner_id=source.perspective_owner_id,
            first_at=source.said_at,
            last_at=source.said_at,
            created_at=now,
            updated_at=now,
        )

    async def _put(
        self, rows: DerivedRows, changes: Sequence[tuple[Derived | None, Derived]]
    ) -> None:
        now = self.clock.now()
        put, gone, told = [], [], []
        for old, changed in changes:
            row = settled(changed)
            if row is None:
                gone.append(changed.derived_id)
                continue
            row = self._worded(row)
            if old is not None and old.is_shown and _reads_otherwise(old, row):
                row = revised(old, row, now, None)
            if row == old:
                continue
            row = replace(row, updated_at=now)
            put.append(row)
            if row.state in TOLD and not (old is not None and old.is_shown):
                told.append(row)
        await rows.put(put)
        await rows.delete(gone)
        await rows.tell(told)

    def _worded(self, row: Derived) -> Derived:
        """By the rules, unless a person gave it its words, or declined it and nothing is left."""
        if row.worded_by is not None or not row.sources:
            return row
        if row.kind is DerivedKind.EPISODE:
            title, text = worded(row)
        elif row.pattern is not None:
            last = (row.agreeing or row.sources)[-1]
            title, text = self.rules.wording.of_thought(row.pattern, last.quote)
        else:
            return row
        return replace(row, title=title, text=text)


@dataclass(eq=False)
class _Quotes:
    """What the parts of scenes mean. Within a change each is asked for once; an embedder that is
    away is not waited for again."""

    embedder: Embedder
    _vectors: dict[str, np.ndarray] = field(default_factory=dict)
    _away: bool = False

    async def cosines(self, part: Evidence, scenes: Sequence[Derived]) -> list[float] | None:
        """Of a part to the middle of each scene; None: nobody knows now."""
        parts = [[one.quote for one in scene.sources] for scene in scenes]
        if not await self._ask([part.quote, *(quote for some in parts for quote in some)]):
            return None
        own = middle([self._vectors[part.quote]])
        rest = (middle([self._vectors[quote] for quote in some]) for some in parts)
        return [float(np.dot(own, one)) for one in rest]

    async def _ask(self, quotes: Sequence[str]) -> bool:
        new = [one for one in dict.fromkeys(quotes) if one not in self._vectors]
        if new and not self._away:
            try:
                found = await self.embedder.embed(new, "passage", timeout_s=EMBED_S)
                self._vectors.update(zip(new, found, strict=True))
            except EmbedderDown:
                self._away = True
        return not (new and self._away)


# States in which a row is news.
TOLD = frozenset({State.PENDING, State.ACCEPTED})


def _reads_otherwise(old: Derived, row: Derived) -> bool:
    return (old.title, old.text, old.state) != (row.title, row.text, row.state)
