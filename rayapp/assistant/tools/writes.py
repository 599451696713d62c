"""The tools that change memories: takeaways, facts and outcomes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from rayapp.assistant.context.rules.prompt_block import cut_line
from rayapp.assistant.records import ToolAnswer, ToolCall
from rayapp.assistant.tools.rules import texts
from rayapp.assistant.tools.rules.arguments import the_one
from rayapp.assistant.tools.rules.definitions import (
    AddToMemoryBank,
    ArchiveMemory,
    FactTool,
    RecordResponse,
    ScoreMemories,
    UpdateMemory,
)
from rayapp.assistant.tools.rules.parameters import MAX_RESULTS, Reference
from rayapp.core.errors import InvalidInput, NotFound
from rayapp.learning.outcomes import OutcomesService
from rayapp.learning.records import OutcomeAnswer, OutcomeRequest, ResponseRequest
from rayapp.learning.rules.outcomes import fingerprint
from rayapp.learning.rules.scores import together
from rayapp.memory.bank import MemoryBankService
from rayapp.memory.item import MemoryItem, Outcome, Source, SourceType, Status
from rayapp.memory.requests import MemoryEdit, NewMemory
from rayapp.memory.rules.lifecycle import room_made
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import Tier, parse_tier, tier_name
from rayapp.search.ports import Receipt
from rayapp.search.requests import SearchQuery
from rayapp.search.service import SearchService

# Facts that a refusal names when several fit; more would be no choice but a list.
CANDIDATES = 5
CANDIDATE_CHARS = 80


@dataclass(eq=False)
class ToolWrites:
    """One method per tool. Everything is checked before the first write.

    `documents`: what callers call the books tier (`tier_name`).
    """

    memories: MemoriesService
    bank: MemoryBankService
    search: SearchService
    outcomes: OutcomesService
    documents: bool = field(init=False)

    # --- outcomes

    async def record_response(
        self, scope: WriteScope, call: ToolCall, args: RecordResponse
    ) -> ToolAnswer:
        related = args.related
        if related is not None:
            related = tuple([await self._literal(scope, one) for one in related])
        asked = ResponseRequest(
            key_takeaway=args.key_takeaway,
            outcome=args.outcome,
            related=related,
            receipt_id=args.receipt_id,
            conversation_id=call.conversation_id,
            idempotency_key=call.idempotency_key,
            recorder=call.recorder,
        )
        found = await self.outcomes.record_response(scope, asked)
        data = texts.scored_data(found.scored, self.documents)
        data |= {"memory_id": found.memory_id, "duplicate": found.duplicate}
        text = f"Kept the takeaway. {texts.scored_text(found.scored)}"
        return ToolAnswer(call.name, text, data)

    async def score(self, scope: WriteScope, call: ToolCall, args: ScoreMemories) -> ToolAnswer:
        named = [(await self._literal(scope, one.memory), one.outcome) for one in args.scores]
        receipt = await self._scored(scope, call, named)
        if receipt is None:
            receipt = await self._receipt(scope, call, args.receipt_id)
        requests = _group(named, receipt, _base(call, args, receipt))
        ids = [one for request in requests for one in request.memory_ids or ()]
        if len(requests) > 1:
            read = ReadScope(scope.user_id)
            await asyncio.gather(*(self.memories.get(read, one) for one in ids))
        found = together(await self._record(scope, requests))
        data = texts.scored_data(found, self.documents)
        return ToolAnswer(call.name, texts.scored_text(found), data)

    async def _record(
        self, scope: WriteScope, requests: Sequence[OutcomeRequest]
    ) -> list[OutcomeAnswer]:
        """One after the other; the rest of a call that broke off is about its first receipt."""
        answers: list[OutcomeAnswer] = []
        for request in requests:
            about = answers[0].receipt_id if answers else request.receipt_id
            found = await self.outcomes.record(scope, replace(request, receipt_id=about))
            answers.append(found)
        return answers

    # --- facts of the memory bank

    async def add(self, scope: WriteScope, call: ToolCall, args: AddToMemoryBank) -> ToolAnswer:
        new = NewMemory(
            text=args.content,
            tier=Tier.MEMORY_BANK,
            tags=args.tags,
            importance=args.importance,
            confidence=args.confidence,
            always_inject=args.always_inject,
            source=Source(type=SourceType.ASSISTANT, conversation_id=call.conversation_id),
        )
        kept = await self.bank.add(scope, new)
        duplicate = kept.status == "duplicate"
        text = "Known already" if duplicate else "Kept in the memory bank"
        if kept.archived:
            text += f"; {room_made(kept.archived)}"
        gone = list(kept.archived)
        data = {"memory_id": kept.memory_id, "duplicate": duplicate, "archived": gone}
        return ToolAnswer(call.name, f"{text}: memory_id {kept.memory_id}.", data)

    async def update(self, scope: WriteScope, call: ToolCall, args: UpdateMemory) -> ToolAnswer:
        fact = await self._fact(scope, call, args)
        if fact.status is not Status.ACTIVE or fact.superseded_by is not None:
            gone = "is archived" if fact.superseded_by is None else "was replaced by a newer one"
            raise InvalidInput(
                f"memory_id: {fact.memory_id} {gone} and is shown to nobody; use "
                "add_to_memory_bank to keep what holds now.",
                details={"field": "memory_id"},
            )
        edit = MemoryEdit(
            text=args.new_content,
            tags=args.tags or None,
            importance=args.importance,
            confidence=args.confidence,
            expected_version=fact.version,
            reason=call.name,
        )
        changed = await self.memories.edit(scope, fact.memory_id, edit)
        text = f"Updated the fact: memory_id {changed.memory_id}."
        data = {"memory_id": changed.memory_id, "version": changed.version, "before": fact.text}
        return ToolAnswer(call.name, text, data)

    async def archive(self, scope: WriteScope, call: ToolCall, args: ArchiveMemory) -> ToolAnswer:
        fact = await self._fact(scope, call, args)
        was_active = fact.status is Status.ACTIVE
        if was_active:
            fact = await self.memories.archive(
                scope, fact.memory_id, reason=args.reason or call.name
            )
        state = "Archived the fact" if was_active else "The fact was archived already"
        data = {"memory_id": fact.memory_id, "archived": True, "duplicate": not was_active}
        return ToolAnswer(call.name, f"{state}: memory_id {fact.memory_id}.", data)

    async def _fact(self, scope: WriteScope, call: ToolCall, args: FactTool) -> MemoryItem:
        """The fact that a call means: by its id or number, else by words that only it holds."""
        if args.memory_id is not None:
            memory_id = await self._named(scope, call, args.memory_id)
            fact = await self.memories.get(scope.own, memory_id)
            if fact.tier is not Tier.MEMORY_BANK:
                tier = tier_name(fact.tier, self.documents)
                raise InvalidInput(
                    f"memory_id: {memory_id} is in tier {tier}; {call.name} is for facts of the "
                    "memory bank.",
                    details={"field": "memory_id"},
                )
            return fact
        if args.match_query is None:
            raise InvalidInput(
                f"memory_id: is missing; {call.name} needs it, or match_query.",
                details={"field": "memory_id"},
            )
        return await self._matching(scope, args.match_query)

    async def _matching(self, scope: WriteScope, match: str) -> MemoryItem:
        # No receipt: this search is not shown to anybody, so no outcome may be about it.
        asked = SearchQuery(
            query=match, limit=MAX_RESULTS, tiers=(Tier.MEMORY_BANK,), receipt=False
        )
        found = await self.search.search(scope.own, asked)
        items = [hit.item for hit in found.hits]
        one = the_one(items, match)
        if one is not None:
            return one
        if not items:
            raise NotFound("No fact of the memory bank matches; search_memory shows what is kept.")
        near = "; ".join(
            f"{one.memory_id} ({cut_line(one.text, CANDIDATE_CHARS)})" for one in items[:CANDIDATES]
        )
        raise InvalidInput(
            f"match_query: these words do not stand in one fact only; send the memory_id: {near}.",
            code="ambiguous_memory",
            details={"field": "match_query", "memory_ids": [one.memory_id for one in items]},
        )

    # --- which memory is meant

    async def _named(self, scope: WriteScope, call: ToolCall, reference: Reference) -> str:
        if isinstance(reference, str):
            literal = await self._literal(scope, reference)
            return str(literal)
        receipt = await self._receipt(scope, call, None)
        if receipt is None:
            raise _no_search("memory_id")
        return _at(receipt, reference, "memory_id")

    async def _literal(self, scope: WriteScope, reference: Reference) -> Reference:
        """An id as it is; `tier:id`, as results show it, is its second half unless it exists."""
        tier, colon, rest = reference.partition(":") if isinstance(reference, str) else ("", "", "")
        if not colon or not rest or parse_tier(tier) is None:
            return reference
        try:
            await self.memories.get(ReadScope(scope.user_id), str(reference))
        except NotFound:
            return rest
        return reference

    async def _scored(
        self, scope: WriteScope, call: ToolCall, named: Sequence[tuple[Reference, Outcome]]
    ) -> Receipt | None:
        """The search that an earlier try of this call scored: by now it is no unscored one. A key
        that is not known names no search here, because nothing else in the request does."""
        if call.idempotency_key is None:
            return None
        ways = dict.fromkeys((isinstance(one, str), outcome) for one, outcome in named)
        for by_id, outcome in sorted(ways, key=lambda way: way[0]):
            key = _key(call.idempotency_key, outcome, by_id=by_id)
            asked = OutcomeRequest(outcome=outcome, idempotency_key=key, recorder=call.recorder)
            receipt = await self.outcomes.shown(scope, asked)
            if receipt is not None:
                return receipt
        return None

    async def _receipt(
        self, scope: WriteScope, call: ToolCall, receipt_id: str | None
    ) -> Receipt | None:
        """The named search, else the last one of the conversation that nobody scored."""
        asked = OutcomeRequest(
            outcome=Outcome.UNKNOWN,
            receipt_id=receipt_id,
            conversation_id=call.conversation_id,
            recorder=call.recorder,
        )
        return await self.outcomes.shown(scope, asked)


def _base(call: ToolCall, args: ScoreMemories, receipt: Receipt | None) -> OutcomeRequest:
    """What all outcomes of one call share. `request_hash` is that of the whole call."""
    return OutcomeRequest(
        outcome=Outcome.UNKNOWN,
        receipt_id=receipt.receipt_id if receipt else None,
        conversation_id=call.conversation_id,
        idempotency_key=call.idempotency_key,
        recorder=call.recorder,
        request_hash=fingerprint(
            scores=[[str(one.memory), one.outcome.value] for one in args.scores],
            receipt_id=args.receipt_id,
            conversation_id=call.conversation_id,
        ),
    )


def _group(
    named: Sequence[tuple[Reference, Outcome]], receipt: Receipt | None, base: OutcomeRequest
) -> list[OutcomeRequest]:
    """One request per outcome and way of naming; a memory that is named twice counts once."""
    positions: dict[Outcome, list[int]] = {}
    ids: dict[Outcome, list[str]] = {}
    judged: dict[str, Outcome] = {}
    for reference, outcome in sorted(named, key=lambda one: isinstance(one[0], str)):
        if isinstance(reference, int) and receipt is None:
            raise _no_search("scores")
        by_position = isinstance(reference, int)
        memory_id = _at(receipt, reference, "scores") if receipt and by_position else str(reference)
        if judged.setdefault(memory_id, outcome) is not outcome:
            raise InvalidInput(
                f"scores: {memory_id} is given two outcomes; send one for it.",
                details={"field": "scores", "memory_id": memory_id},
            )
        if isinstance(reference, int):
            positions.setdefault(outcome, []).append(reference)
        elif not _is_counted(memory_id, positions, receipt):
            ids.setdefault(outcome, []).append(memory_id)
    made = [replace(base, outcome=o, positions=tuple(found)) for o, found in positions.items()]
    made += [replace(base, outcome=o, memory_ids=tuple(found)) for o, found in ids.items()]
    if base.idempotency_key is None:
        return made
    key = partial(_key, base.idempotency_key)
    return [
        replace(one, idempotency_key=key(one.outcome, by_id=one.positions is None)) for one in made
    ]


def _is_counted(
    memory_id: str, positions: dict[Outcome, list[int]], receipt: Receipt | None
) -> bool:
    """True when a position names this memory already."""
    chosen = {one for found in positions.values() for one in found}
    shown = receipt.shown if receipt else ()
    return any(one.position in chosen and one.memory_id == memory_id for one in shown)


def _key(key: str, outcome: Outcome, *, by_id: bool) -> str:
    """A space is in no key of a caller: none of theirs is like it."""
    return f"tool {outcome} {'ids' if by_id else 'positions'} {key}"


def _at(receipt: Receipt, position: Any, field: str) -> str:
    for one in receipt.shown:
        if one.position == position > 0:
            return one.memory_id
    raise InvalidInput(
        f"{field}: the last search shows no result {position}; name one that it shows, or an id.",
        code="bad_position",
        details={"field": field, "position": position, "shown": len(receipt.shown)},
    )


def _no_search(field: str) -> InvalidInput:
    return InvalidInput(
        f"{field}: a number needs a search that was not scored yet; send receipt_id, or name the "
        "memory by its id.",
        code="no_receipt",
        details={"field": field},
    )
