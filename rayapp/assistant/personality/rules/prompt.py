"""Renders a checked template to the first section of a system prompt, in English or Hebrew.

The line that tells the assistant and the user apart is always there, in both languages: without it
a model answers "what is my name" with its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rayapp.assistant.personality.records import Checked
from rayapp.assistant.personality.rules.template import INSTRUCTIONS, TRAITS

PromptLang = Literal["en", "he"]

PRONOUNS = (
    'The user is another person than you. "My name", "my preferences" or "what I said" in their '
    "words means theirs: look it up in memory, and never answer with yours.",
    'המשתמש הוא אדם אחר ולא אתה. כשהוא אומר "השם שלי", "ההעדפות שלי" או "מה שאמרתי" הכוונה '
    "אליו: חפש זאת בזיכרון, ולעולם אל תענה בפרטים שלך.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The sentences of one language. `{}` is the value of the template."""

    opening: str
    opening_role: str
    expertise: str
    style: str
    traits: str
    default_style: str
    words: Mapping[tuple[str, str], str]
    switches: Mapping[str, str]
    sentences: Mapping[tuple[str, str], str]


ENGLISH = Wording(
    opening="You are {name}.",
    opening_role="You are {name}, {role}.",
    expertise="You know about: {}.",
    style="Style: {}.",
    traits="Traits: {}.",
    default_style="balanced answers",
    words={
        ("tone", "warm"): "warm tone",
        ("tone", "professional"): "professional tone",
        ("tone", "direct"): "direct tone",
        ("tone", "enthusiastic"): "enthusiastic tone",
        ("tone", "neutral"): "neutral tone",
        ("tone", "friendly"): "friendly tone",
        ("tone", "casual"): "casual tone",
        ("tone", "formal"): "formal tone",
        ("verbosity", "concise"): "short answers",
        ("verbosity", "balanced"): "balanced answers",
        ("verbosity", "detailed"): "detailed answers",
        ("formality", "casual"): "casual language",
        ("formality", "professional"): "business language",
        ("formality", "neutral"): "plain language",
        ("formality", "formal"): "formal language",
        ("structure", "bullets"): "lists where they help",
        ("structure", "prose"): "prose without lists",
        ("emphasis", "plain"): "plain text without markup",
        ("emphasis", "markdown"): "Markdown",
        ("code_blocks", "separate"): "code in blocks of its own",
    },
    switches={
        "use_analogies": "analogies welcome",
        "use_examples": "give examples",
        "use_humor": "light humour is fine",
        "step_by_step": "explain step by step",
    },
    sentences={
        ("show_reasoning", "True"): "Show your reasoning within <think>…</think> when it helps.",
        ("citation_style", "always_cite"): "Name the memory that each statement rests on.",
        ("citation_style", "cite_patterns"): "Name the memory when you use a proven pattern.",
        ("clarification", "ask_questions"): "Ask when a request can be read in two ways.",
        ("clarification", "make_assumptions"): "Do not ask back: assume, and say what you assume.",
        ("prioritize", "accuracy"): "Being right matters more than being quick.",
        ("prioritize", "speed"): "Being quick matters more than being complete.",
        ("priority", "always_reference"): "Look at what memory holds before every answer.",
        ("priority", "when_relevant"): "Use memory where it bears on the question.",
        ("priority", "recent"): "Of what memory holds, prefer the newest.",
        ("priority", "balanced"): "Use memory where it bears on the question.",
        ("priority", "patterns"): "Look first for what has worked before.",
        ("pattern_trust", "heavily_favor"): "Prefer what has worked before.",
        ("pattern_trust", "high"): "Prefer what has worked before.",
        ("pattern_trust", "low"): "Do not take what worked before for what works now.",
        ("historical_context", "reference_past"): "Refer to earlier conversations.",
        ("historical_context", "current_only"): "Stay within the present conversation.",
    },
)

