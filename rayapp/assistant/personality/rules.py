"""Personalities: templates as values, their checks, a user's library, and their prompt."""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Literal

import yaml

from rayapp.core.errors import Conflict, InvalidInput, TooLarge
from rayapp.text.normalize import find_forbidden, printable

DEFAULT_TEMPLATE = "default"
# Templates that one user may keep: a short list to choose from, and a bound on the row (1 MB).
MAX_TEMPLATES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A personality as YAML text. A preset has no times, and nobody changes it."""

    template_id: str
    name: str
    content: str
    description: str = ""
    preset: bool = False
    created_at: datetime | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateLibrary:
    """The templates a user wrote, by id, and the id of the one in use, a preset perhaps."""

    templates: Mapping[str, Template] = field(default_factory=dict)
    active: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A template that can be used: its parsed fields, and what could be better."""

    fields: Mapping[str, Any]
    name: str
    warnings: tuple[str, ...] = ()


def in_use(library: TemplateLibrary, presets: Mapping[str, Template]) -> Template:
    """The template that the next request gets; the default when the chosen one is gone."""
    chosen = library.active or DEFAULT_TEMPLATE
    return library.templates.get(chosen) or presets.get(chosen) or presets[DEFAULT_TEMPLATE]


def same_preset(content: str, presets: Mapping[str, Template]) -> Template | None:
    """The preset that says the same, so that saving one unchanged does not copy it."""
    wanted = content.strip()
    return next((one for one in presets.values() if one.content.strip() == wanted), None)


def refuse_full() -> Conflict:
    return Conflict(
        f"You keep {MAX_TEMPLATES} templates already; delete one first.", code="personality_full"
    )


# Reads a personality template: YAML that cannot harm, with the fields that the service knows.
#
# The text comes from people, so it is bounded before it becomes objects: its length, its depth, the
# number of its parts. Anchors, aliases and tags are refused: no template needs them, and they are
# how a small text becomes a large or a foreign object.

CODE = "bad_template"
# The safe loader in C where it is built, ten times as fast; both refuse foreign objects.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# Characters: ten pages. The rendered prompt is paid for in every request.
MAX_CHARS = 20_000
# Parts of the YAML text: our largest preset has about 120.
MAX_EVENTS = 2_000
MAX_DEPTH = 8
# Characters of the assistant's name: it stands in a window's title and in a sentence.
MAX_NAME_CHARS = 60
# Characters of any other single value but the free instructions, and entries of a list.
MAX_VALUE_CHARS = 1_000
MAX_BITS = 64
MAX_LIST = 50
MAX_SHOWN = 40  # characters of a field's name in a message
# Warnings of one answer: enough to act on.
MAX_WARNINGS = 20

IDENTITY, COMMUNICATION = "identity", "communication"
INSTRUCTIONS, TRAITS = "custom_instructions", "personality_traits"
SECTIONS = (IDENTITY, COMMUNICATION, "response_behavior", "memory_usage", "formatting")
TOP_KEYS = (*SECTIONS, TRAITS, INSTRUCTIONS)
RECOMMENDED = ("response_behavior", "memory_usage")

# Words with a meaning of their own; any other word is shown as it is, and warned about. The second
# line of a field holds what the first client's editor offers.
KNOWN_WORDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    (COMMUNICATION, "tone"): (
        *("warm", "direct", "enthusiastic", "neutral"),
        *("friendly", "professional", "casual", "formal"),
    ),
    (COMMUNICATION, "verbosity"): ("concise", "balanced", "detailed"),
    (COMMUNICATION, "formality"): ("professional", "casual", "neutral", "formal"),
    ("response_behavior", "citation_style"): ("always_cite", "cite_patterns", "conversational"),
    ("response_behavior", "clarification"): ("ask_questions", "make_assumptions"),
    ("response_behavior", "prioritize"): ("accuracy", "speed"),
    ("memory_usage", "priority"): (
        *("always_reference", "when_relevant"),
        *("recent", "balanced", "patterns"),
    ),
    ("memory_usage", "pattern_trust"): ("heavily_favor", "balanced", "low", "medium", "high"),
    ("memory_usage", "historical_context"): ("reference_past", "current_only"),
    ("formatting", "structure"): ("mixed", "bullets", "prose"),
    ("formatting", "code_blocks"): ("separate", "inline"),
    ("formatting", "emphasis"): ("markdown", "plain"),
}
_MANNERS = ("use_analogies", "use_examples", "use_humor")
SWITCHES: Mapping[str, tuple[str, ...]] = {
    COMMUNICATION: _MANNERS,
    "response_behavior": ("show_reasoning", "step_by_step", *_MANNERS),
}
IDENTITY_TEXTS = ("name", "role", "background")
_OTHER_KEYS: Mapping[str, tuple[str, ...]] = {IDENTITY: (*IDENTITY_TEXTS, "expertise")}


