"""The marks by which an assistant says which memories helped: `<!-- MEM: 1👍 2👎 3➖ -->`. Pure.

Models write them in many ways, so reading is tolerant; what is no mark is never taken out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rayapp.memory.item import Outcome

INSTRUCTION_EN = (
    "When you have answered, end with one line that says how the numbered memories served: "
    "<!-- MEM: 1👍 2👎 3➖ -->. 👍 it helped, 👎 it was wrong or misled, ➖ it was not used. Use"
    " the numbers in brackets, and leave the line out when no memory was shown."
)
INSTRUCTION_HE = (
    "בסוף התשובה הוסף שורה אחת שאומרת כיצד שירתו הזיכרונות הממוספרים: <!-- MEM: 1👍 2👎 3➖ -->."
    " 👍 עזר, 👎 היה שגוי או הטעה, ➖ לא היה בשימוש. השתמש במספרים שבסוגריים, והשמט את השורה אם לא"
    " הוצג אף זיכרון."
)

# Skin tones, variation selectors, joiners and bidi controls: seen by nobody, written by models.
_UNSEEN = "\\s\u200b-\u200f\u202a-\u202e\u2060\u2066-\u2069\ufe0e\ufe0f\U0001f3fb-\U0001f3ff"
# A minus stands for "failed" only where it cannot be a range or the end of the comment.
_MARKS = "👍|👎|➖|✅|❌|\\+1?(?!\\d)|[-−–](?![\\d>-])|[?~=]"
_OUTCOME: dict[str, Outcome] = {
    "👍": Outcome.WORKED,
    "✅": Outcome.WORKED,
    "+": Outcome.WORKED,
    "+1": Outcome.WORKED,
    "👎": Outcome.FAILED,
    "❌": Outcome.FAILED,
    "-": Outcome.FAILED,
    "−": Outcome.FAILED,
    "–": Outcome.FAILED,
}
_OPEN = rf"<!--[{_UNSEEN}]*+MEM[{_UNSEEN}]*+:"
# Longest comment that is still read as marks, characters; 200 memories of ten fit.
_MOST_CHARS = 2_000
# Marks of one answer that count, as many as one outcome may name.
MOST_MARKS = 200
# Characters from the end of an answer in which marks are looked for: twice the longest memory.
MOST_READ = 200_000
_COMMENT = re.compile(
    # Closed in reach and before another comment opens, else only what looks like marks.
    rf"{_OPEN}(?:(?P<whole>(?:(?!-->|<!--)[\s\S]){{0,{_MOST_CHARS}}})-->"
    rf"|(?P<open>(?:[{_UNSEEN},;|#\[\]():]|\d|{_MARKS}){{0,{_MOST_CHARS}}}))",
    re.IGNORECASE,
)
# Four digits: no answer shows more, and a number without an end would be costly to read.
_TOKEN = re.compile(rf"(?<!\d)(\d{{1,4}})(?!\d)|({_MARKS})")
_FENCED = re.compile(r"^[ \t]{0,3}(```+|~~~+)[^\n]*$[\s\S]*?(?:^[ \t]{0,3}\1[^\n]*$|\Z)", re.M)
_INLINE = re.compile(r"(?<!`)(`{1,2})(?!`)[^`\n]+?\1(?!`)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """`text` is the answer without the comments; `marks` say what each position (from 1) did."""

    text: str
    marks: Mapping[int, Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Positions by what they did, and positions that the receipt does not show."""

    by_outcome: Mapping[Outcome, tuple[int, ...]]
    skipped: tuple[int, ...]


def instruction(language: str) -> str:
    """What asks the model for the marks, in the language of the question."""
    return INSTRUCTION_HE if language == "he" else INSTRUCTION_EN


def read_attribution(answer: str) -> Attribution:
    """Marks of an answer, and the answer without them. Comments inside code are part of it.

    When a position is marked twice, the last mark counts.
    """
    if "<!--" not in answer:
        return Attribution(text=answer, marks={})
    marks: dict[int, Outcome] = {}
    kept: list[str] = []
    end = 0
    for found in _outside(code_spans(answer), answer):
        body = found["whole"] if found["whole"] is not None else found["open"]
        for position, outcome in _marks(body).items():
            if position in marks or len(marks) < MOST_MARKS:
                marks[position] = outcome
        kept.append(answer[end : found.start()])
        end = found.end()
    if not kept:
        return Attribution(text=answer, marks={})
    rest = answer[end:]
    if not rest.strip():
        return Attribution(text="".join(kept).rstrip(), marks=marks)
    return Attribution(text="".join([*kept, rest]), marks=marks)


def code_spans(text: str) -> list[tuple[int, int]]:
    """Where code stands in a text, in order and without overlaps."""
    found = (one.span() for pattern in (_FENCED, _INLINE) for one in pattern.finditer(text))
    spans: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def resolve(marks: Mapping[int, Outcome], shown: Collection[int]) -> Resolved:
    """What the marks say of the positions that a receipt shows."""
    by_outcome: dict[Outcome, list[int]] = {}
    for position in sorted(marks):
        if position in shown:
            by_outcome.setdefault(marks[position], []).append(position)
    skipped = tuple(sorted(position for position in marks if position not in shown))
    return Resolved(
        by_outcome={outcome: tuple(found) for outcome, found in by_outcome.items()},
        skipped=skipped,
    )


def _outside(code: Sequence[tuple[int, int]], answer: str) -> Iterator[re.Match[str]]:
    """The comments that no code holds; both come in order, so each span is looked at once."""
    at = 0
    for found in _COMMENT.finditer(answer, max(0, len(answer) - MOST_READ)):
        start = found.start()
        while at < len(code) and code[at][1] <= start:
            at += 1
        if at == len(code) or start < code[at][0]:
            yield found


def _marks(body: str) -> dict[int, Outcome]:
    """`1👍, 2 👎`; numbers without a mark of their own take the next one (`1, 2 👍`)."""
    marks: dict[int, Outcome] = {}
    waiting: list[int] = []
    for number, mark in _TOKEN.findall(body):
        if number:
            waiting.append(int(number))
            continue
        marks |= dict.fromkeys(waiting, _OUTCOME.get(mark, Outcome.UNKNOWN))
        waiting = []
    return marks
