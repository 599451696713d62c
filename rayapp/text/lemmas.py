"""Dictionary forms of words: simplemma for Hebrew and English, with Hebrew prefixes taken off.

A Hebrew word can be read in several ways (הרכב is "the car" or "composition"), so a word has
readings, the likeliest first; a term is indexed for each.
"""

from simplemma import Lemmatizer, is_known
from simplemma.strategies import DefaultStrategy

from rayapp.text.hebrew import ACRONYMS, GERESH, GERSHAYIM, STOP_WORDS, is_hebrew, without_prefixes
from rayapp.text.utterance import word_reading

# A shorter rest is more often part of the word than a word behind a prefix (מים, ספר).
MIN_STEM_LETTERS = 3
# A lemma of one letter, or one that is much longer than its word, is another word.
MIN_ENGLISH_LETTERS = 2
MAX_GROWTH = 3

_simplemma = Lemmatizer(cache_max_size=1, lemmatization_strategy=DefaultStrategy())


@word_reading
def lemmas(word: str, vocabulary: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Readings of one token of `tokens`, at least one, the likeliest first, no repeats.

    `vocabulary` holds words and acronyms that simplemma does not know.
    """
    if not is_hebrew(word):
        return (_english(word),)
    if GERSHAYIM in word:
        return _unique(_acronym(word, vocabulary))
    return _unique(_hebrew(word, vocabulary))


def lemma(word: str, vocabulary: frozenset[str] = frozenset()) -> str:
    """The likeliest reading."""
    return lemmas(word, vocabulary)[0]


def _english(word: str) -> str:
    """simplemma reads short names as odd forms (ai: be, js: j, ml: millileter): they stay."""
    word = word.lower()
    if not word.isalpha():
        return word
    found = str(_simplemma.lemmatize(word, lang="en")).lower()
    emptied = len(found) < MIN_ENGLISH_LETTERS or (found in STOP_WORDS and word not in STOP_WORDS)
    return word if emptied or len(found) > len(word) + MAX_GROWTH else found


def _hebrew(word: str, vocabulary: frozenset[str]) -> list[str]:
    if is_known(word, lang="he"):
        return _known(word)
    if word in vocabulary:
        return [word]
    for rest in without_prefixes(word, MIN_STEM_LETTERS):
        if rest in vocabulary or is_known(rest, lang="he"):
            return _hebrew(rest, vocabulary)
    return [_lookup(word)]


def _known(word: str) -> list[str]:
    """A word of the dictionary may still be prefix + noun: הרכב stays, לבית becomes a verb."""
    whole, rest = _lookup(word), word[1:]
    article = word[0] == "ה" and whole == word
    misread = word[0] in "בכל" and whole != word and not whole.startswith(word[0])
    if not (article or misread) or len(rest) < MIN_STEM_LETTERS:
        return [whole]
    if not is_known(rest, lang="he") or _lookup(rest) != rest:
        return [whole]
    # ה…ה in the dictionary is nearly always an action noun (הגנה, החלטה), not the article.
    return [whole, rest] if article and word.endswith("ה") else [rest, whole]


def _acronym(word: str, vocabulary: frozenset[str]) -> list[str]:
    """The acronym behind its prefix when it is a known one, itself, and without the marks."""
    rests = [] if _is_acronym(word, vocabulary) else without_prefixes(word, MIN_STEM_LETTERS)
    known = [rest for rest in rests if _is_acronym(rest, vocabulary)]
    # An unknown acronym may carry a prefix too; with three letters left it stays distinctive.
    guess = [rest for rest in rests[:1] if len(rest) > MIN_STEM_LETTERS and GERSHAYIM in rest]
    whole = known[:1] or [word, *guess]
    return [*whole, *(_lookup(one.replace(GERSHAYIM, "")) for one in whole)]


def _is_acronym(word: str, vocabulary: frozenset[str]) -> bool:
    return word in ACRONYMS or word in vocabulary


def _lookup(word: str) -> str:
    return str(_simplemma.lemmatize(word.rstrip(GERESH), lang="he"))


def _unique(words: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