def check(content: str) -> Checked:
    """What the template says.

    Raises:
        TooLarge: more than `MAX_CHARS`.
        InvalidInput: code `bad_template`; the message names what to change.
    """
    if len(content) > MAX_CHARS:
        raise TooLarge(f"The template has more than {MAX_CHARS} characters; shorten it.")
    fields = _parse(content)
    unknown = [key for key in fields if key not in TOP_KEYS]
    if unknown:
        raise _bad(f"{printable(unknown[0], MAX_SHOWN)} is no section; use {', '.join(TOP_KEYS)}.")
    for section in (IDENTITY, COMMUNICATION):
        if not isinstance(fields.get(section), dict):
            raise _bad(f"The section {section} is missing; add it with its fields below it.")
    for section in SECTIONS:
        if fields.get(section) is not None and not isinstance(fields[section], dict):
            raise _bad(f"{section} must hold fields, not a single value.")
    _check_texts(fields)
    name = clean_name(fields[IDENTITY].get("name"))
    if not name:
        raise _bad("identity.name is missing; give the assistant a name with letters or digits.")
    return Checked(
        fields=fields, name=name, warnings=tuple(islice(_warnings(fields, name), MAX_WARNINGS))
    )


def clean_name(value: Any) -> str:
    """A name that fits on one line and into a sentence; empty when nothing is left of it.

    Letters, marks and digits of any script stay, and what joins them.
    """
    text = unicodedata.normalize("NFC", value if isinstance(value, str) else "")
    kept = (char if char.isalnum() or _joins(char) else " " for char in text)
    name = " ".join("".join(kept).split())[:MAX_NAME_CHARS].strip()
    return name if any(char.isalnum() for char in name) else ""


def template_id_of(name: str, fallback: str = "custom") -> str:
    """The id of a template that a person named so: letters, digits and `_`, in any script."""
    words = clean_name(name).casefold().translate(_IN_ID).replace("_", " ").split()
    return "_".join(words) or fallback


# Hebrew geresh and gershayim, in both forms, belong to names (ג'ק, צה"ל).
_JOINERS = frozenset("-_'’.׳״\"")
_IN_ID = str.maketrans(dict.fromkeys("'’.׳״\""))


def _joins(char: str) -> bool:
    return char in _JOINERS or unicodedata.category(char) in ("Mn", "Mc")


def _parse(content: str) -> dict[str, Any]:
    forbidden = find_forbidden(content)
    if forbidden:
        raise _bad(f"The template holds a {forbidden}; remove it.")
    try:
        _refuse_bombs(content)
        node = yaml.compose(content, Loader=LOADER)
        _refuse_repeats(node)
        fields = yaml.load(content, Loader=LOADER)
    except yaml.MarkedYAMLError as error:
        raise _bad(f"{_place(error)}{error.problem or 'This is no YAML'}; correct it.") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        # ValueError: a date or number that cannot be.
        raise _bad("The template is not valid YAML; check indentation and quotes.") from None
    if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
        raise _bad("The template must be a YAML mapping that starts with `identity:`.")
    return fields


def _refuse_bombs(content: str) -> None:
    """Before anything is built: anchors, aliases, tags, depth and number of parts."""
    depth = documents = 0
    for number, event in enumerate(yaml.parse(content, Loader=LOADER), start=1):
        if number > MAX_EVENTS:
            raise _bad(f"The template has more than {MAX_EVENTS} parts; shorten it.")
        if getattr(event, "anchor", None) is not None:
            raise _bad("Anchors and aliases (& and *) are not allowed; write the value out.")
        if getattr(event, "tag", None) is not None:
            raise _bad("YAML tags (!) are not allowed; remove them.")
        documents += isinstance(event, yaml.DocumentStartEvent)
        if documents > 1:
            raise _bad("The template has more than one document; remove the lines `---`.")
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _bad(f"The template is nested deeper than {MAX_DEPTH} levels; flatten it.")


def _refuse_repeats(node: yaml.Node | None) -> None:
    """A field given twice: YAML would silently keep the last one."""
    todo = [node] if node is not None else []
    while todo:
        here = todo.pop()
        if isinstance(here, yaml.MappingNode):
            names = [key.value for key, _ in here.value if isinstance(key, yaml.ScalarNode)]
            twice = next((name for name, n in Counter(names).items() if n > 1), None)
            if twice is not None:
                raise _bad(f"{printable(twice, MAX_SHOWN)} is given twice; keep one.")
            todo += [value for _, value in here.value]
        elif isinstance(here, yaml.SequenceNode):
            todo += here.value


