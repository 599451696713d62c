"""What a model reads of a tool's result. Memory text is escaped: it stays text in every case."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from typing import Any

from rayapp.assistant.context.rules.line_notes import place_of, subject_note
from rayapp.assistant.context.rules.prompt_block import cut_line, escape_id, escape_text
from rayapp.assistant.records import ToolAnswer
from rayapp.assistant.tools.rules.limits import cut_text
from rayapp.documents.rules.order import joined, runs
from rayapp.graphs.records import ContextInsights, PastExperience
from rayapp.graphs.rules.directives import side_of
from rayapp.inference.rules import estimate_tokens, total_tokens
from rayapp.learning.records import OutcomeAnswer
from rayapp.memory.item import MemoryItem, SourceType, subject_of, teller_of
from rayapp.memory.rules.lifecycle import age, success_estimate
from rayapp.memory.tiers import Tier, tier_name
from rayapp.search.requests import Hit, SearchAnswer
from rayapp.text.language import detect_language

# Characters of a question or of a fact that an answer repeats to say what it is about.
ECHO_CHARS = 120
SKIPPED_BECAUSE = {
    "not_scored": "memories of this kind are not scored",
    "gone": "it no longer exists",
    "weak_signal": "the signal is too weak",
    "not_shown": "it was not shown to this key",
    "already_scored": "it was scored already",
    "rate": "too many outcomes in this hour",
}
CLOSING = "After you answered, call record_response with the numbers of the results you used"


def mark(item: MemoryItem, documents: bool) -> str:
    """`tier:id`, as the lines of a context block name a memory.

    `documents`, here and below: what the caller calls the books tier (`tier_name`).
    """
    return f"[{tier_name(item.tier, documents)}:{escape_id(item.memory_id)}]"


def found_text(found: SearchAnswer, query: str, now: datetime, documents: bool) -> str:
    """Results numbered from 1, whole, with what is known of each."""
    echo = cut_line(query, ECHO_CHARS)
    if not found.hits:
        none = "No memories found" if not found.weak else "Nothing relevant is known"
        return "\n".join([f'{none} for "{echo}".', *_weak(found.weak), *_missing(found.degraded)])
    count = len(found.hits)
    noun = "memory" if count == 1 else "memories"
    lines = [f'Found {count} relevant {noun} for "{echo}" (confidence: {found.confidence}).']
    for run in runs([hit.item for hit in found.hits]):
        lines += hit_lines([found.hits[place] for place in run], now, documents)
    receipt = f"; receipt_id: {escape_id(found.receipt_id)}" if found.receipt_id else ""
    lines += [*_weak(found.weak), *_missing(found.degraded)]
    return "\n".join([*lines, f"{CLOSING}{receipt}."])


def within(text: str, tokens: int) -> str:
    """A long answer within its tokens: its last line stays, which says how to go on."""
    if estimate_tokens(text) <= tokens:
        return text
    body, _, closing = text.rpartition("\n")
    room = tokens - total_tokens([closing])
    return f"{cut_text(body, room, 'en')}\n{closing}"


def meant_text(suggestions: Sequence[str]) -> str:
    """What may be searched for instead; empty where nothing is like it."""
    if not suggestions:
        return ""
    shown = ", ".join(f'"{cut_line(one, ECHO_CHARS)}"' for one in suggestions)
    return f"\nDid you mean {shown}? Search again with more set to true."


def hit_lines(run: Sequence[Hit], now: datetime, documents: bool) -> list[str]:
    """A result, or several parts of a document that follow each other, in reading order."""
    best = min(run, key=lambda hit: hit.position)
    text = best.text if len(run) == 1 else joined([hit.item for hit in run])
    numbers = "".join(f"[{hit.position}]" for hit in run)
    head = f"{numbers} {mark(best.item, documents)} {_about(best.item)}{escape_text(text)}"
    facts = [f"Score: {best.summary.final_score:.2f}", item_facts(best.item, now)]
    if best.outdated_by is not None:
        facts.insert(0, "Outdated: a newer result above says otherwise")
    if best.item.source.type is SourceType.DOCUMENT:
        side = side_of(detect_language(text))
        places = dict.fromkeys(place_of(hit.item, side) for hit in run)
        facts.insert(0, f"From: {escape_text('; '.join(places))}")
    return [head, f"    {' | '.join(facts)}"]


def item_facts(item: MemoryItem, now: datetime) -> str:
    stats = item.stats
    outcome = stats.last_outcome.value if stats.last_outcome else "none"
    estimate = success_estimate(stats.success_count, stats.uses)
    facts = [
        f"Age: {age(item.created_at, now)}",
        f"Uses: {stats.uses}",
        f"Wilson: {estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f})",
        f"Last outcome: {outcome}",
    ]
    return " | ".join(facts)


def hit_data(hit: Hit, now: datetime, documents: bool) -> dict[str, Any]:
    data = item_data(hit.item, now, documents)
    if hit.outdated_by is not None:
        data["outdated_by"] = hit.outdated_by
    return {"position": hit.position, "score": hit.summary.final_score, **data}


def item_data(item: MemoryItem, now: datetime, documents: bool) -> dict[str, Any]:
    """A memory as plain JSON; its text is as it was stored, because JSON quotes it."""
    outcome = item.stats.last_outcome
    return {
        **_memory_data(item, documents),
        "tags": list(item.tags),
        "created_at": iso(item.created_at),
        "age": age(item.created_at, now),
        "uses": item.stats.uses,
        "wilson_score": item.stats.wilson_score,
        "last_outcome": outcome.value if outcome else None,
    }


def limited_text(earlier: Sequence[tuple[int, MemoryItem]], now: datetime, documents: bool) -> str:
    """Why there is no further search in this turn, and what the one before it found."""
    lines = [
        "One search per turn is done already, so nothing was searched: answer from what was "
        "found, or set more to true if the user asked to search more."
    ]
    if earlier:
        lines.append("Found before in this conversation:")
    for position, item in earlier:
        said = f"{_about(item)}{escape_text(item.text)}"
        lines.append(f"[{position}] {mark(item, documents)} {said}")
        lines.append(f"    {item_facts(item, now)}")
    return "\n".join(lines)


def insights_text(found: ContextInsights, documents: bool) -> str:
    """What to do next first, then the experience behind it."""
    lines = [f"- {escape_text(one)}" for one in found.directives]
    if found.known_solution is not None:
        lines.append(_label("Known solution", found.known_solution, documents))
    lines += [_experience("Helped before", one, documents) for one in found.patterns]
    lines += [_experience("Failed before", one, documents) for one in found.failures]
    if not lines:
        return "Nothing was learned about this yet; use search_memory."
    about = ", ".join(escape_text(one.label) for one in found.matched)
    return "\n".join([f"What was learned about {about or 'this'}:", *lines])


def insights_data(found: ContextInsights, documents: bool) -> dict[str, Any]:
    known = found.known_solution
    return {
        "language": found.language,
        "context_type": found.context_type,
        "concepts": [one.label for one in found.concepts],
        "matched_concepts": [one.label for one in found.matched],
        "directives": list(found.directives),
        "tier_recommendations": advice_data(found, partial(tier_name, documents=documents)),
        "relevant_patterns": [_experience_data(one, documents) for one in found.patterns],
        "past_failures": [_experience_data(one, documents) for one in found.failures],
        "topic_continuity": list(found.continuity),
        "repeated_question": found.repeated,
        "known_solution": None if known is None else _memory_data(known, documents),
    }


def advice_data(found: ContextInsights, named: Callable[[Tier], str]) -> list[dict[str, Any]]:
    """Which tiers answer questions like this one, as the caller names them."""
    return [
        {
            "tier": named(one.tier),
            "wilson_score": one.wilson,
            "uses": one.uses,
            "advised": one.advised,
        }
        for one in found.tiers
    ]


def scored_text(found: OutcomeAnswer) -> str:
    """How many memories an outcome reached, and why others were left alone."""
    count = len(found.updated)
    lines = [f"Scored {count} {'memory' if count == 1 else 'memories'}."]
    if found.skipped:
        why = sorted({SKIPPED_BECAUSE.get(one.reason, one.reason) for one in found.skipped})
        lines.append(f"Left alone: {len(found.skipped)} ({'; '.join(why)}).")
    return " ".join(lines)


def scored_data(found: OutcomeAnswer, documents: bool) -> dict[str, Any]:
    return {
        "receipt_id": found.receipt_id,
        "duplicate": found.duplicate,
        "updated": [
            {
                "memory_id": one.memory_id,
                "tier": tier_name(one.tier, documents),
                "uses": one.uses,
                "success_count": one.success_count,
                "score": one.score,
                "wilson_score": one.wilson_score,
            }
            for one in found.updated
        ],
        "skipped": [asdict(one) for one in found.skipped],
    }


def iso(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def with_repairs(answer: ToolAnswer, repairs: Sequence[str]) -> ToolAnswer:
    """The answer, which begins with what was wrong in the arguments."""
    said = [f"Note: {escape_text(one)}" for one in repairs]
    return replace(
        answer,
        text="\n".join([*said, answer.text]),
        data={**answer.data, "repaired": list(repairs)},
    )


def _weak(count: int) -> list[str]:
    """Said, so that a model that needs them knows that they are there."""
    return [f"Weak results left out: {count}; set more to true to see them."] if count else []


def _missing(degraded: Sequence[str]) -> list[str]:
    return [f"Parts of the search were skipped: {', '.join(degraded)}."] if degraded else []


def _label(label: str, item: MemoryItem, documents: bool) -> str:
    return f"- {label}: {mark(item, documents)} {_about(item)}{escape_text(item.text)}"


def _about(item: MemoryItem) -> str:
    """Before the text of a memory: about whom it is, where that is not the user."""
    about = subject_note(item)
    return "" if about is None else f"({escape_text(about)}) "


def _experience(label: str, one: PastExperience, documents: bool) -> str:
    reason = f" ({escape_text(one.reason)})" if one.reason else ""
    return _label(label, one.item, documents) + reason


def _memory_data(item: MemoryItem, documents: bool) -> dict[str, Any]:
    named = tier_name(item.tier, documents)
    data = {"memory_id": item.memory_id, "tier": named, "content": item.text}
    people = {"subject_id": subject_of(item), "perspective_owner_id": teller_of(item)}
    data |= {name: who for name, who in people.items() if who is not None}
    return {**data, "topics": list(item.topics)} if item.topics else data


def _experience_data(one: PastExperience, documents: bool) -> dict[str, Any]:
    return {
        **_memory_data(one.item, documents),
        "outcome": one.outcome.value,
        "concept": one.concept,
        "reason": one.reason,
        "at": iso(one.at),
    }
