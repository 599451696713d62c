"""Merging nodes that are one, splitting one that was two, and taking either back.

A merge is a row of a ledger and a pointer: both nodes stay in the store with what their own sources
gave, and statements read as of the node that is kept. So taking back needs nothing but the row, and
a text that is deleted later takes its own share with it, merged or not.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.core.runtime import Clock
from rayapp.core.scope import ReadScope, WriteScope
from rayapp.memory.item import derived_id
from rayapp.understanding.statements.ports import (
    KnowledgeReads,
    KnowledgeRows,
    KnowledgeStore,
    StatementsWanted,
)
from rayapp.understanding.statements.records import (
    Given,
    Mention,
    Merge,
    MergeKind,
    MergeState,
    Span,
    Statement,
)
from rayapp.understanding.statements.requests import (
    Merged,
    MergeDecision,
    MergePreview,
    NewMerge,
    NewSplit,
)
from rayapp.understanding.statements.rules.facts import meant_by, read_as
from rayapp.understanding.statements.rules.identity import whole
from rayapp.understanding.statements.rules.registry import Ontology
from rayapp.understanding.statements.settlement import counted, settle_slots, with_parts

# Rows of the ledger that are looked at, and statements that one merge may move.
MOST_MERGES, MOST_MOVED = 5_000, 20_000
# Who decides when it is sure.
RESOLVER = "resolver"


class _DryError(Exception):
    """Ends a change of which nothing is to stay."""

    def __init__(self, done: Merged) -> None:
        super().__init__()
        self.done = done


@dataclass(eq=False)
class MergeService:
    """Implements merges and splits over the typed graph of one user at a time."""

    store: KnowledgeStore
    ontology: Ontology
    clock: Clock

    # --- reading

    async def listed(
        self, scope: ReadScope, state: MergeState | None, limit: int, node_id: str | None = None
    ) -> list[tuple[Merge, MergePreview]]:
        """The ledger, the latest first, each with what it does. `node_id`: only what this node, or
        what is a part of it, stands in."""
        reads = self.store.reads(scope)
        rows = await reads.merges(state, limit if node_id is None else MOST_MERGES)
        ids = sorted({node for one in rows for node in (one.kept_id, one.gone_id)})
        nodes = {one.entity_id: one for one in await reads.entities(ids)}
        found = [
            (one, MergePreview(nodes[one.kept_id], nodes[one.gone_id]))
            for one in rows
            if one.kept_id in nodes and one.gone_id in nodes
        ]
        return [one for one in found if node_id is None or node_id in one[1].node_ids][:limit]

    async def waiting(self, scope: ReadScope) -> int:
        """Proposals that nobody has decided on."""
        return len(await self.listed(scope, MergeState.PENDING, MOST_MERGES))

    # --- changes

    async def merge(self, scope: WriteScope, new: NewMerge) -> Merged:
        """Two nodes become one. `dry_run`: only what it would do is told.

        Raises NotFound; InvalidInput: the same node, or of two types; Conflict: one of them is a
        part of another one already.
        """
        row = self.row_of(scope.user_id, new.kept_id, new.gone_id)
        row = self._decided(row, MergeState.DONE, new.by or _who(scope))

        async def work(rows: KnowledgeRows) -> Merged:
            await self._check_pair(rows, new.kept_id, new.gone_id)
            return await self._apply(rows, scope.user_id, row, new.dry_run)

        return await self._change(scope, work)

    async def split(self, scope: WriteScope, new: NewSplit) -> Merged:
        """What these memories say of a node is said of a new one.

        Raises NotFound; InvalidInput: a memory does not name the node, or none would be left.
        """
        made = derived_id(scope.user_id, "split", new.node_id, *sorted(new.memory_ids))
        row = Merge(
            merge_id=derived_id(scope.user_id, "split of", made),
            kind=MergeKind.SPLIT,
            state=MergeState.DONE,
            kept_id=new.node_id,
            gone_id=made,
            created_at=self.clock.now(),
            decided_at=self.clock.now(),
            decided_by=_who(scope),
        )

        async def work(rows: KnowledgeRows) -> Merged:
            moved = await self._part(rows, scope.user_id, new, made)
            result = await self._apply(rows, scope.user_id, row, new.dry_run)
            return replace(result, moved=moved)

        return await self._change(scope, work)

    async def decide(self, scope: WriteScope, merge_id: str, decision: MergeDecision) -> Merged:
        """Accept or decline a proposal, or take back what was decided.

        Raises NotFound; Conflict: there is nothing to decide, or to take back.
        """

        async def work(rows: KnowledgeRows) -> Merged:
            row = await rows.merge(merge_id)
            if row is None:
                raise NotFound("No merge has this id; list merges to find it.")
            new = self._decided(row, _next(row, decision), _who(scope))
            if new.joins:
                await self._check_pair(rows, row.kept_id, row.gone_id)
            return await self._apply(rows, scope.user_id, new, dry_run=False)

        return await self._change(scope, work)

    def row_of(self, user_id: str, kept_id: str, gone_id: str) -> Merge:
        """The row of two nodes, in whichever order they are named."""
        return Merge(
            merge_id=derived_id(user_id, "merge of", *sorted((kept_id, gone_id))),
            state=MergeState.PENDING,
            kept_id=kept_id,
            gone_id=gone_id,
            created_at=self.clock.now(),
        )

    def _decided(self, row: Merge, state: MergeState, who: str) -> Merge:
        return replace(row, state=state, decided_at=self.clock.now(), decided_by=who)

    async def _change(
        self, scope: WriteScope, work: Callable[[KnowledgeRows], Awaitable[Merged]]
    ) -> Merged:
        async def run(rows: KnowledgeRows) -> Merged:
            done = await work(rows)
            if done.dry_run:
                raise _DryError(done)
            return done

        try:
            return await self.store.change(scope, run)
        except _DryError as dry:
            return dry.done

    async def _check_pair(self, rows: KnowledgeReads, kept_id: str, gone_id: str) -> None:
        if kept_id == gone_id:
            raise InvalidInput("A node cannot be merged with itself; name two nodes.")
        nodes = {one.entity_id: one for one in await rows.entities([kept_id, gone_id])}
        if len(nodes) < 2:
            raise NotFound("No node has one of these ids; list nodes by type to find them.")
        kept, gone = nodes[kept_id], nodes[gone_id]
        if kept.type != gone.type:
            raise InvalidInput(
                f"A {kept.type} and a {gone.type} cannot be one; merge nodes of one type."
            )
        part = next((one for one in (gone, kept) if one.merged_into), None)
        if part is not None:
            raise Conflict(
                "The node is a part of another one already; undo that merge first.",
                code="already_merged",
                details={"node_id": part.root_id},
            )

    async def _apply(self, rows: KnowledgeRows, user_id: str, row: Merge, dry_run: bool) -> Merged:
        """Set the pointers that the ledger gives with this row, and read statements by them."""
        ledger = [
            one for one in await rows.merges(None, MOST_MERGES) if one.merge_id != row.merge_id
        ]
        before = _roots([*ledger, *([old] if (old := await rows.merge(row.merge_id)) else [])])
        after = _roots([*ledger, row])
        pair = {row.kept_id, row.gone_id}
        top = {before.get(one, one) for one in pair} | {after.get(one, one) for one in pair} | pair
        group = {
            one for one in {*before, *after} if before.get(one) in top or after.get(one) in top
        }
        group |= top
        nodes = await rows.entities(sorted(group))
        kept = set(after.values())
        pointed = [
            replace(one, merged_into=after.get(one.entity_id), joined=one.entity_id in kept)
            for one in nodes
        ]
        changed = [new for old, new in zip(nodes, pointed, strict=True) if old != new]
        await rows.put_entities(changed)
        moved, ended = await self._reread(rows, user_id, sorted(group), after)
        await rows.put_merges([row])
        found = {one.entity_id: one for one in await rows.entities(sorted(pair))}
        root = after.get(row.kept_id, row.kept_id)
        shown = await with_parts(rows, await rows.entities([root]))
        return Merged(
            row,
            whole(*shown[root]),
            MergePreview(found[row.kept_id], found[row.gone_id]),
            moved=moved,
            ended=ended,
            dry_run=dry_run,
        )

    async def _reread(
        self, rows: KnowledgeRows, user_id: str, group: Sequence[str], roots: Mapping[str, str]
    ) -> tuple[int, tuple[str, ...]]:
        """How many statements that name one of the group read otherwise, and facts that ended."""
        wanted = StatementsWanted(naming=tuple(group))
        said = await rows.statements(wanted, MOST_MOVED + 1)
        if len(said) > MOST_MOVED:
            raise Conflict(
                f"More than {MOST_MOVED} statements name these nodes; split them first.",
                code="too_many_statements",
            )
        pairs = [(one, read_as(one, user_id, roots, self.ontology)) for one in said]
        old = [one for one, new in pairs if one != new]
        new = [new for one, new in pairs if one != new]
        await rows.put_statements(new)
        await self._premises(rows, {one.fact_id: now.fact_id for one, now in pairs})
        await settle_slots(rows, new, old, self.ontology)
        return len(new), _ended(said, await rows.statements(wanted, MOST_MOVED))

    async def _premises(self, rows: KnowledgeRows, renamed: Mapping[str, str]) -> None:
        """What rests on a fact rests on it under its new id."""
        names = {old: new for old, new in renamed.items() if old != new}
        if not names:
            return
        resting = await rows.statements(StatementsWanted(premise_ids=tuple(names)), MOST_MOVED)
        await rows.put_statements(
            [
                replace(
                    one,
                    premises=tuple(
                        replace(each, fact_id=names.get(each.fact_id, each.fact_id))
                        for each in one.premises
                    ),
                )
                for one in resting
            ]
        )

    async def _part(self, rows: KnowledgeRows, user_id: str, new: NewSplit, made: str) -> int:
        """Give what some memories say of a node to a new one; how many statements moved."""
        node = next(iter(await rows.entities([new.node_id])), None)
        if node is None:
            raise NotFound("No node has this id; list nodes by type to find it.")
        if node.merged_into:
            raise Conflict(
                "The node is a part of another one; undo that merge instead.",
                code="already_merged",
                details={"node_id": node.merged_into},
            )
        part = replace(
            node, entity_id=made, keys=(), names=(), perspectives=(), mentions=0,
            synonyms=(), attributes={}, verified_by=None, merged_into=None, joined=False,
        )  # fmt: skip
        for source_id in new.memory_ids:
            given = next(iter(await rows.given([source_id])), None)
            mention = _mention(given, new.node_id)
            if given is None or mention is None:
                raise InvalidInput(
                    "One of the memories does not name this node; see its memory_ids.",
                    details={"field": "memory_ids", "memory_id": source_id},
                )
            node = counted(node, mention, None, None)
            part = counted(part, None, replace(mention, entity_id=made), given.said_at)
            await rows.put_given([_with(given, mention, made)])
        if node.mentions < 1 and not node.verified:
            raise InvalidInput(
                "Every memory of the node was named; leave at least one with it.",
                details={"field": "memory_ids"},
            )
        await rows.put_entities([node, part])
        said = await rows.statements(StatementsWanted(source_ids=tuple(new.memory_ids)), MOST_MOVED)
        moved = [one for one in said if new.node_id in _meant_ids(one)]
        put = [_of_part(one, user_id, new.node_id, made, self.ontology) for one in moved]
        await rows.delete_statements([one.statement_id for one in moved])
        await rows.put_statements(put)
        await self._premises(
            rows, {old.fact_id: now.fact_id for old, now in zip(moved, put, strict=True)}
        )
        await settle_slots(rows, put, moved, self.ontology)
        return len(put)


def _roots(ledger: Iterable[Merge]) -> dict[str, str]:
    """By each node that is a part, the node under which it is shown."""
    above = {one.gone_id: one.kept_id for one in ledger if one.joins}

    def top(node_id: str) -> str:
        seen = {node_id}
        while node_id in above and above[node_id] not in seen:
            node_id = above[node_id]
            seen.add(node_id)
        return node_id

    return {one: top(one) for one in above}


def _next(row: Merge, decision: MergeDecision) -> MergeState:
    """The state after a decision. Raises Conflict."""
    if decision is MergeDecision.UNDO:
        if row.state is MergeState.DONE:
            return MergeState.UNDONE
        if row.state is MergeState.DECLINED:
            return MergeState.PENDING
        raise Conflict("Nothing was decided that could be undone.", code="nothing_to_undo")
    if row.state is not MergeState.PENDING:
        raise Conflict("It was decided already; undo that first.", code="already_decided")
    return MergeState.DONE if decision is MergeDecision.ACCEPT else MergeState.DECLINED


def _ended(before: Sequence[Statement], after: Sequence[Statement]) -> tuple[str, ...]:
    """Facts that held and do not any more, because the one node has another value since."""
    held = {one.statement_id for one in before if one.span is Span.HOLDS and one.valid_to is None}
    ended = (one for one in after if one.valid_to is not None and one.statement_id in held)
    return tuple(sorted({one.fact_id for one in ended}))


def _mention(given: Given | None, node_id: str) -> Mention | None:
    mentions = given.mentions if given is not None else ()
    return next((one for one in mentions if one.entity_id == node_id), None)


def _with(given: Given, mention: Mention, made: str) -> Given:
    mentions = tuple(
        replace(one, entity_id=made) if one == mention else one for one in given.mentions
    )
    return replace(given, mentions=mentions, entity_ids=tuple(one.entity_id for one in mentions))


def _meant_ids(one: Statement) -> set[str | None]:
    meant = meant_by(one)
    return {meant.subject_id, meant.object_id, meant.holder_id, meant.target_id}


def _of_part(
    one: Statement, user_id: str, node_id: str, made: str, ontology: Ontology
) -> Statement:
    """The same said of the part."""
    meant = meant_by(one)
    subject = made if meant.subject_id == node_id else meant.subject_id
    ends = [
        made if end == node_id else end
        for end in (meant.object_id, meant.holder_id, meant.target_id)
    ]
    own = replace(
        one, subject_id=subject, object_id=ends[0], holder_id=ends[1], target_id=ends[2], meant=None
    )
    own = read_as(own, user_id, {}, ontology)
    statement_id = derived_id(user_id, one.source_id or "", own.fact_id, one.span.value)
    return replace(own, statement_id=statement_id)


def _who(scope: WriteScope) -> str:
    return scope.principal or scope.user_id
