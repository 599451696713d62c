"""Short sentences for the assistant out of what the graphs know, in Hebrew or English. Pure.

Everything a person or a document wrote is quoted by `quote`, so that it cannot leave its
sentence: no line breaks, no brackets of a memory line, no tags, no invisible marks.
"""

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Literal

from rayapp.graphs.records import ActionAdvice, PastExperience, TierAdvice
from rayapp.graphs.rules.routing import MIN_USES, RECOMMENDED_WILSON
from rayapp.memory.item import MemoryItem, Outcome
from rayapp.memory.tiers import tier_name

Side = Literal["he", "en"]

MAX_DIRECTIVES = 6
MAX_QUOTE = 120  # characters: a reminder of the memory, whose full text stands beside it
MAX_NAME = 60  # characters of a concept, an action, or a question inside a reason
# Best tiers named in one sentence, and concepts that a conversation goes on about.
MAX_TIERS, MAX_CONCEPTS = 3, 3

# The marks of a memory line, of tags and of the frame; the quotes are the ones put around.
_REPLACED = str.maketrans(
    {
        **dict.fromkeys("[{【〔〖〚⟦⁅［｛", "("),
        **dict.fromkeys("]}】〕〗〛⟧⁆］｝", ")"),
        **dict.fromkeys("<＜〈《", "‹"),
        **dict.fromkeys(">＞〉》", "›"),
        **dict.fromkeys("“”„‟", '"'),
        "═": "=",
        "`": "'",
    }
)
# Control, format (bidi, zero-width, tags), surrogate, private and unassigned characters.
_DROPPED = frozenset({"Cf", "Cs", "Co", "Cn"})
_SPACED = frozenset({"Cc", "Zl", "Zp", "Zs"})

_SAYS: Mapping[Side, Mapping[str, str]] = {
    "he": {
        "solution": "פתרון ידוע (זיכרון {id}, פתר את השאלה הזאת {times}): {quote}.",
        "failure": "לא לחזור על זיכרון {id}: {quote} - {reason}.",
        "tiers": "בנושא הזה עזרו עד כה בעיקר: {tiers}.",
        "tier": "{tier} (ציון {wilson:.2f}, {uses} שימושים)",
        "actions": "בשאלות כאלה {advice}.",
        "prefer": "{action} עבד {worked} מתוך {uses} פעמים, ויש להעדיפו",
        "avoid": "{action} נכשל {failed} מתוך {uses} פעמים, ויש להימנע ממנו",
        "repeated": "השאלה כבר נשאלה בשיחה הזאת: {quote}. התשובה הקודמת כנראה לא הספיקה.",
        "continuity": "השיחה ממשיכה לעסוק ב: {concepts}.",
        "once": "פעם אחת",
        "twice": "פעמיים",
        "times": "{count} פעמים",
        "solved": "פתר את השאלה הזאת {times}, לאחרונה ב-{day}",
        "counted": "{verb} {count} מתוך {uses} פעמים, לאחרונה עם {concept} ב-{day}",
        # Items of books carry no counters of their own: the book does.
        "uncounted": "{verb} עם {concept} ב-{day}",
        "asked": ", כשנשאל {quote}",
        "last": "; התוצאה האחרונה: {outcome}",
    },
    "en": {
        "solution": "Known solution (memory {id}, solved this very question {times}): {quote}.",
        "failure": "Do not repeat memory {id}: {quote} - {reason}.",
        "tiers": "On this topic these helped most so far: {tiers}.",
        "tier": "{tier} (score {wilson:.2f}, {uses} uses)",
        "actions": "For such questions {advice}.",
        "prefer": "{action} worked {worked} of {uses} times: prefer it",
        "avoid": "{action} failed {failed} of {uses} times: avoid it",
        "repeated": (
            "This was asked before in this conversation: {quote}. The answer was likely not enough."
        ),
        "continuity": "The conversation goes on about: {concepts}.",
        "once": "once",
        "twice": "twice",
        "times": "{count} times",
        "solved": "solved this very question {times}, last on {day}",
        "counted": "{verb} {count} of {uses} times, last with {concept} on {day}",
        "uncounted": "{verb} with {concept} on {day}",
        "asked": ", when asked {quote}",
        "last": "; last outcome: {outcome}",
    },
}
_OUTCOMES: Mapping[Side, Mapping[Outcome, str]] = {
    "he": {
        Outcome.WORKED: "הצליח",
        Outcome.PARTIAL: "חלקי",
        Outcome.UNKNOWN: "לא ידוע",
        Outcome.FAILED: "נכשל",
    },
    "en": {outcome: outcome.value for outcome in Outcome},
}


def _say(side: Side, name: str, **values: object) -> str:
    return _SAYS[side][name].format(**values)


def side_of(language: str) -> Side:
    """The language of the sentences: who mixes Hebrew and English reads Hebrew."""
    return "he" if language in ("he", "mixed") else "en"


def quote(text: str, limit: int = MAX_QUOTE) -> str:
    """One line between curly quotes; a longer text is cut at a word and ends with an ellipsis."""
    return f"“{_flat(text, limit)}”"


