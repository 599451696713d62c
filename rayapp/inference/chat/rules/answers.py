"""Answers of language models: what is asked for, what a text holds, what refuses, what it costs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from rayapp.inference.chat.rules.tolerant_json import json_values
from rayapp.text.hostile import hostile
from rayapp.text.language import detect_language
from rayapp.text.normalize import below_headings, normalize
from rayapp.text.signature import signature

# Answers by which a model says that it does not answer.
#
# A refusal is written politely and in the right language, so nothing else tells it from an answer.

# Texts speak of people who are sorry, cannot sleep or eat no meat ("לא אוכל בשר"), so a beginning
# that anybody may use counts only with a word of what a model does or lacks. Both languages.
_WORDS = {
    # What a model says that it will not do.
    "does": r"""(?:help|assist|answer|respond|comply|provide|say|tell|determine|identify|place
        |situate|summari[sz]e|comment|describe|explain|discuss|process|access|do|fulfill?|complete
        |generate|give|offer|share|infer)\b""",
    # What it says that it lacks, and what it says that of.
    "lacks": r"(?:information|context|details?|data|background|surroundings)\b",
    "given": r"(?:text|passage|excerpt|snippet|context|message|input|question|request|memory)\b",
    "much": r"(?:enough|sufficient|adequate|any|additional|further|more|other|the|necessary)",
    "was": r"""(?:(?:was|is|were|has\s+been)\s+)?
        (?:given|provided|available|supplied|found|specified|known)\b""",
    "hdoes": r"""ל(?:עזור|סייע|ענות|השיב|ומר|תת|ספק|קבוע|זהות|מקם|סכם|תאר|הסביר|דעת|הגיב|התייחס
        |בצע|מלא|הסיק)\b""",
    "hlacks": r"ה?(?:מידע|הקשר|פרטים|נתונים|רקע)\b",
    "hgiven": r"(?:ה?(?:טקסט|קטע|הקשר|הודעה|פסקה)|מאיפה|מהיכן|מאין|לאן)\b",
    "hmuch": r"(?:מספיק|די|מספקי?ם?|כל|שום|עוד)",
}
_PATTERN = r"""
    ^\W*(?:
      # "I'm sorry, but ...", "Sorry, no."
      (?:i\s+am|i'?m)\s+(?:so\s+|very\s+|really\s+|truly\s+)?sorry\b
    | (?:so\s+|very\s+|really\s+)?sorry\W+(?:but|no|i|we|this|that|there|it)\b
    | sorry\W*$ | i\s+apologi[sz]e\b | apologi[sz]ing\b | my\s+apologies\b
    | apologies\W+(?:but|i|we|there|this)\b | apologies\W*$
    | (?:unfortunately\W+)?(?:%(i)s)
    | unfortunately\W+(?:i|we)\s+(?:know|have|lack|can|could|do|am|are)\b
    # "As a model, I ..."
    | (?:i\s+am|i'?m)\s+(?:just\s+|only\s+)?an?\s+(?:ai|language\s+model|assistant)\b
    | as\s+an?\s+(?:ai|(?:\w+\s+){0,2}language\s+model)\b
    | as\s+an?\s+(?:\w+\s+)?assistant\W+(?:i|my)\s+
        (?:do\s+not|don'?t|can\s*not|can'?t|am|will|won'?t|have\s+no|could)\b
    | (?:n\s*/\s*a|none|unknown|unclear|not\s+(?:known|available|applicable))\W*$
    | (?:no|not\s+%(much)s|insufficient)\s+(?:%(much)s\s+)?%(lacks)s\W*$
    # Hebrew
    | (?:אני\s+)?(?:ממש\s+|מאוד\s+|מאד\s+)?(?:מצטער(?:ת|ים)?|מתנצל(?:ת|ים)?)\b
    | סליחה,?\s+(?:אבל|אך|אני|אינני|לא)\b
    | (?:לצערי(?:\s+הרב)?,?\s+)?(?:%(h)s)
    | לצערי(?:\s+הרב)?,?\s+(?:אין\s+לי|אני\s+לא|איני|אינני|לא\s+(?:אוכל|ניתן|נוכל)\s+ל)
    | כ(?:מודל\s+שפה|בינה\s+מלאכותית)\b
    | כעוזרת?\s+(?:דיגיטלית?|וירטואלית?|אישית?),?\s+(?:איני|אינני|אני|אין\s+לי|לא\s+אוכל)\b
    | (?:לא\s+(?:ידוע|זמין|רלוונטי|ברור)|אין(?:\s+%(hmuch)s)?\s+%(hlacks)s)\W*$
    )
"""
_ENGLISH = r"""
      (?:i|we)\s+(?:can\s*not|can'?t|could\s*n'?t|could\s+not|won'?t|will\s+not)\s+(?:\w+\s+)?%(does)s
    | (?:i|we)(?:\s+am|\s+are|'?m|'?re)\s+(?:not\s+able|unable|not\s+allowed)\s+to\b
    | (?:i|we)\s+(?:do\s+not|don'?t)\s+have\s+(?:access\s+to\s+)?(?:%(much)s\s+){0,2}
        (?:%(lacks)s|%(given)s)
    | (?:i|we)\s+(?:have\s+no|lack)\s+(?:%(much)s\s+)?(?:access\s+to\s+)?(?:%(much)s\s+)?%(lacks)s
    | (?:i|we)\s+(?:do\s+not|don'?t)\s+know\s+
        (?:where|what|which|who)\s+(?:the|this|it|is)\s+(?:is\s+)?(?:the\s+|this\s+)?
        (?:%(given)s|%(lacks)s|comes?\b|from\b)
    | there\s+(?:is|are|was)(?:\s+not|n'?t)\s+(?:%(much)s\s+){0,2}%(lacks)s
    | there\s+(?:is|are|was)\s+(?:no|insufficient)\s+(?:%(much)s\s+)?%(lacks)s
    | (?:no|not\s+%(much)s|insufficient)\s+(?:%(much)s\s+)?%(lacks)s\s+
        (?:%(was)s|to\s+%(does)s|in\s+the\s+%(given)s)
    | (?:the|this)\s+(?:provided\s+|given\s+)?%(given)s\s+(?:itself\s+|alone\s+)?
        (?:(?:does\s+not|doesn'?t)\s+(?:contain|provide|give|include|have|offer)
          |lacks|contains\s+no|provides\s+no|gives\s+no)\s+(?:%(much)s\s+){0,2}%(lacks)s
    | the\s+(?:%(lacks)s|source|origin)\s+(?:of\s+(?:the|this)\s+%(given)s\s+)?
        (?:can\s*not|can'?t|could\s+not)\s+be\s+(?:determined|identified|known|inferred)\b
    | it(?:\s+is|'?s)\s+(?:not\s+possible|impossible)\s+to\s+%(does)s
    | it(?:\s+is|'?s)\s+(?:unclear|not\s+clear|unknown)\s+(?:where|what|which)\s+
        (?:(?:the|this)\s+)?(?:%(given)s|%(lacks)s)
"""
_HEBREW = r"""
      (?:אינני|איני|אני\s+לא|אין\s+אני)\s+(?:יכולה?|מסוגלת?|רשאית?|מורשי?ת?)\s+%(hdoes)s
    | אין\s+(?:באפשרותי|ביכולתי)\b | לא\s+(?:אוכל|נוכל|ניתן\s+לי)\s+%(hdoes)s
    | אין(?:\s+לי)?\s+(?:%(hmuch)s\s+)?(?:גישה\s+ל)%(hlacks)s
    | אין\s+לי\s+(?:%(hmuch)s\s+){0,2}%(hlacks)s
    | אין\s+%(hmuch)s\s+%(hlacks)s
    | (?:אינני|איני|אני\s+לא)\s+יודעת?\s+(?:מה\s+|את\s+|מי\s+)?%(hgiven)s
    | (?:לא\s+ניתן|אי\s+אפשר|לא\s+אפשרי|בלתי\s+אפשרי)\s+%(hdoes)s\s+(?:מה\s+|את\s+)?%(hgiven)s
    | לא\s+(?:נמסרו?|סופקו?|ניתנו?|צוינו?|נמצאו?|התקבלו?)\s+(?:%(hmuch)s\s+)?%(hlacks)s
    | ה(?:טקסט|קטע|הודעה)\s+(?:אינו|אינה|לא)\s+(?:מכילה?|כוללת?|מספקת?|נותנת?)\s+
        (?:%(hmuch)s\s+)?%(hlacks)s
"""
_REFUSALS = re.compile(
    _PATTERN % {**_WORDS, "i": _ENGLISH % _WORDS, "h": _HEBREW % _WORDS}, re.VERBOSE | re.IGNORECASE
)


def refuses(answer: str) -> bool:
    """True for "I'm sorry, but I can't help with that." and its like."""
    return _REFUSALS.search(normalize(answer).replace("’", "'")) is not None


def faithful(reply: str, text: str, most: int) -> str | None:
    """What a model says of `text` in one line of up to `most` characters; None when it is none that
    may be kept: a text comes from anywhere, so an answer that refuses, gives orders, forges a
    frame, speaks another language than the text or names a number that it does not say is dropped.
    """
    said_lines = below_headings(reply.splitlines())
    line = " ".join(" ".join(said_lines).split())
    if not line or len(line) > most or len(line) >= len(text):
        return None
    if hostile("\n".join(said_lines)) is not None or refuses(line):
        return None
    said, spoken = detect_language(line), detect_language(text)
    if said != spoken and "mixed" not in (said, spoken):
        return None
    invented = set(signature(line).numbers) - set(signature(text).numbers)
    return None if invented else line


# Prices are quoted per million tokens everywhere.
PRICE_UNIT = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits per user and UTC day; 0 = no limit."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What was used already, calls on their way included."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def plus(self, other: Spent) -> Spent:
        """Both together."""
        return Spent(
            calls=self.calls + other.calls,
            tokens=self.tokens + other.tokens,
            cost=self.cost + other.cost,
        )

    def minus(self, other: Spent) -> Spent:
        """Without `other`, never below nothing."""
        return Spent(
            calls=max(0, self.calls - other.calls),
            tokens=max(0, self.tokens - other.tokens),
            cost=max(0.0, self.cost - other.cost),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Per million tokens, in the currency of the settings."""

    prompt: float = 0.0
    completion: float = 0.0


def cost_of(prompt_tokens: int, completion_tokens: int, prices: Prices) -> float:
    """Cost of one call."""
    total = prompt_tokens * prices.prompt + completion_tokens * prices.completion
    return total / PRICE_UNIT


def refused_by(budget: Budget, spent: Spent, planned: Spent) -> str | None:
    """The limit that `planned` would break after `spent`, None when it fits."""
    after = spent.plus(planned)
    for limit in ("calls", "tokens", "cost"):
        most = getattr(budget, limit)
        if most and getattr(after, limit) > most:
            return limit
    return None


def day_start(now: datetime) -> datetime:
    """Midnight UTC of that day: when budgets begin anew."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


# A list longer than that is a model that runs on, not an answer.
MAX_LIST = 50
MAX_ANSWER_CHARS = 4_000

Share = Annotated[float, Field(ge=0, le=1)]
Line = Annotated[str, Field(min_length=1, max_length=MAX_ANSWER_CHARS)]
ProfileField = Literal[
    "name",
    "goals",
    "skills",
    "values",
    "interests",
    "preferences",
    "learning_goals",
    "short_term_goals",
    "long_term_goals",
    "technical_skills",
    "creative_skills",
    "interpersonal_skills",
    "projects",
    "challenges",
    "work_context",
    "colleagues",
    "family",
    "communication_style",
]


class ModelAnswer(BaseModel):
    """Fields that nobody asked for are dropped: models like to explain themselves."""

    model_config = ConfigDict(extra="ignore", frozen=True, str_strip_whitespace=True)

    @field_validator("*", mode="before")
    @classmethod
    def _no_boolean_numbers(cls, value: object, info: ValidationInfo) -> object:
        # `true` would be read as a confidence of 1.
        wanted = cls.model_fields[info.field_name or ""].annotation
        if isinstance(value, bool) and wanted is not bool:
            raise ValueError("must not be true or false")
        return value


class OutcomeJudgement(ModelAnswer):
    """How an answer went, seen from what the user said next."""

    outcome: Literal["worked", "failed", "partial", "unknown"]
    confidence: Share
    indicators: list[Line] = Field([], max_length=MAX_LIST)
    reason: str = Field("", max_length=MAX_ANSWER_CHARS)


class ProfileFinding(ModelAnswer):
    """One thing that the user says of themselves; `quote` is in their own words."""

    field: ProfileField
    value: Line
    confidence: Literal["high", "medium", "low"]
    quote: str = Field("", max_length=MAX_ANSWER_CHARS)


class ProfileFindings(ModelAnswer):
    """Empty: the user said nothing of themselves."""

    items: list[ProfileFinding] = Field(max_length=MAX_LIST)


class HistorySummary(ModelAnswer):
    """A conversation in a few lines."""

    bullets: list[Line] = Field(max_length=MAX_LIST)


class MergedMemory(ModelAnswer):
    """`same`: the texts say one thing; then `text` says it, and nothing else."""

    same: bool
    text: str = Field("", max_length=MAX_ANSWER_CHARS)
    confidence: Share


class AnswerReading(ModelAnswer):
    """The number of the text that answers the question, 0 = none does."""

    text: int = Field(ge=0)


Category = Literal[
    "philosophy",
    "psychology",
    "business",
    "science",
    "technology",
    "health",
    "relationships",
    "creativity",
    "leadership",
    "religion",
    "education",
    "economics",
    "politics",
    "history",
    "literature",
    "art",
    "law",
    "society",
    "other",
]


class DocumentNote(ModelAnswer):
    """What one of the numbered passages says. `quote`: word for word, or empty."""

    number: int = Field(ge=1, le=MAX_LIST)
    summary: Line
    category: Category = "other"
    quote: str = Field("", max_length=MAX_ANSWER_CHARS)

    @field_validator("category", mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        """Models invent categories; what a passage says counts all the same."""
        name = str(value).strip().lower()
        return name if name in get_args(Category) else "other"


class DocumentNotes(ModelAnswer):
    """Of passages that say nothing there is no note."""

    passages: list[DocumentNote] = Field(max_length=MAX_LIST)


class DocumentSummary(ModelAnswer):
    """A document in a few sentences, and the subjects that run through it."""

    summary: Line
    themes: list[Line] = Field([], max_length=MAX_LIST)


# The name in a prompt's front matter -> what its answer must be.
ANSWERS: dict[str, type[ModelAnswer] | type[str]] = {
    "text": str,
    "outcome_judgement": OutcomeJudgement,
    "profile_findings": ProfileFindings,
    "history_summary": HistorySummary,
    "merged_memory": MergedMemory,
    "answer_reading": AnswerReading,
    "document_notes": DocumentNotes,
    "document_summary": DocumentSummary,
}


T = TypeVar("T")

_FENCED = re.compile(r"\A\s*```[^\n`]*\n(.*?)\n?```\s*\Z", re.DOTALL)
# Signs that close nothing and mean nothing, which `strip` does not know.
_INVISIBLE = "\ufeff\u200b\u200e\u200f\u2060"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """`reason` is for the model that gets another try, and for the log: no text of the answer."""

    reason: str


def read_answer(text: str, answer: type[T], *, cut: bool = False) -> T | Unreadable:
    """`text` as an `answer`: str, or a pydantic model.

    cut: the endpoint says that it stopped at the length limit. A cut text is no answer, because
    half a fact may say the opposite; of cut JSON the finished values count.
    """
    if answer is str:
        plain = plain_text(text)
        if cut:
            return Unreadable("The answer was cut off; give a shorter one.")
        return cast(T, plain) if plain else Unreadable("The answer is empty.")
    if not issubclass(answer, BaseModel):
        raise TypeError("an answer is str or a pydantic model")
    values = json_values(text)
    if not values:
        return Unreadable("The answer holds no JSON; answer with one JSON object only.")
    problem = ""
    # The last one first: models show an example or think aloud, then answer.
    for one in reversed(values):
        for shaped in shapes_of(one.value, answer):
            try:
                return cast(T, answer.model_validate(shaped))
            except ValidationError as error:
                problem = problem or _problem(error)
    return Unreadable(problem)


def plain_text(text: str) -> str:
    """Without a fence or quotes around all of it."""
    text = text.strip().strip(_INVISIBLE).strip()
    fenced = _FENCED.match(text)
    text = fenced.group(1).strip() if fenced else text
    for opener, closer in (('"', '"'), ("'", "'"), ("“", "”"), ("`", "`")):
        inner = text[1:-1]
        if len(text) > 1 and text[0] == opener and text[-1] == closer and closer not in inner:
            return inner.strip()
    return text


def shapes_of(value: Any, answer: type[BaseModel]) -> list[Any]:
    """What `value` may have meant: a bare array for the one list, one object in an array."""
    if isinstance(value, dict):
        wrapped = list(value.values())
        # {"result": {...}}: the answer under a name of the model's own.
        return [value, wrapped[0]] if len(value) == 1 and isinstance(wrapped[0], dict) else [value]
    required = [name for name, info in answer.model_fields.items() if info.is_required()]
    first = answer.model_fields[required[0]] if len(required) == 1 else None
    if first is not None and get_origin(first.annotation) is list:
        return [{required[0]: value}]
    return [value[0]] if isinstance(value, list) and len(value) == 1 else []


def _problem(error: ValidationError) -> str:
    """Names of fields and rules, never the values."""
    found = error.errors(include_url=False, include_input=False, include_context=False)[:3]
    parts = [
        f"{'.'.join(str(part) for part in one['loc']) or 'answer'}: {one['msg']}" for one in found
    ]
    return f"The answer does not fit: {'; '.join(parts)}."