def _check_texts(fields: Mapping[str, Any]) -> None:
    """Every value is one that the prompt can show."""
    instructions = fields.get(INSTRUCTIONS)
    if instructions is not None and not isinstance(instructions, str):
        raise _bad(f"{INSTRUCTIONS} must be text; start it with `|` when it has several lines.")
    for path, value in _values(fields):
        _check_value(path, value)


def _check_value(path: str, value: Any) -> None:
    if isinstance(value, list):
        if len(value) > MAX_LIST or not all(isinstance(one, str) for one in value):
            raise _bad(f"{path} must be a list of at most {MAX_LIST} texts.")
        if any(len(one) > MAX_VALUE_CHARS for one in value):
            raise _bad(f"{path} has a text above {MAX_VALUE_CHARS} characters; shorten it.")
    elif isinstance(value, dict):
        raise _bad(f"{path} must be a text, a list or true or false.")
    # `0xFFF…` and `1:1:…` are numbers, of more digits than Python writes.
    elif isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise _bad(f"{path} is a number of more than {MAX_BITS} bits; put it in quotes.")
    elif isinstance(value, str) and len(value) > MAX_VALUE_CHARS:
        raise _bad(f"{path} has more than {MAX_VALUE_CHARS} characters; shorten it.")
    if path in ("identity.expertise", TRAITS) and not isinstance(value, list | None):
        raise _bad(f"{path} must be a list; write one entry per line after `- `.")


def _values(fields: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for section in SECTIONS:
        for key, value in (fields.get(section) or {}).items():
            yield f"{section}.{printable(key, MAX_SHOWN)}", value
    yield TRAITS, fields.get(TRAITS)


def _warnings(fields: Mapping[str, Any], name: str) -> Iterator[str]:
    for section in RECOMMENDED:
        if not fields.get(section):
            yield f"The section {section} is missing; the assistant chooses for itself."
    if name != str(fields[IDENTITY]["name"]):
        yield f"The name is shown as {name}."
    for section in SECTIONS:
        for key, value in (fields.get(section) or {}).items():
            known = KNOWN_WORDS.get((section, key))
            switch = key in SWITCHES.get(section, ())
            if known is None and not switch and key not in _OTHER_KEYS.get(section, ()):
                yield f"{section}.{printable(key, MAX_SHOWN)} is not used."
            elif known is not None and value not in known:
                yield f"{section}.{key}: the known words are {', '.join(known)}."
            elif switch and not isinstance(value, bool):
                yield f"{section}.{key}: write true or false; it counts as false."


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return "" if mark is None else f"Line {mark.line + 1}: "


def _bad(message: str) -> InvalidInput:
    return InvalidInput(message, code=CODE, details={"field": "content"})


# Renders a checked template to the first section of a system prompt, in English or Hebrew.
#
# The line that tells the assistant and the user apart is always there, in both languages: without
# it a model answers "what is my name" with its own.

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


# What a field of a template becomes, in English and in Hebrew.
_WORDS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("tone", "warm"): ("warm tone", "טון חם"),
    ("tone", "professional"): ("professional tone", "טון מקצועי"),
    ("tone", "direct"): ("direct tone", "טון ישיר"),
    ("tone", "enthusiastic"): ("enthusiastic tone", "טון נלהב"),
    ("tone", "neutral"): ("neutral tone", "טון ניטרלי"),
    ("tone", "friendly"): ("friendly tone", "טון ידידותי"),
    ("tone", "casual"): ("casual tone", "טון קליל"),
    ("tone", "formal"): ("formal tone", "טון רשמי"),
    ("verbosity", "concise"): ("short answers", "תשובות קצרות"),
    ("verbosity", "balanced"): ("balanced answers", "תשובות מאוזנות"),
    ("verbosity", "detailed"): ("detailed answers", "תשובות מפורטות"),
    ("formality", "casual"): ("casual language", "שפה יומיומית"),
    ("formality", "professional"): ("business language", "שפה עסקית"),
    ("formality", "neutral"): ("plain language", "שפה פשוטה"),
    ("formality", "formal"): ("formal language", "שפה רשמית"),
    ("structure", "bullets"): ("lists where they help", "רשימות במקום שהן מועילות"),
    ("structure", "prose"): ("prose without lists", "טקסט רציף ללא רשימות"),
    ("emphasis", "plain"): ("plain text without markup", "טקסט פשוט ללא סימון"),
    ("emphasis", "markdown"): ("Markdown", "סימון Markdown"),
    ("code_blocks", "separate"): ("code in blocks of its own", "קוד בבלוקים נפרדים"),
}
_SWITCHES: Mapping[str, tuple[str, str]] = {
    "use_analogies": ("analogies welcome", "אפשר להשתמש באנלוגיות"),
    "use_examples": ("give examples", "תן דוגמאות"),
    "use_humor": ("light humour is fine", "מותר הומור קל"),
    "step_by_step": ("explain step by step", "הסבר צעד אחר צעד"),
}

