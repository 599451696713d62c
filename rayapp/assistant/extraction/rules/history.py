"""When a conversation is summed up, an answer judged, and what a user says of themselves. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from rayapp.assistant.extraction.rules import facts
from rayapp.assistant.extraction.rules.facts import Checked, Learned, Turn
from rayapp.inference.chat.rules.answers import ProfileFinding
from rayapp.memory.item import LEARNED_TAG, derived_id
from rayapp.memory.tiers import Tier
from rayapp.text.hebrew import HAS_HEBREW
from rayapp.text.hostile import hostile
from rayapp.text.normalize import canonical
from rayapp.text.paraphrase import content_words
from rayapp.text.signature import signature

# A shorter reaction is none: "?", "..". Two letters may be one ("no", "לא").
MIN_REACTION_CHARS = 2
About = Literal["shown", "exchange"]


def has_reaction(text: str) -> bool:
    """The next message says anything at all."""
    return sum(one.isalnum() for one in text) >= MIN_REACTION_CHARS


def outcome_key(user_id: str, conversation_id: str, message_id: str, about: About) -> str:
    """The idempotency key of a detected outcome: one per judged turn and kind, for ever.

    The space in it keeps it apart from every key that a caller may send.
    """
    return f"detected {derived_id('detected', about, user_id, conversation_id, message_id)}"


# Things of one message that are kept at most; a longer list is a list of guesses. Our choice.
MAX_ENTRIES = 3
# How sure a model may say it is; "low" is not kept.
SURE: dict[str, float] = {"high": 0.9, "medium": 0.75}
# From this many words on, a value says by itself what it is about.
SENTENCE_WORDS = 4


@dataclass(frozen=True, slots=True)
class Field:
    """`tag` of the memory, its importance 0..1, and how it is called in both languages."""

    tag: str
    importance: float
    english: str
    hebrew: str


# Importance from the profile table of the design; what it does not name is 0.6.
FIELDS: dict[str, Field] = {
    "name": Field("identity", 0.95, "Name", "שם"),
    "work_context": Field("identity", 0.65, "Work", "עבודה"),
    "family": Field("identity", 0.6, "Family", "משפחה"),
    "colleagues": Field("identity", 0.6, "Colleagues", "עמיתים"),
    "skills": Field("identity", 0.75, "Skills", "כישורים"),
    "technical_skills": Field("identity", 0.75, "Technical skills", "כישורים טכניים"),
    "creative_skills": Field("identity", 0.75, "Creative skills", "כישורים יצירתיים"),
    "interpersonal_skills": Field("identity", 0.75, "Skills with people", "כישורים בין-אישיים"),
    "preferences": Field("preference", 0.7, "Preference", "העדפה"),
    "communication_style": Field("preference", 0.7, "Way of communicating", "סגנון תקשורת"),
    "interests": Field("preference", 0.6, "Interests", "תחומי עניין"),
    "values": Field("value", 0.6, "Values", "ערכים"),
    "goals": Field("goal", 0.85, "Goal", "מטרה"),
    "learning_goals": Field("goal", 0.85, "Wants to learn", "רוצה ללמוד"),
    "short_term_goals": Field("goal", 0.85, "Goal", "מטרה"),
    "long_term_goals": Field("goal", 0.85, "Long-term goal", "מטרה לטווח ארוך"),
    "projects": Field("project", 0.8, "Project", "פרויקט"),
    "challenges": Field("challenge", 0.7, "Challenge", "אתגר"),
}


def profile_of(
    findings: Sequence[ProfileFinding],
    turn: Turn,
    echoes: Callable[[str], bool],
    *,
    made: facts.Making,
) -> tuple[tuple[Learned, ...], tuple[str, ...]]:
    """(what is kept, why others are not). Only the user's own words count as a source."""
    kept: list[Learned] = []
    refused: list[str] = []
    seen: set[str] = set()
    for finding in findings:
        checked = _check(finding, turn, echoes)
        if checked.text is None:
            refused.append(checked.reason)
            continue
        if len(kept) == MAX_ENTRIES or canonical(checked.text) in seen:
            refused.append("too_many" if len(kept) == MAX_ENTRIES else "repeated")
            continue
        seen.add(canonical(checked.text))
        field = FIELDS[finding.field]
        kept.append(
            Learned(
                memory_id=made.memory_id("profile", len(kept)),
                text=checked.text,
                tier=Tier.MEMORY_BANK,
                tags=(LEARNED_TAG, field.tag),
                importance=field.importance,
                confidence=SURE[finding.confidence],
                trust=facts.derived_trust([turn.trust]),
                task="profile",
                prompt_version=made.prompt_version,
            )
        )
    return tuple(kept), tuple(refused)


def _check(finding: ProfileFinding, turn: Turn, echoes: Callable[[str], bool]) -> Checked:
    if finding.field not in FIELDS:
        return Checked(None, "field")
    if finding.confidence not in SURE:
        return Checked(None, "unsure")
    value = " ".join(finding.value.split())
    label = _label(FIELDS[finding.field], turn.user)
    # A value of few words is kept with the name of its field: alone it says nothing.
    text = value if len(value.split()) >= SENTENCE_WORDS else f"{label}: {value}"
    reason = facts.unsaid(value, turn.user) or facts.refusal(text, f"{turn.user}\n{label}", echoes)
    return Checked(None, reason) if reason else Checked(text, "profile")


def _label(field: Field, said: str) -> str:
    return field.hebrew if HAS_HEBREW.search(said) else field.english


# A conversation is summed up when it is longer than so many turns, and again after as many more
# (the history design: 8 messages).
TURNS = 4
# Turns that are read at once; older ones are told by the bullets before.
MOST_TURNS = 16
BULLETS = 5  # of one summary (the history design)
# A longer text is a transcript. Five bullets of some twenty words (the history design).
MAX_SUMMARY_CHARS = 1_200
MIN_SUMMARY_CHARS = 20
# Least share of its words that the turns must hold: a summary words things anew, hence less than
# for a fact. Our choice.
GROUNDED_SUMMARY = 0.4


def summary_due(exchanges: int, summed: int) -> bool:
    """`summed`: turns that the last bullets stand for."""
    return exchanges > TURNS and exchanges - summed >= TURNS


def summary_of(bullets: Sequence[str], turns: Sequence[Turn]) -> Checked:
    """What is kept of the bullets of a model, a line each; None when nothing is left of them."""
    said = "\n".join(turn.text for turn in turns)
    kept: list[str] = []
    reason = "empty"
    for bullet in bullets[:BULLETS]:
        line, why = facts.line_of(" ".join(bullet.split()))
        refused = why or (hostile(line) or _unsaid(line, said) if line else "empty")
        if line and not refused:
            kept.append(line)
        reason = refused or reason
    text = "\n".join(kept)
    if not MIN_SUMMARY_CHARS <= len(text) <= MAX_SUMMARY_CHARS:
        return Checked(None, "too_long" if len(text) > MAX_SUMMARY_CHARS else reason)
    return Checked(text, "summary")


def _unsaid(line: str, said: str) -> str | None:
    mine, theirs = signature(line), signature(said)
    if not set(mine.numbers) <= set(theirs.numbers):
        return "number"
    words = set(content_words(line))
    held = set(content_words(said)) | theirs.words
    return None if words and len(words & held) >= GROUNDED_SUMMARY * len(words) else "not_said"
