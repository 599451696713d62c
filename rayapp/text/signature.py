"""What two near-duplicates must share before one may stand for the other.

Similar wording hides the differences that matter: an amount, a "not", another name. A pair
kept apart by mistake costs one line in an answer, a pair merged by mistake loses a fact, so
every rule here errs towards keeping apart.
"""

import re
from dataclasses import dataclass
from functools import cache

from rayapp.text.hebrew import GERSHAYIM, STOP_WORDS, is_hebrew, unify_finals
from rayapp.text.lemmas import lemma
from rayapp.text.normalize import normalize
from rayapp.text.tokens import tokens
from rayapp.text.utterance import reading
from rayapp.text.word_lists import words_of

_NEGATIONS = frozenset(words_of("negations"))
_NUMBER_WORDS = {
    word: str(value)
    for value, words in {
        2: "two twice שתיים שניים שתי פעמיים",
        3: "three שלוש שלושה שלושת",
        4: "four ארבע ארבעה ארבעת",
        5: "five חמש חמישה חמשת",
        6: "six שש שישה ששת",
        7: "seven שבע שבעה שבעת",
        8: "eight שמונה שמונת",
        9: "nine תשע תשעה תשעת",
        10: "ten עשר עשרה עשרת",
        11: "eleven",
        12: "twelve",
        20: "twenty עשרים",
        30: "thirty שלושים",
        40: "forty ארבעים",
        50: "fifty חמישים",
        60: "sixty שישים",
        70: "seventy שבעים",
        80: "eighty שמונים",
        90: "ninety תשעים",
        100: "hundred מאה",
        1000: "thousand אלף",
        1000000: "million מיליון",
    }.items()
    for word in words.split()
}
# Words that turn a statement round without a negation.
_OPPOSITES = [pair.split("/") for pair in words_of("opposites")]
_OPPOSITE_WORDS = frozenset(word for pair in _OPPOSITES for word in pair)
# Stop words that turn a question round. Of a pair of which one is often left out, such as on and
# off, the other one tells.
_TURNING = {word: word for word in ("before", "after", "off", "under")}
_TURNING |= {"לפני": "before", "אחרי": "after", "פחות": "less"}
# What leads in a question, whose negation is not one of it.
_FRAME = re.compile(
    r"\bi (?:don['’]?t|do not) (?:know|understand|remember)\b"
    r"|אני לא (?:יודעת?|מבינה?|זוכרת?)(?!\w)",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+(?:[.,:/-]\d+)*")
_WORD = re.compile(r"\w[\w'’]*")
# Below or above, minus five or five, C++ or C#, blood of O- or of O+.
_SIGNS = re.compile(
    r"[<>≤≥≠±]|(?<![\w)])-(?=\d)|(?<=\w)\++(?![\w(\[])|(?<=\b[A-Za-z])#(?![\w/])"
    r"|(?:(?<=\b[A-Za-z])|(?<=\bAB))-(?!\w)"
)
# Per cent or shekels; people leave them out.
_UNITS = re.compile(r"[%$€£₪]")


@dataclass(frozen=True, slots=True)
class Signature:
    """The parts of a text that near-duplicates must agree on.

    Attributes:
        numbers: digits and number words in the order they stand, as text ("1,000" is "1000").
        signs: comparisons, and signs that lead or end a word, in the order they stand.
        units: % and currencies.
        negations: how many words negate.
        entities: capitalised words and Hebrew acronyms, lower case, stop words left out.
        words: all words as written, lower case, and the lemmas.
        lemmas: the content words as lemmas only.
        cased: the text has capitals, so its names can be told from other words.
    """

    numbers: tuple[str, ...]
    signs: tuple[str, ...]
    units: tuple[str, ...]
    negations: int
    entities: frozenset[str]
    words: frozenset[str]
    lemmas: frozenset[str]
    cased: bool


@reading
def signature(text: str) -> Signature:
    """The signature of a text. A search compares one with many."""
    plain = normalize(text)
    numbers: list[str] = []
    forms: set[str] = set()
    negations = 0
    for token in tokens(plain):
        word = token.text
        found = _numbers(word)
        numbers += found
        negations += word in _NEGATIONS or word.endswith("n't")
        if not found and (word not in STOP_WORDS or word in _OPPOSITE_WORDS):
            forms.add(unify_finals(lemma(word)))
    spelt = [word.rstrip("'’").removesuffix("'s") for word in _WORD.findall(plain)]
    entities = {word.lower() for word in spelt if "A" <= word[0] <= "Z"} - STOP_WORDS
    acronyms = {word for word in forms if is_hebrew(word) and GERSHAYIM in word}
    return Signature(
        numbers=tuple(numbers),
        signs=tuple(_SIGNS.findall(plain.replace("−", "-"))),
        units=tuple(_UNITS.findall(plain)),
        negations=negations,
        entities=frozenset(entities | acronyms),
        words=frozenset(forms | {word.lower() for word in spelt}),
        lemmas=frozenset(forms),
        cased=bool(entities),
    )


def turns_of(text: str) -> frozenset[str]:
    """What tells a question from its contrary and is no topic of it, in English."""
    found = signature(_FRAME.sub(" ", text) if _FRAME.search(text) else text)
    turns = {_TURNING[word] for word in found.words & _TURNING.keys()}
    return frozenset(turns | {"not"} if found.negations else turns)


def difference(a: str, b: str) -> str | None:
    """Why the two texts must stay apart ("numbers", "polarity", "entities", "names", "units": one
    of them alone has some), or None."""
    one, other = signature(a), signature(b)
    if (one.numbers, one.signs) != (other.numbers, other.signs):
        return "numbers"
    if one.units and other.units and one.units != other.units:
        return "numbers"
    if one.negations != other.negations or opposite(one, other):
        return "polarity"
    if not one.entities <= other.words or not other.entities <= one.words:
        return "entities"
    # Hebrew and all-lower-case text do not mark names: a word exchanged for another may be one.
    if not (one.cased and other.cased) and one.lemmas - other.lemmas and other.lemmas - one.lemmas:
        return "names"
    return None if one.units == other.units else "units"


def may_collapse(a: str, b: str) -> bool:
    """True when nothing that matters tells the two near-duplicates apart."""
    return difference(a, b) is None


def _numbers(word: str) -> list[str]:
    if word in _NUMBER_WORDS:
        return [_NUMBER_WORDS[word]]
    return [number.replace(",", "") for number in _DIGITS.findall(word)]


def opposite(one: Signature, other: Signature) -> bool:
    """A word of one stands for its opposite in the other."""
    return _turns(one, other) or _turns(other, one)


def _turns(one: Signature, other: Signature) -> bool:
    only_one, only_other = one.lemmas - other.lemmas, other.lemmas - one.lemmas
    return any(left in only_one and right in only_other for left, right in _opposite_lemmas())


@cache
def _opposite_lemmas() -> list[tuple[str, str]]:
    return [(unify_finals(lemma(one)), unify_finals(lemma(other))) for one, other in _OPPOSITES]