_PHRASES: Mapping[str, tuple[str, str]] = {
    "opening": ("You are {name}.", "אתה {name}."),
    "opening_role": ("You are {name}, {role}.", "אתה {name}, {role}."),
    "expertise": ("You know about: {}.", "תחומי הידע שלך: {}."),
    "style": ("Style: {}.", "סגנון: {}."),
    "traits": ("Traits: {}.", "תכונות: {}."),
    "default_style": ("balanced answers", "תשובות מאוזנות"),
}
_SENTENCES: Mapping[tuple[str, str], tuple[str, str]] = {
    ("show_reasoning", "True"): (
        "Show your reasoning within <think>…</think> when it helps.",
        "הצג את דרך החשיבה בתוך <think>…</think> כשזה מועיל.",
    ),
    ("citation_style", "always_cite"): (
        "Name the memory that each statement rests on.",
        "ציין על איזה זיכרון נשענת כל קביעה.",
    ),
    ("citation_style", "cite_patterns"): (
        "Name the memory when you use a proven pattern.",
        "ציין את הזיכרון כשאתה נשען על דפוס מוכח.",
    ),
    ("clarification", "ask_questions"): (
        "Ask when a request can be read in two ways.",
        "שאל כשאפשר להבין את הבקשה בשתי דרכים.",
    ),
    ("clarification", "make_assumptions"): (
        "Do not ask back: assume, and say what you assume.",
        "אל תשאל בחזרה: הנח, ואמור מה הנחת.",
    ),
    ("prioritize", "accuracy"): (
        "Being right matters more than being quick.",
        "דיוק חשוב ממהירות.",
    ),
    ("prioritize", "speed"): (
        "Being quick matters more than being complete.",
        "מהירות חשובה משלמות.",
    ),
    ("priority", "always_reference"): (
        "Look at what memory holds before every answer.",
        "בדוק מה יש בזיכרון לפני כל תשובה.",
    ),
    ("priority", "when_relevant"): (
        "Use memory where it bears on the question.",
        "השתמש בזיכרון כשהוא נוגע לשאלה.",
    ),
    ("priority", "recent"): (
        "Of what memory holds, prefer the newest.",
        "מתוך הזיכרון, העדף את החדש ביותר.",
    ),
    ("priority", "balanced"): (
        "Use memory where it bears on the question.",
        "השתמש בזיכרון כשהוא נוגע לשאלה.",
    ),
    ("priority", "patterns"): ("Look first for what has worked before.", "חפש קודם מה כבר הצליח."),
    ("pattern_trust", "heavily_favor"): (
        "Prefer what has worked before.",
        "העדף את מה שכבר הצליח.",
    ),
    ("pattern_trust", "high"): ("Prefer what has worked before.", "העדף את מה שכבר הצליח."),
    ("pattern_trust", "low"): (
        "Do not take what worked before for what works now.",
        "אל תניח שמה שהצליח בעבר יצליח גם עכשיו.",
    ),
    ("historical_context", "reference_past"): (
        "Refer to earlier conversations.",
        "התייחס לשיחות קודמות.",
    ),
    ("historical_context", "current_only"): (
        "Stay within the present conversation.",
        "הישאר בשיחה הנוכחית.",
    ),
}


def _wording(side: Literal[0, 1]) -> Wording:
    return Wording(
        **{name: both[side] for name, both in _PHRASES.items()},
        words={key: both[side] for key, both in _WORDS.items()},
        switches={key: both[side] for key, both in _SWITCHES.items()},
        sentences={key: both[side] for key, both in _SENTENCES.items()},
    )


ENGLISH, HEBREW = _wording(0), _wording(1)

WORDINGS: Mapping[PromptLang, Wording] = {"en": ENGLISH, "he": HEBREW}


def render(template: Checked, lang: PromptLang) -> str:
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
    expertise = _join(identity.get("expertise"))
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
    traits = _join(fields.get(TRAITS))
    if traits:
        yield wording.traits.format(traits)


def _join(values: Any) -> str:
    lines = (_line(value) for value in values or ())
    return ", ".join(line for line in lines if line)


def _line(value: Any) -> str:
    """`value` on one line, without the full stop that the sentence around it brings."""
    return " ".join(str(value).split()).rstrip(".") if isinstance(value, str) else ""
