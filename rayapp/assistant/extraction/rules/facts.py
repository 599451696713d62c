"""Which line of a model is a fact worth keeping, where it goes, and whether it is known. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cache
from itertools import zip_longest
from typing import Any, Literal, Self, TypeVar

from rayapp.memory.item import (
    LEARNED_TAG,
    SOURCE_TRUST,
    MemoryItem,
    SourceType,
    derived_id,
    subject_of,
)
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from rayapp.text.hostile import hostile
from rayapp.text.normalize import below_headings, canonical, content_hash, normalize
from rayapp.text.paraphrase import content_words
from rayapp.text.signature import Signature, difference, opposite, signature
from rayapp.text.slots import replaces
from rayapp.text.tokens import tokens
from rayapp.text.word_lists import words_of

# One line per thing that a model is asked about an exchange.
Task = Literal["outcome", "title", "profile", "fact", "summary"]
TASKS: tuple[Task, ...] = ("outcome", "title", "profile", "fact", "summary")


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One question and its answer. `trust`: of the memory that keeps them."""

    user: str
    assistant: str
    trust: float

    @property
    def text(self) -> str:
        return f"{self.user}\n{self.assistant}"


@dataclass(frozen=True, slots=True)
class Checked:
    """A line of a model: `text` when it is kept, else the first rule that refuses it."""

    text: str | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """One memory to make of an exchange. Tier, tags and numbers come from rules alone.

    `supersedes`: the memory whose place it takes.
    """

    memory_id: str
    text: str
    tier: Tier
    tags: tuple[str, ...]
    importance: float
    confidence: float
    trust: float
    task: Task
    prompt_version: str
    supersedes: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, as a row keeps it between deciding and storing."""
        return asdict(self) | {"tier": self.tier.value, "tags": list(self.tags)}

    @classmethod
    def of_json(cls, raw: Mapping[str, Any]) -> Self:
        return cls(**{**raw, "tier": Tier(raw["tier"]), "tags": tuple(raw["tags"])})


# A line of these alone only makes conversation.
# A line adds these to say whose fact it is: they need not stand in the exchange.


@cache
def _with_lemmas(name: str) -> frozenset[str]:
    """Made when a line is read: the dictionary takes 37 MB, and many who import this read none."""
    listed = frozenset(words_of(name))
    return listed | {lemma for word in listed for lemma in content_words(word)}


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedExchange:
    """A question and its answer, cleaned of marks and of what was put before the assistant.

    Attributes:
        memory_id: the memory that holds the turn; None = too small to be one.
        principal, owner: who stored it; what is judged is judged in their name.
        injected: fingerprints of all that was put before the assistant, as the session has them.
        receipt_id: what the answer was given with; `shown` are its memory ids.

    One that was erased has no texts: its memory is gone, and it only holds its place.
    """

    user_id: str
    conversation_id: str
    message_id: str
    user_text: str
    answer: str
    memory_id: str | None
    at: datetime
    principal: str = ""
    owner: bool = True
    injected: tuple[str, ...] = ()
    receipt_id: str | None = None
    shown: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        return self.user_id, self.conversation_id, self.message_id

    @property
    def own(self) -> ReadScope:
        """What belongs to its user alone."""
        return ReadScope(self.user_id).own

    @property
    def erased(self) -> bool:
        return not (self.user_text or self.answer)


def in_rounds(queues: Sequence[Sequence[T]]) -> list[T]:
    """The first of each queue, then the second of each, and so on."""
    rounds = zip_longest(*([(one,) for one in queue] for queue in queues), fillvalue=())
    return [one for taken in rounds for found in taken for one in found]


# A shorter line holds no fact (the extraction design: 10 characters).
MIN_CHARS = 10
# One or two short sentences (the extraction design); our choice of a cap.
MAX_CHARS = 400
# Least share of the words of a line that the exchange must hold: the rest is what turns "I" into
# "the user". Our choice, checked on the table of exchanges in the tests.
GROUNDED = 0.5
# Least cosine of two texts that say the same (0029).
SIMILAR = 0.90
# A shorter text is found inside any other one.
MIN_CONTAINED_CHARS = 12

_THINKING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"^```[\w-]*\s*$", re.MULTILINE)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")
_LABEL = re.compile(r"^\s*(?:\*\*)?(?:fact|עובדה|ה?עובדה היא)(?:\*\*)?\s*[:\-]\s*", re.IGNORECASE)
_QUOTES = "\"'“”„«»`׳״ "
_NOTHING = re.compile(r"\bNOTHING\b", re.IGNORECASE)
_EMPTY_LINES = frozenset(
    {
        *("none", "null", "nil", "n/a", "na", "no", "yes", "ok", "okay", "no fact", "no facts"),
        *("no new fact", "no new facts", "כלום", "אין", "לא", "כן", "שום דבר", "אין עובדה"),
        *("אין עובדות", "אין עובדה חדשה", "אין עובדות חדשות", "אין מה לשמור", "אין מידע חדש"),
    }
)
_QUESTION_WORDS = re.compile(
    r"""
      ^(?:what|who|where|when|why|how|which|is|are|does|do|did|can|could|would|should)\s+
      (?:the\s+)?(?:user|you|i|we|they|he|she|it)\b
    | ^(?:מה|מי|איפה|היכן|מתי|איך|כיצד|למה|מדוע|כמה|האם|איזה|איזו)\s
    | \b(?:user|he|she|they)\s+(?:is\s+|was\s+|has\s+|had\s+)?
      (?:ask(?:s|ed|ing)?|wonder(?:s|ed|ing)?|want(?:s|ed)\s+to\s+know|inquir(?:es|ed|ing)
         |would\s+like\s+to\s+know)\b
    | (?:ה?משתמש(?:ת)?|הוא|היא)\s+(?:שאל(?:ה)?|שואל(?:ת)?|ביקש(?:ה)?\s+לדעת|מבקש(?:ת)?\s+לדעת
         |רוצה\s+לדעת|רצה\s+לדעת|רצתה\s+לדעת|תהה|תהתה|מתעניין|התעניין|התעניינה)
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Where one thing that is said ends, so that a "not" belongs to its own part.
_CLAUSES = re.compile(
    r"[.!?;,\n]|\b(?:but|although|though|while|אבל|אך|אולם|למרות)\b", re.IGNORECASE
)


