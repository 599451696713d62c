"""Scenes: which texts tell one, of whom and when, and which belong together. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np

from rayapp.understanding.derived.records import MOST_QUOTE, Derived, Evidence
from rayapp.understanding.derived.rules.patterns import FELT, mentioned
from rayapp.understanding.derived.rules.wording import cut
from rayapp.understanding.ports import SourceText
from rayapp.understanding.rules.signals import (
    FULL,
    HALF,
    SignalWords,
    count_said,
    read_sentence,
    sentences_of,
)
from rayapp.understanding.statements.records import Graph, Span
from rayapp.understanding.statements.rules.registry import EVENT, PERSON

# A scene goes on after no longer a pause than this, about what it was about.
GAP = timedelta(days=7)
LEAST_COSINE = 0.65
# Words of a text that tells a scene; signs that it has; steps that make a story by themselves.
LEAST_WORDS, LEAST_SIGNS, STEPS = 12, 2, 2
PLACE = "Place"


def scene_of(source: SourceText, graph: Graph, words: SignalWords) -> Evidence | None:
    """What a text adds to a scene; None: it tells none.

    It tells one when something happened to somebody who is known, with two of time, place, feeling
    and outcome, or in steps.
    """
    sentences = sentences_of(source.text)
    read = [read_sentence(one, words) for one in sentences]
    if sum(one.words for one in read) < LEAST_WORDS:
        return None
    events = sorted(mentioned(graph, (EVENT,)), key=lambda one: _place(one.name, source.text))
    actor = any(one.signals.personal >= HALF for one in read) or bool(mentioned(graph, (PERSON,)))
    past = any(one.signals.temporal == FULL for one in read)
    asks = all(one.rstrip().endswith("?") for one in sentences)
    times = _times(graph, source.said_at)
    to_come = bool(times) and min(times) > source.said_at
    if not actor or asks or to_come or not (events or past):
        return None
    signs = (
        bool(times) or any(one.signals.temporal >= HALF for one in read),
        bool(mentioned(graph, (PLACE,))),
        any(one.signals.emotional == FULL for one in read) or bool(_emotions(graph)),
        any(one.signals.decision >= HALF for one in read),
    )
    if sum(signs) < LEAST_SIGNS and count_said("then", source.text, words) < STEPS:
        return None
    return Evidence(
        source_id=source.source_id,
        said_at=source.said_at,
        happened_at=min([source.said_at, *times]),
        conversation_id=source.conversation_id,
        doc_id=source.doc_id,
        quote=_told(sentences),
        title=cut(events[0].name if events else sentences[0]),
        emotions=_emotions(graph),
        topics=source.topics,
        people=tuple(dict.fromkeys(one.name for one in mentioned(graph, (PERSON,)) if one.names)),
        node_ids=tuple(graph.entities or ()),
    )


def joined(
    new: Evidence, scenes: Sequence[Derived], cosines: Sequence[float] | None
) -> Derived | None:
    """The scene that a part belongs to: the nearest in meaning, within the gap.

    Args:
        cosines: of the part to the middle of each scene; None: there are no vectors, and a scene
            goes on where its topic or its event is named again.
    """
    near = [at for at, one in enumerate(scenes) if is_within(new.happened_at, one)]
    if cosines is None:
        alike = [at for at in near if _shares(new, scenes[at])]
        return scenes[alike[0]] if alike else None
    best = max(near, key=lambda at: cosines[at], default=None)
    return scenes[best] if best is not None and cosines[best] >= LEAST_COSINE else None


def is_within(at: datetime, scene: Derived) -> bool:
    return scene.first_at - GAP <= at <= scene.last_at + GAP


def middle(vectors: Sequence[np.ndarray]) -> np.ndarray:
    """The centroid, of length one."""
    mean = np.mean(np.stack(vectors), axis=0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-9))


def worded(scene: Derived) -> tuple[str, str]:
    """Title and narrative of its parts, in the order in which they happened."""
    parts = sorted(scene.sources, key=lambda one: (one.happened_at, one.said_at, one.source_id))
    title = next((one.title for one in parts if one.title), "")
    return title, "\n".join(dict.fromkeys(one.quote for one in parts if one.quote))


def _place(name: str, text: str) -> int:
    """Where a text names it; what it does not name word by word comes last."""
    at = text.find(name)
    return len(text) if at < 0 else at


def _shares(new: Evidence, scene: Derived) -> bool:
    return not set(new.topics).isdisjoint(scene.topics)


def _times(graph: Graph, said_at: datetime) -> list[datetime]:
    """When its events were, as far as the text says so."""
    events = {one.entity_id for one in mentioned(graph, (EVENT,))}
    return [
        one.valid_from
        for one in graph.statements
        if one.span is Span.HOLDS and one.valid_from is not None
        if one.valid_from != said_at
        if one.subject_id in events or one.object_id in events
    ]


def _emotions(graph: Graph) -> tuple[str, ...]:
    felt = (graph.node(one.object_id) for one in graph.statements if one.relation == FELT)
    return tuple(dict.fromkeys(one.name for one in felt if one is not None))


def _told(sentences: Sequence[str]) -> str:
    """Whole sentences, as many as a row keeps."""
    told = ""
    for one in sentences:
        longer = f"{told} {one}".strip()
        if len(longer) > MOST_QUOTE:
            break
        told = longer
    return told or sentences[0][:MOST_QUOTE]
