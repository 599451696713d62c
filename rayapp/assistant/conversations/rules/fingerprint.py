"""Fingerprints of what was put before an assistant, so that its echo is not learned again. Pure.

An echo that is learned outlives its source: when the source is corrected, the echo brings the old
text back. The test is strict, because a false "known" would swallow a correction: every three
words in a row must have been injected, so "Dana lives in Eilat" is new after "Dana lives in Haifa".
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator

from rayapp.text.normalize import normalize

# Words of one fingerprint: two are found in half of all sentences, four miss short facts.
SHINGLE = 3
# 32 bits: with 4,000 fingerprints held, one in a million is met by chance.
HEX_DIGITS = 8
# Fingerprints of one text; a memory of 100,000 characters must not fill a session alone.
MAX_PER_TEXT = 400

_WORD = re.compile(r"[^\W_]+(?:['\"][^\W_]+)*")
_SENTENCE = re.compile(r"[.!?…\n;]*+(?:[^.!?…\n;]++(?:[.!?…;]++|\n++|\Z)|\Z)")
# The assistant speaks of "your dog" where the memory says "my dog".
_PERSON = {
    **dict.fromkeys(("i", "you", "me", "user"), "you"),
    **dict.fromkeys(("my", "your", "mine", "yours", "user's"), "your"),
    **dict.fromkeys(("am", "are", "is"), "is"),
    **dict.fromkeys(("i'm", "you're"), "you're"),
    **dict.fromkeys(("i've", "you've"), "you've"),
    **dict.fromkeys(("שלי", "שלך", "שלכם", "שלנו"), "שלך"),
    # The last one also marks an object; as every "את" becomes "אתה", no two sentences meet by it.
    **dict.fromkeys(("אני", "אתה", "את"), "אתה"),
    **dict.fromkeys(("לי", "לך"), "לך"),
}
# What an answer begins with. Some of these words change what follows ("No meetings on Friday",
# "בטח דנה גרה בחיפה"), so they lead in only before a comma.
_OPENER_EN = r"(?:(?:yes|ok|okay|so|and)[, ]+|(?:no|sure|well) ?,[, ]*)"
_OPENER_HE = r"(?:(?:כן|אוקיי|ובכן)[, ]+|(?:לא|אז|בטח) ?,[, ]*)"
# How an answer leads in what it repeats.
_LEAD = re.compile(
    rf"^{_OPENER_EN}*"
    r"(?:(?:as|like) (?:you|i) (?:said|told me|mentioned|recall|remember)|you (?:have )?(?:said"
    r"|told me|mentioned)|i (?:remember|recall|know|see)|(?:according to|from) (?:my )?(?:memory"
    r"|notes)|(?:my )?memory says|from what (?:i|you) \w+)"
    rf"(?: (?:earlier|before|that))*[,:]? |^{_OPENER_EN}"
    rf"|^{_OPENER_HE}*(?:כפי ש(?:אמרת|סיפרת|ציינת)|כמו ש(?:אמרת|סיפרת)|אמרת"
    r"|סיפרת|ציינת|אני זוכר(?:ת)?|לפי הזיכרון|בזיכרון כתוב|ידוע לי)(?: לי)?[,:]? (?:ש(?=\w))?"
    rf"|^{_OPENER_HE}",
    re.IGNORECASE,
)


def fingerprints_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Fingerprints of injected texts, each once, in their order."""
    found: dict[str, None] = {}
    for text in texts:
        taken: dict[str, None] = {}
        for sentence in _sentences(text):
            taken |= dict.fromkeys(_prints(_words(sentence)))
            if len(taken) >= MAX_PER_TEXT:
                break
        found |= dict.fromkeys(list(taken)[:MAX_PER_TEXT])
    return tuple(found)


def already_known(text: str, fingerprints: Collection[str]) -> bool:
    """Whether every sentence of a text was injected; a text without words is not known."""
    known = _as_set(fingerprints)
    words = [words for sentence in _sentences(text) if (words := _words(sentence))]
    if not known or not words:
        return False
    return all(_sentence_known(sentence, known) for sentence in _sentences(text))


def without_known(text: str, fingerprints: Collection[str]) -> str:
    """The sentences of a text that were not injected, as they stand; empty when none is new."""
    known = _as_set(fingerprints)
    if not known:
        return text
    sentences = list(_sentences(text))
    kept = [one for one in sentences if not _sentence_known(one, known, neutral=False)]
    if len(kept) == len(sentences):
        return text
    new = "".join(kept).strip()
    return new if _words(new) else ""


def _as_set(fingerprints: Collection[str]) -> Collection[str]:
    return fingerprints if isinstance(fingerprints, set | frozenset) else frozenset(fingerprints)


def _sentence_known(sentence: str, known: Collection[str], *, neutral: bool = True) -> bool:
    """`neutral`: what a sentence without words counts as."""
    words = _words(sentence)
    if not words:
        return neutral
    plain = normalize(sentence)
    led = _words(_LEAD.sub("", plain, count=1))
    return any(
        candidate and all(one in known for one in _prints(candidate)) for candidate in (words, led)
    )


def _sentences(text: str) -> Iterator[str]:
    for found in _SENTENCE.finditer(text):
        yield found.group()


def _words(text: str) -> list[str]:
    found = (word.casefold() for word in _WORD.findall(normalize(text)))
    return [_PERSON.get(word, word) for word in found]


def _prints(words: list[str]) -> Iterator[str]:
    """Of each three words in a row; of all of them when there are fewer."""
    if not words:
        return
    for start in range(max(1, len(words) - SHINGLE + 1)):
        part = "\x00".join(words[start : start + SHINGLE])
        yield hashlib.blake2b(part.encode(), digest_size=HEX_DIGITS // 2).hexdigest()