# A clause that asks something of the speaker, or supposes it, tells nothing of them.
_SUPPOSED = re.compile(
    r"(?<![^.!?;,\n])[^\S\n]*+(?:"
    r"(?:should|shall|am|do|does|did|could|can|would|will|is|are) (?:i|we)\b[^.!?;,\n]*+\?"
    r"|if (?:i|we) (?:\w+ed|were|was|had|could|did|went|got)\b[^.!?;,\n]*+"
    r"|(?:suppose|imagine) [^.!?;,\n]*+|האם [^.!?;,\n]*+\?"
    r"|(?:אם (?:הייתי|היינו)|אילו|לו|נניח) [^.!?;,\n]*+)",
    re.IGNORECASE,
)
_KIN_NOUNS = (
    r"sisters?|brothers?|mother|mom|mum|father|dad|wife|husband|sons?|daughters?|aunt|uncle"
    r"|cousins?|grand(?:ma|pa|mother|father)|nephew|niece|boss|manager|friends?|neighbou?rs?"
    r"|girlfriend|boyfriend|partner|roommate|colleagues?"
)
_KIN_HE = (
    r"אחותי|אחי|אימי|אמי|אשתי|בעלי|דודי|דודתי|סבתי|סבי|חברתי|חבר שלי|חברה שלי|אמא שלי|אבא שלי"
    r"|אח שלי|אחות שלי|בן דודי|הבת שלי|הבן שלי|הבוס שלי|המנהל שלי|השכן שלי"
)
# A clause that begins with somebody is about them.
_OF_KIN = re.compile(
    rf"\W*(?:and |so |well |also )?(?:(?:my|our) (?:\w+ )?(?:{_KIN_NOUNS})\b"
    rf"|ו?(?:{_KIN_HE})(?!\w))",
    re.IGNORECASE,
)
_KIN_WORD = re.compile(
    rf"\b(?:{_KIN_NOUNS}|kids?|child(?:ren)?|married|spouse|parents?|family)\b|(?<!\w)[ושהבלמכ]?(?:"
    r"אחות|אח|אמא|אם|אבא|אב|אישה|אשת|בעל|בן|בת|דוד|דודה|סבתא|סבא|חבר|חברה|חברת|בוס|מנהל|שכן|נשוי|נשואה"
    r"|ילד|ילדה|ילדים|הורים|משפחה|אחותו|אחותה|אחיו|אחיה|אמו|אמה|אביו|אביה|אשתו|בעלה|בנו|בנה|בתו|בתה"
    r"|סבתו|סבתה|סבו|סבה|דודתו|דודתה|דודו|דודה)(?!\w)",
    re.IGNORECASE,
)
_OF_USER = re.compile(r"\W*(?:the user|user|המשתמשת?)(?!\w|['’]s)", re.IGNORECASE)
_WE = re.compile(r"\b(?:i|i'm|i’m|we|we're|me)\b|(?<!\w)(?:אני|אנחנו|שנינו)(?!\w)", re.IGNORECASE)
# Words before a text in which a "not" is about it.
WORDS_BEFORE = 3


