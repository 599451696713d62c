"""Which thoughts a text speaks for: values, traits, goals, feelings, topics that come back. Pure.

A text speaks for a pattern; only what several texts on several days speak for is a thought. Two
patterns meet when holder and what is held are the very same node or name: the purple bike of one
and the cyan bike of another are two.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rayapp.memory.item import derived_id, other_person
from rayapp.text.concepts import extract_concepts
from rayapp.understanding.derived.records import MOST_QUOTE, Evidence, Pattern, SubjectType
from rayapp.understanding.ports import SourceText
from rayapp.understanding.statements.records import Entity, Graph, Level, Span, Statement
from rayapp.understanding.statements.rules.identity import me_key
from rayapp.understanding.statements.rules.registry import PERSON
from rayapp.understanding.statements.rules.tables import Lexicon, Tables, word_set

FELT = "FELT"
# What somebody says of themselves or of somebody, by its relation.
SAID: Mapping[str, SubjectType] = {
    "VALUES": SubjectType.VALUE,
    "HAS_TRAIT": SubjectType.TRAIT,
    "PURSUES": SubjectType.GOAL,
}
# Words of an event that a feeling may be about.
MOST_THEMES = 3
ME = "me"


@dataclass(frozen=True, slots=True)
class Sign:
    """One source speaks for a pattern."""

    derived_id: str
    pattern: Pattern
    evidence: Evidence


class PatternReader:
    """Finds the patterns that a text speaks for; built once."""

    def __init__(self, tables: Tables) -> None:
        self._lexicons: Mapping[str, Lexicon] = {
            "Emotion": tables.every_emotion,
            "Value": tables.values,
            "Trait": tables.traits,
        }
        said = [word for row in tables.times.phrases for word in (*row.en, *row.he)]
        # A feeling is about no day of the week.
        self._times = word_set(" ".join(said)) | tables.days | tables.months.keys()

    def signs(self, source: SourceText, graph: Graph) -> list[Sign]:
        """Each pattern once."""
        found: dict[str, Sign] = {}
        for pattern, statement in self._patterns(source, graph):
            about = (source.subject_id or "", source.perspective_owner_id or "")
            parts = (pattern.type.value, pattern.holder, pattern.key, pattern.theme.casefold())
            key = derived_id(source.user_id, "thought", *about, *parts)
            evidence = _evidence(source, statement)
            old = found.get(key)
            # Of what a text first denies and then says, the last word counts, as in the graph.
            if old is None or old.evidence.denies:
                found[key] = Sign(key, pattern, evidence)
        return list(found.values())

    def _patterns(
        self, source: SourceText, graph: Graph
    ) -> Iterator[tuple[Pattern, Statement | None]]:
        me = me_key(other_person(source.perspective_owner_id, source.user_id))
        for one in graph.statements:
            if one.relation in SAID:
                yield from self._said(one, graph, me)
            elif one.relation == FELT and one.span is Span.HOLDS:
                for pattern in self._felt(source, one, graph, me):
                    yield pattern, one
        for topic in source.topics:
            yield _interest(topic), None

    def _said(
        self, one: Statement, graph: Graph, me: str
    ) -> Iterator[tuple[Pattern, Statement | None]]:
        subject, held = graph.node(one.subject_id), graph.node(one.object_id)
        if subject is None or held is None:
            return
        holder, name = _holder(subject, me)
        pattern = Pattern(
            type=SAID[one.relation],
            holder=holder,
            key=held.entity_id,
            what=self._known(held),
            name=name,
            level=one.level,
        )
        yield pattern, one

    def _felt(self, source: SourceText, one: Statement, graph: Graph, me: str) -> Iterator[Pattern]:
        emotion, felt_by = graph.node(one.object_id), graph.node(one.holder_id)
        if emotion is None or felt_by is None:
            return
        holder, name = _holder(felt_by, me)
        what = self._known(emotion)
        target = graph.node(one.target_id)
        if target is not None and target.type == PERSON and target.entity_id != one.holder_id:
            yield Pattern(
                type=SubjectType.RELATIONSHIP,
                holder=holder,
                key=f"{what}:{target.entity_id}",
                what=what,
                name=name,
                theme=target.name,
                level=Level.INDUCTIVE,
            )
            return
        event = graph.node(one.subject_id)
        themes = source.topics or self._themes(event.name if event is not None else "")
        for theme in themes[:MOST_THEMES] or ("",):
            yield Pattern(
                type=SubjectType.EMOTION,
                holder=holder,
                key=what,
                what=what,
                name=name,
                theme=theme,
                level=Level.INDUCTIVE,
            )

    def _themes(self, event: str) -> tuple[str, ...]:
        found = extract_concepts(event)
        return tuple(
            one.label
            for one in found
            if self._times.isdisjoint(one.label.casefold().split())
            and self._times.isdisjoint(one.key.split())
        )

    def _known(self, node: Entity) -> str:
        """What the tables call it, in whichever language it was said."""
        lexicon = self._lexicons.get(node.type)
        found = lexicon.at(tuple(node.name.casefold().split())) if lexicon else None
        return node.name if found is None else found[1]


def _holder(node: Entity, me: str) -> tuple[str, str]:
    """The key of who holds it, and the name of somebody else."""
    mine = any(one.name == me for one in node.keys)
    return (ME, "") if mine else (node.entity_id, node.name)


def _interest(topic: str) -> Pattern:
    key = " ".join(topic.replace("_", " ").split())
    return Pattern(
        type=SubjectType.INTEREST, holder=ME, key=key.casefold(), what=key, level=Level.INDUCTIVE
    )


def _evidence(source: SourceText, one: Statement | None) -> Evidence:
    nodes = () if one is None else (one.subject_id, one.object_id, one.holder_id, one.target_id)
    return Evidence(
        source_id=source.source_id,
        said_at=source.said_at,
        happened_at=source.said_at,
        conversation_id=source.conversation_id,
        doc_id=source.doc_id,
        quote=((one.quote if one else "") or source.text)[:MOST_QUOTE],
        denies=one is not None and one.span is Span.ENDS,
        topics=source.topics,
        node_ids=tuple(dict.fromkeys(node for node in nodes if node)),
        fact_ids=() if one is None else (one.fact_id,),
    )


def mentioned(graph: Graph, types: Sequence[str]) -> list[Entity]:
    """The nodes of these types that a source gave."""
    return [one for one in (graph.entities or {}).values() if one.type in types]
