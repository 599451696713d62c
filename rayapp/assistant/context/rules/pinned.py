"""What stands before every question, what is known at a cold start, and what is recalled. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rayapp.assistant.context.rules.line_notes import subject_note
from rayapp.assistant.context.rules.prompt_block import (
    BULLET,
    STABLE_SECTIONS,
    SectionItem,
    escape_text,
)
from rayapp.assistant.records import ContextLine, Section
from rayapp.graphs.records import ContextInsights, PastExperience
from rayapp.graphs.rules.directives import Side, advised_tiers, directives_of, side_of
from rayapp.graphs.rules.question import fingerprint
from rayapp.inference.ports import Message
from rayapp.memory.item import MemoryItem, subject_of
from rayapp.memory.rules.instructions import is_instruction
from rayapp.memory.tiers import Tier
from rayapp.search.requests import Hit, SearchAnswer
from rayapp.text.expansions import Expansions
from rayapp.text.normalize import canonical

# Place among the hits from which a standing memory is there because of the question as well. A
# search by meaning always returns something, so farther hits say nothing.
FOUND_PLACE = 3
# Share of the best hit's score that a line needs to be cited. In the tests' store of ten unrelated
# patterns, in both languages, those have at most 0.15 of it.
CITED_SHARE = 0.5
# Tags of memory_bank (client contract), and the same words in Hebrew.
IDENTITY_TAGS = ("identity", "זהות")
PREFERENCE_TAGS = ("preference", "preferences", "העדפה", "העדפות")


def section_of(item: MemoryItem) -> Section | None:
    """Where the memory stands; None when it is only told when a question asks for it.

    Who the user is and what they prefer is said of the user alone. Of somebody else stands what is
    pinned, what is asked of every answer, and what has proven itself.
    """
    about_user = subject_of(item) is None
    tags = {tag.casefold() for tag in item.tags}
    own = about_user and (item.always_inject or item.tier is Tier.MEMORY_BANK)
    if own and tags.intersection(IDENTITY_TAGS):
        return "identity"
    if own and tags.intersection(PREFERENCE_TAGS):
        return "preference"
    if item.always_inject:
        return "always"
    if item.instruction and (about_user or is_instruction(item.instruction)):
        return "instruction"
    return "pattern" if item.tier is Tier.PATTERNS else None


def core_memories_of(
    items: Iterable[MemoryItem], most: Mapping[Section, int]
) -> tuple[SectionItem, ...]:
    """At most `most` of each section, in the order of the sections; each memory once.

    Best kept first (importance x confidence), then the oldest, so that a new memory of the same
    worth comes behind the text that prompt caches hold already. Of instructions the newest first,
    because it may take an older one back; preferences after them; what says the same once.
    """
    unique = {item.point_id: item for item in items}
    by_section: dict[Section, list[MemoryItem]] = {section: [] for section in STABLE_SECTIONS}
    for item in unique.values():
        section = section_of(item)
        if section is not None:
            by_section[section].append(item)
    told = _newest_first(by_section.pop("instruction"))[: most.get("instruction", 0)]
    return (
        *(
            SectionItem(section, item)
            for section, found in by_section.items()
            for item in _order(found)[: most.get(section, 0)]
        ),
        *(SectionItem("instruction", item, item.instruction) for item in told),
    )


def _newest_first(items: Iterable[MemoryItem]) -> list[MemoryItem]:
    ordered = sorted(
        items,
        key=lambda item: (
            is_instruction(item.instruction or ""),
            item.created_at,
            item.sequence,
            item.memory_id,
        ),
        reverse=True,
    )
    unique: dict[str, MemoryItem] = {}
    for item in ordered:
        unique.setdefault(canonical(item.instruction or ""), item)
    return list(unique.values())


def cited_ids(lines: Sequence[ContextLine], search: SearchAnswer | None) -> frozenset[str]:
    """Ids of the lines that an answer can rest on, because the question brought them.

    Those are past successes with it, and hits that come near the best one. Of a search that trusts
    nothing it found, no hit is cited: "hello" finds something, too. The rest is in the block beside
    the question: no verdict is about it.
    """
    near = {hit.item.memory_id for hit in _near_hits(search)}
    hits = {hit.item.memory_id for hit in search.hits} if search and near else set()
    return frozenset(
        line.memory_id
        for line in lines
        if line.numbered
        and (line.memory_id in near or (line.section == "past" and line.memory_id not in hits))
    )


def asked_ids(search: SearchAnswer | None) -> frozenset[str]:
    """Ids of the first hits, near the best one: a standing memory among them is asked for, too."""
    near = _near_hits(search)
    return frozenset(hit.item.memory_id for hit in near if hit.position <= FOUND_PLACE)


def _near_hits(search: SearchAnswer | None) -> list[Hit]:
    if search is None or search.confidence == "low":
        return []
    best = max((hit.summary.final_score for hit in search.hits), default=0.0)
    return [hit for hit in search.hits if hit.summary.final_score >= CITED_SHARE * best]


def _order(items: Sequence[MemoryItem]) -> list[MemoryItem]:
    """What is pinned comes first: it was asked for."""
    return sorted(
        items,
        key=lambda item: (
            not item.always_inject,
            -item.quality.quality_score,
            item.created_at,
            item.memory_id,
        ),
    )


HEADER = "═══ KNOWN CONTEXT ═══"
FOOTER = "═══ END CONTEXT ═══"
# One question in both languages for who the user is, so that a store in either one answers.
QUERY = (
    "user name identity preferences goals projects communication style what works how to help"
    " שם המשתמש זהות העדפות מטרות פרויקטים סגנון תקשורת מה עובד איך לעזור"
)


def cold_start_text(placed: Sequence[SectionItem]) -> str:
    """One bullet per memory, whole or its passage, in the order given; empty when there is none.
    One about somebody else says first about whom."""
    if not placed:
        return ""
    bullets = [f"{BULLET}{escape_text(_with_subject(one))}" for one in placed]
    return "\n".join([HEADER, *bullets, FOOTER]) + "\n"


def _with_subject(one: SectionItem) -> str:
    about = subject_note(one.item)
    return one.text if about is None else f"({about}) {one.text}"


# Organic recall: what the graphs and the conversation say about a question, in short lines.
#
# A line states what happened and what is known. What memories and people wrote is quoted by
# `directives.quote`, so that it stays inside its sentence.

# Lines of one block, and past successes among them: a reminder, not a second context.
MAX_LINES = 8
MAX_SUCCESSES = 3
# Earlier questions of the conversation that are compared with this one.
MAX_EARLIER = 10
# Facts named as known already, and the share of the question's words that they must hold: all but
# one of five (our choice; a fact that misses more answers something else).
MAX_KNOWN = 2
KNOWN_COVERAGE = 0.8
KNOWN_TIERS = frozenset({Tier.MEMORY_BANK, Tier.PATTERNS})

_SUCCESS: dict[Side, str] = {
    "he": "זיכרון {id} עזר בעבר: {reason}{rate}.",
    "en": "Memory {id} helped before: {reason}{rate}.",
}
_RATE: dict[Side, str] = {"he": " ({rate:.0%} הצלחה)", "en": " ({rate:.0%} success)"}
_KNOWN: dict[Side, str] = {
    "he": "זה כבר ידוע: זיכרון {ids}.",
    "en": "You already know this: memory {ids}.",
}
_NOTHING: dict[Side, str] = {
    "he": "לא ידוע דבר שנוגע לשאלה הזאת.",
    "en": "Nothing relevant to this question is known.",
}


def nothing_known(language: str) -> str:
    """What is said honestly where only weak memories were found."""
    return _NOTHING[side_of(language)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """`lines` to tell, and the memories of past successes, to be shown whole."""

    lines: tuple[str, ...] = ()
    past: tuple[SectionItem, ...] = ()


def organic_recall(
    insights: ContextInsights | None,
    *,
    known: Sequence[MemoryItem] = (),
    repeated: str | None = None,
    language: str = "other",
    documents: bool = False,
) -> Recalled:
    """The most important lines first.

    Args:
        known: facts that hold what the question asks for.
        repeated: an earlier question of the conversation that asked the same, if the messages
            show one; the graphs may know of another.
        documents: what the reader calls the books tier (`tier_name`).
    """
    side = side_of(insights.language if insights else language)
    lines = [_KNOWN[side].format(ids=", ".join(one.memory_id for one in known))] if known else []
    if insights is None:
        lines += directives_of(
            side,
            solution=None,
            failures=(),
            tiers=None,
            actions=(),
            repeated=repeated,
            continuity=(),
        )
        return Recalled(lines=tuple(lines))
    successes = insights.patterns[:MAX_SUCCESSES]
    lines += [_success(side, one) for one in successes]
    solved = insights.known_solution is not None
    lines += directives_of(
        side,
        solution=None,
        failures=insights.failures,
        tiers=advised_tiers(side, insights.tiers, documents),
        actions=insights.actions,
        # What was solved is asked again because it works.
        repeated=insights.repeated or (None if solved else repeated),
        continuity=insights.continuity,
    )
    past = tuple(SectionItem("past", one.item) for one in successes)
    return Recalled(lines=tuple(lines[:MAX_LINES]), past=past)


def without_advice(insights: ContextInsights) -> ContextInsights:
    """What happened with these concepts stays; where to look says nothing of a question that memory
    knows nothing of."""
    return replace(insights, tiers=(), actions=())


def repeated_question(
    query: str, recent: Sequence[Message], expansions: Expansions | None
) -> str | None:
    """The newest message of the user that asked the same."""
    asked = fingerprint(query, expansions)
    said = [one.content for one in recent if one.role == "user"][-MAX_EARLIER:][::-1]
    return next((one for one in said if fingerprint(one, expansions).same(asked)), None)


def already_known(
    items: Sequence[MemoryItem], coverage: Callable[[str], float]
) -> tuple[MemoryItem, ...]:
    """Facts and patterns that hold the words of the question; `coverage` is their share, 0..1."""
    facts = [one for one in items if one.tier in KNOWN_TIERS]
    return tuple(one for one in facts if coverage(one.text) >= KNOWN_COVERAGE)[:MAX_KNOWN]


def _success(side: Side, one: PastExperience) -> str:
    stats = one.item.stats
    rate = _RATE[side].format(rate=stats.success_rate) if stats.uses else ""
    return _SUCCESS[side].format(id=one.item.memory_id, reason=one.reason, rate=rate)