def fact_of(reply: str, turn: Turn, echoes: Callable[[str], bool]) -> Checked:
    """The fact in the reply of a model, or the rule that refuses it.

    `echoes`: whether a text was put before the assistant, so that it only came back.
    """
    line, reason = line_of(reply)
    if line is None:
        return Checked(None, reason)
    refused = refusal(line, turn.text, echoes)
    return Checked(None, refused) if refused else Checked(line, "fact")


def line_of(reply: str) -> tuple[str | None, str]:
    """(the one line of a reply, ""), or (None, why there is none)."""
    text = _FENCE.sub("", _THINKING.sub("", reply))
    rows = below_headings(text.splitlines())
    if not rows:
        return None, "empty"
    if _NOTHING.search(text):
        return None, "nothing"
    if len(rows) > 1:
        return None, "several"
    line = _LABEL.sub("", _BULLET.sub("", rows[0])).strip(_QUOTES)
    if canonical(line).rstrip(" .!") in _EMPTY_LINES:
        return None, "nothing"
    return line, ""


def refusal(line: str, said: str, echoes: Callable[[str], bool]) -> str | None:
    """The first rule that refuses `line` as something learned from `said`; None keeps it."""
    return (
        _by_form(line)
        or hostile(line)
        or ("small_talk" if _with_lemmas("talk").issuperset(content_words(line)) else None)
        or ("echo" if echoes(line) else None)
        or unsaid(line, said)
    )


def _by_form(line: str) -> str | None:
    if len(line) < MIN_CHARS:
        return "too_short"
    if len(line) > MAX_CHARS:
        return "too_long"
    if line.rstrip(_QUOTES).endswith(("?", "؟", "？")) or _QUESTION_WORDS.search(normalize(line)):
        return "question"
    return None


def unsaid(line: str, said: str) -> str | None:
    """What shows that `line` was not taken from `said`: a number, its words, a "not"."""
    mine, theirs = signature(line), signature(said)
    if not set(mine.numbers) <= set(theirs.numbers):
        return "number"
    clauses = _nearest(line, said)
    if grounding(line, _SUPPOSED.sub(" ", said)) < GROUNDED or _of_kin(line, clauses):
        return "not_said"
    return "polarity" if _turned_round(line, clauses) else None


def _of_kin(line: str, clauses: Sequence[str]) -> bool:
    """What is nearest to a line about the user tells of a relative, whom the line leaves out."""
    if not _OF_USER.match(line) or _KIN_WORD.search(line):
        return False
    return bool(clauses) and all(
        _OF_KIN.match(clause) and not _WE.search(clause) for clause in clauses
    )


def _turned_round(line: str, clauses: Sequence[str]) -> bool:
    """What is nearest to `line` says the opposite: a "not" was lost, or came from nowhere."""
    mine = signature(line)
    return bool(clauses) and all(_opposes(line, mine, clause) for clause in clauses)


def _nearest(line: str, said: str) -> list[str]:
    """The clauses that share most of the telling words of `line`; none when none shares any."""
    words = set(content_words(line)) - _with_lemmas("subjects")
    clauses = [clause for clause in _CLAUSES.split(said) if clause.strip()]
    shared = [len(words & _held(clause)) for clause in clauses]
    best = max(shared, default=0)
    return [one for one, count in zip(clauses, shared, strict=True) if count == best > 0]


def _opposes(line: str, mine: Signature, clause: str) -> bool:
    theirs = signature(clause)
    if bool(mine.negations) != bool(theirs.negations):
        return True
    return mine.numbers == theirs.numbers and opposite(mine, theirs)


def grounding(line: str, said: str) -> float:
    """Share of the telling words of `line` that `said` holds, 0..1."""
    words = set(content_words(line)) - _with_lemmas("subjects")
    if not words:
        return 0.0
    held = _held(said)
    return sum(word in held for word in words) / len(words)


def _held(text: str) -> frozenset[str]:
    return frozenset(content_words(text)) | signature(text).words


# --- what is known already -----------------------------------------------------------------


def known_text(line: str, texts: Iterable[str]) -> bool:
    """One of the texts is the line, holds it, or stands in it: both ways, as a person compares."""
    mine, hashed = _plain(line), content_hash(line)
    for text in texts:
        theirs = _plain(text)
        if content_hash(text) == hashed:
            return True
        if mine.strip() and _holds(theirs, mine):
            return True
        if len(theirs) >= MIN_CONTAINED_CHARS and _holds(mine, theirs) and not adds(line, text):
            return True
    return False


def _holds(whole: str, part: str) -> bool:
    """Whether it says the part, and not its contrary: "not allergic" holds "allergic"."""
    before, found, _ = whole.partition(part)
    return bool(found) and not signature(" ".join(before.split()[-WORDS_BEFORE:])).negations


def known_near(line: str, other: str, cosine: float) -> bool:
    """The other text says the same: near, and nothing that matters tells the two apart.

    A vector alone does not know a number or a "not" from another one, and a fact that is taken for
    a known one is lost.
    """
    return cosine >= SIMILAR and difference(line, other) in (None, "units")