def solved_reason(side: Side, count: int, at: datetime) -> str:
    return _say(side, "solved", times=_times(side, count), day=_day(at))


def _times(side: Side, count: int) -> str:
    """How often, as people say it."""
    return _say(side, {1: "once", 2: "twice"}.get(count, "times"), count=count)


def counted_reason(
    side: Side, item: MemoryItem, outcome: Outcome, concept: str, at: datetime, asked: str = ""
) -> str:
    """How often the memory worked or failed, and what is known of the last time."""
    stats = item.stats
    count = stats.worked_count if outcome is Outcome.WORKED else stats.failed_count
    text = _say(
        side,
        "counted" if count else "uncounted",
        verb=_OUTCOMES[side][outcome],
        count=count,
        uses=stats.uses,
        concept=quote(concept, MAX_NAME),
        day=_day(at),
    )
    if asked:
        text += _say(side, "asked", quote=quote(asked, MAX_NAME))
    if stats.last_outcome is not None and stats.last_outcome is not outcome:
        text += _say(side, "last", outcome=_OUTCOMES[side][stats.last_outcome])
    return text


def directives_of(
    side: Side,
    *,
    solution: tuple[MemoryItem, int] | None,
    failures: Sequence[PastExperience],
    tiers: str | None,
    actions: Sequence[ActionAdvice],
    repeated: str | None,
    continuity: Sequence[str],
) -> tuple[str, ...]:
    """At most one sentence of each kind, the most important kind first.

    `tiers` is that of `advised_tiers`.
    """
    lines: list[str] = []
    if solution is not None:
        item, count = solution
        memory = {"id": _flat(item.memory_id, MAX_QUOTE), "quote": quote(item.text)}
        lines.append(_say(side, "solution", times=_times(side, count), **memory))
    lines += [_failure(side, failure) for failure in failures[:1]]
    if tiers is not None:
        lines.append(tiers)
    lines += _actions(side, actions)
    if repeated is not None:
        lines.append(_say(side, "repeated", quote=quote(repeated)))
    if continuity:
        names = ", ".join(quote(name, MAX_NAME) for name in continuity[:MAX_CONCEPTS])
        lines.append(_say(side, "continuity", concepts=names))
    return tuple(lines[:MAX_DIRECTIVES])


def advised_tiers(side: Side, tiers: Sequence[TierAdvice], documents: bool) -> str | None:
    """The sentence about the tiers that helped; `documents`: see `tier_name`."""
    helped = [advice for advice in tiers if _helped(advice)][:MAX_TIERS]
    if not helped:
        return None
    named = [
        _say(side, "tier", tier=tier_name(one.tier, documents), wilson=one.wilson, uses=one.uses)
        for one in helped
    ]
    return _say(side, "tiers", tiers=", ".join(named))


def _failure(side: Side, failure: PastExperience) -> str:
    return _say(
        side,
        "failure",
        id=_flat(failure.item.memory_id, MAX_QUOTE),
        quote=quote(failure.item.text),
        reason=failure.reason,
    )


def _helped(advice: TierAdvice) -> bool:
    """A tier of which little is known is advised, but nobody can say that it helped."""
    known = advice.uses >= MIN_USES and advice.wilson >= RECOMMENDED_WILSON
    return known and advice.advised


def _actions(side: Side, actions: Sequence[ActionAdvice]) -> Iterator[str]:
    """The best action to prefer and the worst one to avoid, in one sentence."""
    best = [one for one in actions if one.advice == "prefer"][:1]
    worst = [one for one in actions if one.advice == "avoid"][-1:]
    parts = [
        _say(
            side,
            one.advice,
            action=quote(one.action, MAX_NAME),
            worked=one.worked,
            failed=one.failed,
            uses=one.uses,
        )
        for one in (*best, *worst)
    ]
    if parts:
        yield _say(side, "actions", advice="; ".join(parts))


def _day(at: datetime) -> str:
    return at.date().isoformat()


def _flat(text: str, limit: int) -> str:
    # Four characters may fold into one space or nothing; the rest of a long text is not read.
    head = text[: 4 * limit]
    plain = head.translate(_PLAIN).translate(_REPLACED)
    words = " ".join(plain.split())
    if len(words) <= limit and len(head) == len(text):
        return words
    cut = words[: limit - 1]
    whole = cut.rpartition(" ")[0] if " " in cut else cut
    return (whole or cut) + "…"


class CharTable(dict[int, str]):
    """A translation table that learns a character when it first meets it."""

    def __init__(
        self, rule: Callable[[str], str], known: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        super().__init__({ord(char): plain for char, plain in known.items()})
        self._rule = rule

    def __missing__(self, code: int) -> str:
        self[code] = self._rule(chr(code))
        return self[code]


def _shown(char: str) -> str:
    kind = unicodedata.category(char)
    return "" if kind in _DROPPED else " " if kind in _SPACED else char


_PLAIN = CharTable(_shown)
