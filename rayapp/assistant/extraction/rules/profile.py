"""What a user says of themselves: the fields that are kept, as tags and importance. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rayapp.assistant.extraction.records import Checked, Learned, Turn
from rayapp.assistant.extraction.rules.facts import refusal, unsaid
from rayapp.assistant.extraction.rules.placing import LEARNED_TAG, Making, derived_trust
from rayapp.inference.chat.rules.answers import ProfileFinding
from rayapp.memory.tiers import Tier
from rayapp.text.hebrew import HAS_HEBREW
from rayapp.text.normalize import canonical

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
    made: Making,
) -> tuple[tuple[Learned, ...], tuple[str, ...]]:
    """(what is kept, why others are not). Only the user's own words count as a source."""
    kept: list[Learned] = []
    refused: list[str] = []
    seen: set[str] = set()
    for finding in findings:
        checked = _checked(finding, turn, echoes)
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
                trust=derived_trust([turn.trust]),
                task="profile",
                prompt_version=made.prompt_version,
            )
        )
    return tuple(kept), tuple(refused)


def _checked(finding: ProfileFinding, turn: Turn, echoes: Callable[[str], bool]) -> Checked:
    if finding.field not in FIELDS:
        return Checked(None, "field")
    if finding.confidence not in SURE:
        return Checked(None, "unsure")
    value = " ".join(finding.value.split())
    label = _label(FIELDS[finding.field], turn.user)
    # A value of few words is kept with the name of its field: alone it says nothing.
    text = value if len(value.split()) >= SENTENCE_WORDS else f"{label}: {value}"
    reason = unsaid(value, turn.user) or refusal(text, f"{turn.user}\n{label}", echoes)
    return Checked(None, reason) if reason else Checked(text, "profile")


def _label(field: Field, said: str) -> str:
    return field.hebrew if HAS_HEBREW.search(said) else field.english
