"""The tools that tell what is known of the user: hints, who somebody is, what happened when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rayapp.assistant.context.rules.prompt_block import cut_line, escape_text
from rayapp.assistant.records import ToolAnswer, ToolCall
from rayapp.assistant.tools.rules import definitions
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.understanding.derived.hints import HintsService
from rayapp.understanding.derived.reading import DerivedService
from rayapp.understanding.derived.records import Derived
from rayapp.understanding.derived.requests import Hint, HintsRequest
from rayapp.understanding.statements.knowledge import KnowledgeService
from rayapp.understanding.statements.requests import KnowledgeQuestion, Linked, NodeEnd
from rayapp.understanding.statements.rules.registry import Ontology

# Facts about somebody, and characters of a scene, that an answer holds.
MOST_FACTS, MOST_SCENE = 20, 400
DAY = "%Y-%m-%d"


@dataclass(eq=False)
class KnownTools:
    """Raises StoreDown."""

    hints: HintsService
    knowledge: KnowledgeService
    derived: DerivedService

    async def summary(
        self, scope: WriteScope, call: ToolCall, args: definitions.MemorySummary
    ) -> ToolAnswer:
        found = await self.hints.hints(ReadScope(scope.user_id), HintsRequest(query=args.query))
        lines = [_hint_line(one) for one in found.all()]
        text = "\n".join(lines) if lines else "Nothing is known of the user that helps here."
        data = {"recap": found.recap, "hints": [_hint_data(one) for one in found.all()]}
        return ToolAnswer(call.name, text, data)

    async def who_is(
        self, scope: WriteScope, call: ToolCall, args: definitions.WhoIs
    ) -> ToolAnswer:
        """What is said of a node and of which nodes it is said; what ended is left out."""
        end, reads = NodeEnd(name=args.who), ReadScope(scope.user_id)
        said: dict[str, Linked] = {}
        for asked in (
            KnowledgeQuestion(source=end, limit=MOST_FACTS),
            KnowledgeQuestion(target=end, limit=MOST_FACTS, fallback=False),
        ):
            answer = await self.knowledge.query(reads, asked)
            said |= {one.relationship.fact_id: one for one in answer.found}
        ontology = await self.knowledge.ontology(reads)
        facts = [_fact(one, ontology) for one in said.values()][:MOST_FACTS]
        name = cut_line(args.who, MOST_SCENE)
        text = "\n".join(one["text"] for one in facts) or f'Nothing is known of "{name}".'
        return ToolAnswer(call.name, text, {"name": args.who, "facts": facts})

    async def timeline(
        self, scope: WriteScope, call: ToolCall, args: definitions.Timeline
    ) -> ToolAnswer:
        found = await self.derived.episodes(ReadScope(scope.user_id))
        kept = [one for one in found if _is_about(one, args.about)][: args.limit]
        lines = [
            f"{one.first_at.strftime(DAY)}: {escape_text(one.title)}. "
            f"{cut_line(one.text, MOST_SCENE)}"
            for one in kept
        ]
        name = cut_line(args.about, MOST_SCENE)
        text = "\n".join(lines) or f'Nothing that happened is known of "{name}".'
        return ToolAnswer(call.name, text, {"episodes": [_scene_data(one) for one in kept]})


def _fact(one: Linked, ontology: Ontology) -> dict[str, Any]:
    said = one.relationship
    what = one.target.name if one.target is not None else said.value or ""
    name = said.label or ontology.row_of(said.relation).en
    since = "" if said.valid_from is None else f" (since {said.valid_from.strftime(DAY)})"
    return {
        "text": escape_text(f"{one.source.name} {name} {what}{since}"),
        "relation": said.relation,
        "memory_ids": list(said.evidence),
    }


def _hint_line(one: Hint) -> str:
    how = "said" if one.said else "seen, and accepted"
    told = f"{escape_text(one.title)}: {cut_line(one.text, MOST_SCENE)}"
    return f"[{one.kind}] {told} ({one.when}; {how})"


def _hint_data(one: Hint) -> Mapping[str, Any]:
    return {
        "kind": one.kind.value,
        "name": one.name,
        "text": one.text,
        "said": one.said,
        "when": one.when,
        "memory_ids": list(one.source_ids),
    }


def _scene_data(one: Derived) -> Mapping[str, Any]:
    return {
        "id": one.derived_id,
        "title": one.title,
        "occurred_at": one.first_at.isoformat(),
        "emotions": list(one.emotions),
        "memory_ids": [each.source_id for each in one.sources],
    }


def _is_about(row: Derived, about: str) -> bool:
    """Whether it names it; everything is about everything."""
    asked = about.casefold()
    named: Sequence[str] = (row.title, row.text, *row.people, *row.topics)
    return asked in definitions.EVERYTHING or any(asked in one.casefold() for one in named)
