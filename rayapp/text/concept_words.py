"""Words as the rules of concepts see them: names, words without a topic, keys and readings."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from simplemma import is_known

from rayapp.text.hebrew import (
    GERSHAYIM,
    HEBREW_LETTER,
    STOP_WORDS,
    is_hebrew,
    unify_finals,
    without_prefixes,
)
from rayapp.text.lemmas import MIN_STEM_LETTERS, lemmas
from rayapp.text.utterance import word_reading
from rayapp.text.word_lists import words_of

# Hebrew given names that the dictionary of words does not hold, or reads as other words.
#
# Written by us. A name that is an everyday word as well (שיר, הגר, חיים) is left out, and so is one
# that makes an everyday word behind ל (גבי, לגבי).

NAMES = frozenset(words_of("given_names"))


def name_in(word: str, *, known: bool) -> str | None:
    """The name that `word` is, alone or behind particles; None when it is none.

    Args:
        known: the dictionary holds `word` as it stands. Behind ל it is the name all the same
            (לדנה); other particles make everyday words of names (מנועה).
    """
    if word in NAMES:
        return word
    if known and word[0] != "ל":
        return None
    return next((rest for rest in without_prefixes(word, MIN_STEM_LETTERS) if rest in NAMES), None)


# Words that carry meaning in a sentence but name no topic: concepts leave them out.
#
# Stop words of `text.hebrew` are function words; these are verbs, nouns and adjectives that fit any
# topic, and the words of dates. Written by us, normalised spelling; matched as written and as
# lemma.

# רע, עובד and עבד are what a thing does or is as often as a topic; their other forms stay.
CONCEPT_STOP_WORDS = (
    STOP_WORDS | frozenset(words_of("no_topics_en")) | frozenset(words_of("no_topics_he"))
)
# Words that open a request: capital letters there name nothing ("Deploy Kubernetes").
OPENERS = frozenset(words_of("openers"))
# After a Hebrew noun these describe it: "במשרד הגדול" is no construct pair.
HEBREW_ADJECTIVES = frozenset(words_of("adjectives_he"))


MAX_KEY_CHARS = 64
# A shorter acronym without its mark is another word (תא, ת"א).
MIN_BARE_ACRONYM_CHARS = 4
MIN_WORD_CHARS = 2
# Up to this length a Latin word ending in s is taken for an abbreviation.
MAX_ABBREVIATION_CHARS = 3
# From this length on a token with many digits is an id, not a name such as ipv6 or log4j.
MIN_ID_CHARS = 8
ID_DIGIT_SHARE = 0.25

# Numbers are matched, without a group, so that no word is found inside them.
_SCAN = re.compile(
    rf"""
      (?P<hebrew> [{HEBREW_LETTER}]+(?:['"][{HEBREW_LETTER}]+)* )
    | \d+(?:[.,:/-]\d+)*(?!\w)
    | (?P<word> [^\W{HEBREW_LETTER}]+(?:['’.+#/-][^\W{HEBREW_LETTER}]+)*[+#]* )
    """,
    re.VERBOSE,
)
_ADDRESS = re.compile(
    rf"""
      \b (?: [a-z]+:// | www\. ) [^\s<>"']+
    | (?<![\w.%+-]) [A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+
    | (?<![\w/]) (?: [~.]{{0,2}}/ | [A-Za-z]:\\ ) [^\s"'<>{HEBREW_LETTER}]+
    """,
    re.VERBOSE,
)
_ACRONYM = re.compile(r"(?=.{2,8}$)[A-Z][A-Z0-9]{0,5}(?:[/&-][A-Z0-9]{1,5})?s?")
_NAME_WITH_VERSION = re.compile(r"[a-z]+[-_]?\d{1,2}(?:\.\d+){0,2}")
_HEX = re.compile(r"(?=[a-f]*\d)[0-9a-f-]{8,}")
_ENDING = re.compile(r"(?:['’]s|['’.])$")
_COMPOUND = re.compile(r"[^\W\d_]{3,}(?:[-_][^\W\d_]{3,})+")


class ConceptWord(NamedTuple):
    """One word as the rules see it.

    Attributes:
        lower: as written, in lower case.
        key: empty when it can never be a concept.
        stop: names no topic; `function`: carries no meaning at all.
        capital: written with a capital letter, which means little at the start of a sentence
            when the word is also a `common` one of the dictionary.
    """

    lower: str
    readings: tuple[str, ...]
    key: str
    hebrew: bool = False
    stop: bool = False
    function: bool = False
    capital: bool = False
    acronym: bool = False
    common: bool = False


# Longer than any name: what a machine wrote. Looking it up in the dictionaries would cost.
_NO_WORD = ConceptWord(lower="", readings=("",), key="", stop=True, function=True)


class Scanned(NamedTuple):
    """The words of a text and where each one starts and ends."""

    words: list[ConceptWord]
    spans: list[tuple[int, int]]


def scan(text: str, vocabulary: frozenset[str]) -> Scanned:
    """The words of a normalised text with their places.

    There are none inside addresses, paths and numbers.
    """
    if "/" in text or "@" in text or "\\" in text or "www." in text:
        # Places must stay, and a blank would join the words on both sides to a phrase.
        text = _ADDRESS.sub(lambda match: "|" * len(match.group()), text)
    found = [match for match in _SCAN.finditer(text) if match.lastgroup]
    return Scanned(
        [_word(match.group(), vocabulary) for match in found], [match.span() for match in found]
    )


def key_of(lemma_forms: Sequence[str]) -> str:
    """One spelling for lemmas: plain final letters, no marks in longer acronyms, bounded."""
    return cut(" ".join(_spelled(form) for form in lemma_forms), MAX_KEY_CHARS)


def phrase_key(words: Sequence[ConceptWord]) -> str:
    """Keys of the words without function words; with them when there is nothing else."""
    keys = [word.key for word in words if word.key]
    content = [word.key for word in words if word.key and not word.function]
    return cut(" ".join(content or keys), MAX_KEY_CHARS)


def cut(text: str, size: int) -> str:
    """At most `size` characters, without blanks at the ends."""
    return text[:size].strip()


def readings_of(word: str, vocabulary: frozenset[str]) -> tuple[str, ...]:
    """The readings of `lemmas`, with what the rules of concepts know better put first."""
    readings = lemmas(word, vocabulary)
    if is_hebrew(word):
        name = name_in(word, known=is_known(word, lang="he"))
        if name is not None:
            # Alone: through another reading it would be a term of the dictionary (לדנה, ילד).
            return (name,)
        # A term of the dictionary behind an article or ב is that term (השרת), not a rare verb.
        # Other particles make common verbs of it (לספר, לחבר).
        rest = word[1:]
        if word[0] in "הב" and rest in vocabulary and word not in vocabulary:
            return tuple(dict.fromkeys((*lemmas(rest, vocabulary), *readings)))
    elif len(word) <= MAX_ABBREVIATION_CHARS and readings[0] == word[:-1]:
        # The s of aws is no plural.
        return (word,)
    return readings


def is_generic(word: str, lemma_form: str) -> bool:
    """True for words that fit any topic."""
    if word in CONCEPT_STOP_WORDS or lemma_form in CONCEPT_STOP_WORDS:
        return True
    # מ, ש and כ are more often the first letter of another noun (מערב).
    return word[0] in "בהול" and any(
        rest in CONCEPT_STOP_WORDS for rest in without_prefixes(word, MIN_STEM_LETTERS)
    )


def is_definite(word: ConceptWord) -> bool:
    """A Hebrew word behind its article, not one that starts with ה."""
    return word.lower[0] == "ה" and len(word.lower) > 3 and word.readings[0][0] != "ה"


def is_feminine_construct(word: ConceptWord) -> bool:
    """קופת is of קופה. A verb of the past (ראית) ends alike, after a י."""
    return (
        len(word.lower) > 3
        and word.lower[-1] == "ת"
        and word.lower[-2] != "י"
        and word.readings[0][-1] == "ה"
    )


def is_noun(word: ConceptWord) -> bool:
    """Not behind a preposition: חברת בירושלים is no pair."""
    return word.lower[0] not in "בלכמשוה" or word.readings[0][0] == word.lower[0]


@word_reading
def _word(raw: str, vocabulary: frozenset[str]) -> ConceptWord:
    if len(raw) > MAX_KEY_CHARS:
        return _NO_WORD
    if is_hebrew(raw):
        return _hebrew_word(raw, vocabulary)
    raw = _ENDING.sub("", raw.replace("’", "'"))
    acronym = _ACRONYM.fullmatch(raw) is not None
    lower = (raw[:-1] if acronym and raw[-1] == "s" else raw).lower()
    readings = readings_of(lower, vocabulary)
    key = _latin_key(lower, readings)
    capital = raw[:1].isupper()
    return ConceptWord(
        lower=lower,
        readings=readings,
        key=key,
        stop=not key or is_generic(lower, readings[0]),
        function=lower in STOP_WORDS,
        capital=capital and bool(key),
        acronym=acronym,
        common=capital and lower.isalpha() and not acronym and is_known(lower, lang="en"),
    )


def _hebrew_word(raw: str, vocabulary: frozenset[str]) -> ConceptWord:
    readings = readings_of(raw, vocabulary)
    key = key_of(readings[:1]) if len(raw) >= MIN_WORD_CHARS else ""
    function = raw in STOP_WORDS or any(
        rest in STOP_WORDS for rest in without_prefixes(raw, MIN_STEM_LETTERS)
    )
    return ConceptWord(
        lower=raw,
        readings=readings,
        key=key,
        hebrew=True,
        stop=not key or function or is_generic(raw, readings[0]),
        function=function,
        acronym=GERSHAYIM in raw,
    )


def _latin_key(lower: str, readings: tuple[str, ...]) -> str:
    if _COMPOUND.fullmatch(lower):
        return key_of([form for part in re.split("[-_]", lower) for form in lemmas(part)[:1]])
    if len(lower) < MIN_WORD_CHARS or not lower[0].isalpha() or _is_id(lower):
        return ""
    return key_of(readings[:1])


def _is_id(lower: str) -> bool:
    """A machine's name for something: many digits, a hexadecimal number, or a path."""
    if lower.count("/") > 1 or _HEX.fullmatch(lower):
        return True
    if len(lower) < MIN_ID_CHARS or _NAME_WITH_VERSION.fullmatch(lower):
        return False
    return sum(one.isdigit() for one in lower) >= ID_DIGIT_SHARE * len(lower)


def _spelled(form: str) -> str:
    if GERSHAYIM in form and len(form) >= MIN_BARE_ACRONYM_CHARS:
        form = form.replace(GERSHAYIM, "")
    return unify_finals(form)