def replaced_by(one: Learned, items: Iterable[MemoryItem], at: datetime) -> str | None:
    """Id of the memory whose place a learned fact takes: it says something else of the same thing,
    it is older, and no document or tool said it. Of several the newest; None: it stands beside.

    Only a fact in the user's own words replaces anything, and only what is current and about the
    user, as what is learned is.
    """
    if one.confidence < REPLACING_CONFIDENCE:
        return None
    older = [
        item
        for item in items
        if item.tier in REPLACED_TIERS
        and item.source.type in REPLACED_SOURCES
        and item.superseded_by is None
        and subject_of(item) is None
        and item.created_at < at
        and replaces(one.text, item.text)
    ]
    newest = max(older, key=lambda item: (item.created_at, item.sequence), default=None)
    return newest.memory_id if newest else None


def adds(line: str, part: str) -> bool:
    """`line`, which is about the same as `part`, also says something else."""
    return bool(set(content_words(line)) - _with_lemmas("subjects") - _held(part))


def _plain(text: str) -> str:
    """Words between spaces, so that a part ends where a word ends."""
    return f" {' '.join(token.text for token in tokens(normalize(text)))} "


# Whether a text that a model proposes says exactly what two near-duplicates say.


def joined_text(reply: str, one: str, other: str) -> Checked:
    """The text for both, or the rule that refuses it: then the two stay as they are.

    It must hold every telling word, number and name of both, and no new one; what the two negate
    it negates. So a merge can lose nothing and invent nothing, whatever the model says.
    """
    line, reason = line_of(reply)
    if line is None:
        return Checked(None, reason)
    if len(line) > max(MAX_CHARS, len(one) + len(other)):
        return Checked(None, "too_long")
    refused = hostile(line) or _differs(line, one, other)
    return Checked(None, refused) if refused else Checked(line, "joined")


def _differs(line: str, one: str, other: str) -> str | None:
    mine, first, second = signature(line), signature(one), signature(other)
    if set(mine.numbers) != {*first.numbers, *second.numbers}:
        return "numbers"
    if mine.negations != max(first.negations, second.negations) or (
        first.negations != second.negations
    ):
        return "polarity"
    words, wanted = set(content_words(line)), {*content_words(one), *content_words(other)}
    if wanted - words:
        return "loses"
    return "adds" if words - wanted else None


# Where something learned goes, and with which numbers. A model decides none of it.

FACT_TAG = "fact"
# From this share of its words in the user's own message on, a line is the user's word and stays;
# below it, it is what the assistant said, and runs out unless outcomes prove it. Our choice.
OWN_WORDS = 0.75
# Below those of facts that a person keeps on purpose (importance .7 and more), so that capacity
# archives what was only overheard first.
FACT_IMPORTANCE = 0.6
FACT_CONFIDENCE = 0.7
ANSWER_CONFIDENCE = 0.5
# Below it a fact is too unsure to hide another one: what an answer said, and nobody confirmed.
REPLACING_CONFIDENCE = 0.7
# What a newer fact of the user may replace: never a document, a tool result or a proven pattern.
REPLACED_TIERS = frozenset({Tier.MEMORY_BANK, Tier.HISTORY, Tier.WORKING})
REPLACED_SOURCES = frozenset({SourceType.USER, SourceType.ASSISTANT})


@dataclass(frozen=True, slots=True)
class Making:
    """What something is learned from, and the prompt that was asked."""

    exchange: LearnedExchange
    prompt_version: str

    def memory_id(self, task: Task, number: int = 0) -> str:
        """The same for the same exchange, so that storing it twice is storing it once."""
        return derived_id("learned", task, str(number), *self.exchange.key)


def derived_trust(parents: Sequence[float]) -> float:
    """A derived item is trusted as its least trusted parent; a model's wording is one of them."""
    return min((*parents, SOURCE_TRUST[SourceType.ASSISTANT]))


def placed_fact(text: str, turn: Turn, shown: Sequence[float] = (), *, made: Making) -> Learned:
    """A fact in the user's own words is kept for good; another one only as long as it helps.

    `shown`: trust of the memories that the answer was given with: its parents as well.
    """
    own = grounding(text, turn.user) >= OWN_WORDS
    return Learned(
        memory_id=made.memory_id("fact"),
        text=text,
        tier=Tier.MEMORY_BANK if own else Tier.WORKING,
        tags=(LEARNED_TAG, FACT_TAG),
        importance=FACT_IMPORTANCE,
        confidence=FACT_CONFIDENCE if own else ANSWER_CONFIDENCE,
        trust=derived_trust([turn.trust, *(() if own else shown)]),
        task="fact",
        prompt_version=made.prompt_version,
    )
