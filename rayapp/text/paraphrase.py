"""Whether two short facts say the same in other words. Pure.

Vectors cannot tell: "flew to" and "flew from" are nearer than most repetitions. So these rules
know few ways in which people say a thing twice, and every other word must be the same one, in the
same form: an article or a copula more, the spelling, "is learning" and "learns", the end of a
sentence at its beginning, and a slot that is filled with the same value.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rayapp.text.hebrew import STOP_WORDS, is_hebrew, unify_finals
from rayapp.text.lemmas import lemma
from rayapp.text.normalize import normalize
from rayapp.text.signature import signature
from rayapp.text.slots import slot_of
from rayapp.text.tokens import tokens
from rayapp.text.utterance import reading

# Units from which a turned sentence is still the same one: of two, either may be the subject.
LEAST_TURNED = 3
_BE = frozenset(("am", "are", "is", "i'm", "he's", "she's", "it's", "we're", "they're", "you're"))
_OBJECT = "את"
_DROPPED = frozenset(
    ("a", "an", "the", "please", _OBJECT, "נא", "בבקשה", "נמצא", "נמצאת", "נמצאים")
)
# Between two words, not at the beginning: there they are the subject.
_COPULAS = frozenset(("הוא", "היא", "הם", "הן"))
_BINDING = frozenset(
    (
        *("at", "on", "in", "to", "from", "for", "with", "without", "by", "of", "after", "before"),
        *("about", "into", "onto", "under", "over", "near", "until", "between", "every", "each"),
        *("על", "אל", "עם", "בלי", "אחרי", "לפני", "אצל", "בשביל", "של", "מן", "עד", "בין", "תחת"),
        *("מול", "ליד", "כל", "ב", "ל", "מ", "כ", "ה"),
    )
)
# Said anywhere in a sentence, they mean the same.
_ADVERBS = frozenset(("usually", "always", "often", "now", "currently", "תמיד", "לרוב"))
_SAME_WORD = {
    **dict.fromkeys(("kid", "kids"), "children"),
    **dict.fromkeys(("mom", "mum"), "mother"),
    "dad": "father",
    "telephone": "phone",
}
# Ways to say a thing, each as the one that is compared.
_WAYS = tuple(
    (re.compile(pattern), said)
    for pattern, said in (
        (r"'s name is ", " is named "),
        (r" is called ", " is named "),
        (r"^קוראים (ל\w+(?: שלי| שלנו)?) ", r"\1 קוראים "),
        (r"^שם ה?(\w+)( שלי| שלנו)?(?: הוא| היא) ", r"ל\1\2 קוראים "),
        (r"בשעה (?=\d)", "ב-"),
        (r"גם (\w+) וגם ", r"\1 ו"),
        (r"בדרך כלל", "לרוב"),
    )
)
# Letters and signs that mean something: no article is dropped from them.
_FORMULA = re.compile(r"[\\|=<>{}$^`]")
_SPELLING = re.compile(r"our(?=$|s$|ed$|ite|ing$)")
_CONTRACTED = re.compile(r"'(?:m|s|re)$")
# A rest of fewer letters is more often a word of its own.
_LEAST_HEBREW = 3
# ה that is a letter of the verb, not the article: "הלווה" lent, "לווה" borrowed. Words in ים and ית
# are seldom verbs: "החולים", "הקלאסית".
_CAUSATIVE = re.compile(
    r"ה[א-ת]{1,3}י(?![מת]$)[א-ת](?:ה|ו|ת|תי|נו|תמ)?|ה[א-ת]{2,3}(?:תה|תי|נו)|ה(?:ראה|ראו|לוה|לוו|לו|רצה|שקה|ענה)"
)
# Past and present in one form: "I read" may be over, "I am reading" is not.
_PAST_ALIKE = frozenset(
    ("read", "put", "cut", "quit", "let", "set", "hit", "cost", "hurt", "shut", "bet", "spread")
)


@dataclass(frozen=True, slots=True)
class _Word:
    """`bound`: what stands before it and belongs to it. `lemma`: only of what goes on now.
    `object`: a Hebrew object, marked as one."""

    text: str
    bound: tuple[str, ...]
    lemma: str = ""
    object: bool = False


def content_words(text: str) -> tuple[str, ...]:
    """Lemmas in the order they stand, stop words left out."""
    words = (token.text for token in tokens(normalize(text)))
    return tuple(unify_finals(lemma(word)) for word in words if word not in STOP_WORDS)


def says_the_same(a: str, b: str) -> bool:
    """Whether one of the two may stand for the other. The order of the two does not matter."""
    if _asks(a) != _asks(b) or _signs(a) != _signs(b):
        return False
    if _spelt(a) == _spelt(b):
        return True
    slot = slot_of(a)
    if slot is not None and slot == slot_of(b):
        return True
    if _FORMULA.search(a) or _FORMULA.search(b):
        return False
    one, other = _words(a), _words(b)
    if len(one) != len(other) or not one:
        return False
    if _all_same(one, other):
        return _objects_agree(one, other) or not (_marks(one) and _marks(other))
    return any(_all_same(one, turned) and _objects_agree(one, turned) for turned in _turned(other))


def _signs(text: str) -> tuple[tuple[str, ...], ...]:
    found = signature(text)
    return found.signs, found.units


def _asks(text: str) -> bool:
    return text.rstrip(" \n\"'”").endswith(("?", "؟", "？"))


def _spelt(text: str) -> list[str]:
    return [token.text for token in tokens(normalize(text))]


def _turned(words: Sequence[_Word]) -> Iterator[tuple[_Word, ...]]:
    """The end before the beginning; letters, which stand for something, have an order."""
    if len(words) >= LEAST_TURNED and all(len(word.text) > 1 for word in words):
        yield from ((*words[at:], *words[:at]) for at in range(1, len(words)))


def _all_same(one: Sequence[_Word], other: Sequence[_Word]) -> bool:
    return all(map(_same, one, other))


def _objects_agree(one: Sequence[_Word], other: Sequence[_Word]) -> bool:
    return all(left.object == right.object for left, right in zip(one, other, strict=True))


def _marks(words: Sequence[_Word]) -> bool:
    return any(word.object for word in words)


def _same(one: _Word, other: _Word) -> bool:
    if one.bound != other.bound:
        return False
    return one.text == other.text or _goes_on(one, other) or _goes_on(other, one)


def _goes_on(one: _Word, other: _Word) -> bool:
    """ "is learning" beside "learns": what was is not what is."""
    if not one.lemma or other.lemma:
        return False
    if other.text == one.lemma and one.lemma in _PAST_ALIKE:
        return False
    return other.text in (one.lemma, f"{one.lemma}s", f"{one.lemma}es") or (
        other.text == f"{one.lemma[:-1]}ies" and one.lemma.endswith("y")
    )


@reading
def _words(text: str) -> tuple[_Word, ...]:
    plain = " ".join(normalize(text).split())
    for way, said in _WAYS:
        plain = way.sub(said, plain)
    found: list[_Word] = []
    adverbs: list[_Word] = []
    bound: list[str] = []
    after_be = marked = False
    for token in tokens(plain):
        word = token.text.replace("’", "'")
        be = word in _BE
        word = _CONTRACTED.sub("", word) if be and "'" in word else word
        if (be and word in _BE) or word in _DROPPED or (word in _COPULAS and found):
            after_be, marked = after_be or be, marked or word == _OBJECT
            continue
        if word in _BINDING:
            bound.append(word)
        elif word in _ADVERBS:
            adverbs.append(_Word(word, ()))
        else:
            going_on = after_be and word.endswith("ing")
            base = lemma(word) if going_on else ""
            may_be_verb = bool(found) and not bound and not marked
            found.append(_Word(_form(word, verb=may_be_verb), tuple(bound), base, marked))
            bound, marked = [], False
        after_be = be
    if bound:
        found.append(_Word("", tuple(bound)))
    return (*sorted(adverbs, key=lambda one: one.text), *found)


def _form(word: str, *, verb: bool = False) -> str:
    """As it is written, whoever writes it."""
    word = _SAME_WORD.get(word, word)
    if not is_hebrew(word):
        return _SPELLING.sub("or", word)
    plain = unify_finals(word).replace("יי", "י").replace("וו", "ו")
    if verb and _CAUSATIVE.fullmatch(plain):
        return plain
    rest = plain.removeprefix("ה")
    return rest if len(rest) >= _LEAST_HEBREW else plain