HEBREW = Wording(
    opening="אתה {name}.",
    opening_role="אתה {name}, {role}.",
    expertise="תחומי הידע שלך: {}.",
    style="סגנון: {}.",
    traits="תכונות: {}.",
    default_style="תשובות מאוזנות",
    words={
        ("tone", "warm"): "טון חם",
        ("tone", "professional"): "טון מקצועי",
        ("tone", "direct"): "טון ישיר",
        ("tone", "enthusiastic"): "טון נלהב",
        ("tone", "neutral"): "טון ניטרלי",
        ("tone", "friendly"): "טון ידידותי",
        ("tone", "casual"): "טון קליל",
        ("tone", "formal"): "טון רשמי",
        ("verbosity", "concise"): "תשובות קצרות",
        ("verbosity", "balanced"): "תשובות מאוזנות",
        ("verbosity", "detailed"): "תשובות מפורטות",
        ("formality", "casual"): "שפה יומיומית",
        ("formality", "professional"): "שפה עסקית",
        ("formality", "neutral"): "שפה פשוטה",
        ("formality", "formal"): "שפה רשמית",
        ("structure", "bullets"): "רשימות במקום שהן מועילות",
        ("structure", "prose"): "טקסט רציף ללא רשימות",
        ("emphasis", "plain"): "טקסט פשוט ללא סימון",
        ("emphasis", "markdown"): "סימון Markdown",
        ("code_blocks", "separate"): "קוד בבלוקים נפרדים",
    },
    switches={
        "use_analogies": "אפשר להשתמש באנלוגיות",
        "use_examples": "תן דוגמאות",
        "use_humor": "מותר הומור קל",
        "step_by_step": "הסבר צעד אחר צעד",
    },
    sentences={
        ("show_reasoning", "True"): "הצג את דרך החשיבה בתוך <think>…</think> כשזה מועיל.",
        ("citation_style", "always_cite"): "ציין על איזה זיכרון נשענת כל קביעה.",
        ("citation_style", "cite_patterns"): "ציין את הזיכרון כשאתה נשען על דפוס מוכח.",
        ("clarification", "ask_questions"): "שאל כשאפשר להבין את הבקשה בשתי דרכים.",
        ("clarification", "make_assumptions"): "אל תשאל בחזרה: הנח, ואמור מה הנחת.",
        ("prioritize", "accuracy"): "דיוק חשוב ממהירות.",
        ("prioritize", "speed"): "מהירות חשובה משלמות.",
        ("priority", "always_reference"): "בדוק מה יש בזיכרון לפני כל תשובה.",
        ("priority", "when_relevant"): "השתמש בזיכרון כשהוא נוגע לשאלה.",
        ("priority", "recent"): "מתוך הזיכרון, העדף את החדש ביותר.",
        ("priority", "balanced"): "השתמש בזיכרון כשהוא נוגע לשאלה.",
        ("priority", "patterns"): "חפש קודם מה כבר הצליח.",
        ("pattern_trust", "heavily_favor"): "העדף את מה שכבר הצליח.",
        ("pattern_trust", "high"): "העדף את מה שכבר הצליח.",
        ("pattern_trust", "low"): "אל תניח שמה שהצליח בעבר יצליח גם עכשיו.",
        ("historical_context", "reference_past"): "התייחס לשיחות קודמות.",
        ("historical_context", "current_only"): "הישאר בשיחה הנוכחית.",
    },
)

WORDINGS: Mapping[PromptLang, Wording] = {"en": ENGLISH, "he": HEBREW}


def rendered(template: Checked, lang: PromptLang) -> str:
    """The prompt: who the assistant is, whose words are whose, then instructions and style."""
    wording = WORDINGS[lang]
    parts = [
        "\n".join(_identity(template, wording)),
        "\n".join(PRONOUNS),
        str(template.fields.get(INSTRUCTIONS) or "").strip(),
        "\n".join(_behaviour(template.fields, wording)),
    ]
    return "\n\n".join(part for part in parts if part)


def _identity(template: Checked, wording: Wording) -> Iterator[str]:
    identity = template.fields["identity"]
    role = _line(identity.get("role"))
    opening = wording.opening_role if role else wording.opening
    yield opening.format(name=template.name, role=role)
    expertise = _joined(identity.get("expertise"))
    if expertise:
        yield wording.expertise.format(expertise)
    background = _line(identity.get("background"))
    if background:
        yield f"{background}."


def _behaviour(fields: Mapping[str, Any], wording: Wording) -> Iterator[str]:
    style: list[str] = []
    sentences: list[str] = []
    for section in ("communication", "formatting", "response_behavior", "memory_usage"):
        for key, value in (fields.get(section) or {}).items():
            if value is True and key in wording.switches:
                style.append(wording.switches[key])
            elif (key, str(value)) in wording.words:
                style.append(wording.words[key, str(value)])
            elif (key, str(value)) in wording.sentences:
                sentences.append(wording.sentences[key, str(value)])
            elif key in ("tone", "verbosity", "formality") and _line(value):
                style.append(_line(value))
    yield wording.style.format(", ".join(style) or wording.default_style)
    yield from sentences
    traits = _joined(fields.get(TRAITS))
    if traits:
        yield wording.traits.format(traits)


def _joined(values: Any) -> str:
    lines = (_line(value) for value in values or ())
    return ", ".join(line for line in lines if line)


def _line(value: Any) -> str:
    """`value` on one line, without the full stop that the sentence around it brings."""
    return " ".join(str(value).split()).rstrip(".") if isinstance(value, str) else ""
