"""Forms of a text: for matching, for the content hash, of labels; what may be stored at all."""

import hashlib
import re
import unicodedata
from collections.abc import Iterable

from rayapp.text.hebrew import GERESH, GERSHAYIM, HEBREW_LETTER, MAQAF, POINTS
from rayapp.text.utterance import SHORT_CHARS, Utterance, reading

# Bidi controls, zero-width characters, soft hyphen and byte-order mark: invisible in a line.
_INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
# The same without the joiners: those change what an emoji or a Persian word is.
_INVISIBLE_BUT_JOINERS = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]"
)
_GERESH_LIKE = re.compile(f"(?<=[{HEBREW_LETTER}])[\u05f3\u2018\u2019\u201b\u2032`]")
# Two gereshes as well, which phones write for it.
_GERSHAYIM_LIKE = re.compile(
    f"(?<=[{HEBREW_LETTER}])(?:[\u05f4\u201c\u201d\u201e\u201f]|"
    f"['\u05f3\u2018\u2019\u201b\u2032`]{{2}})(?=[{HEBREW_LETTER}])"
)
# NFKC makes a space and an accent of the acute, and keeps a joiner that stands between points. Of
# the hyphen that does not break, which models like to write, it makes the typographic one.
_ACUTE, _JOINER, _HYPHEN = "\u00b4", "\u034f", "\u2010"
# One character for a letter with its points, its shape or the letter beside it: of old files.
_PRESENTED = re.compile("[\ufb00-\ufb4f\ufb50-\ufbff\ufe80-\ufefc]")
# What stands between a word and who looks for its letters in the text as it is: marks that show
# nothing, and shapes of which the form for matching makes letters, by their Unicode blocks.
VEILED = re.compile(
    "[\u00aa\u00ad\u00b2\u00b3\u00b9\u00ba\u00bc-\u00be\u02b0-\u02b8\u034f\u061c\u180e\u200b-\u200f"
    "\u202a-\u202e\u2060-\u209c\u2100-\u218f\u2460-\u24ff\u3200-\u33ff\uf900-\ufdff\ufe70-\uffdc"
    "\U0001d400-\U0001d7ff\U0001f100-\U0001f1ff]"
)
_SEPARATORS = re.compile(f"[{MAQAF}\u05c0]")
_WHITESPACE = re.compile(r"\s+")
# Letters and a symbol by their category, drawn as nothing: Hangul fillers, the blank Braille cell.
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800")
# C0 without tab, newline and carriage return; DEL and C1; lone surrogates.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def normalize(text: str) -> str:
    """The form used for matching: case and final letters are kept, points and marks are not.

    NFKC; niqqud, cantillation, bidi and zero-width marks removed; maqaf becomes a space; geresh
    and gershayim of a Hebrew word become ' and "; every hyphen is a plain one; whitespace
    collapsed. That of an `Utterance` is one, and is its own.
    """
    if type(text) is not Utterance:
        return _kept_form(text) if len(text) <= SHORT_CHARS else normal_form(text)
    if text.is_normal:
        return text
    found: str | None = text.readings.get(normal_form)
    if found is None:
        plain = normal_form(text)
        found = text if plain == text else Utterance(plain)
        found.is_normal = True
        if found is not text:  # nothing holds itself
            text.readings[normal_form] = found
    return found


def normal_form(text: str) -> str:
    """As `normalize`, read anew."""
    if text.isascii():
        return " ".join(text.split())
    text = text.replace(_ACUTE, "\u2019").replace(_JOINER, "")
    # Presentation forms decompose into letter and point, so points go after NFKC.
    text = _INVISIBLE.sub("", POINTS.sub("", unicodedata.normalize("NFKC", text)))
    text = _GERESH_LIKE.sub(GERESH, _GERSHAYIM_LIKE.sub(GERSHAYIM, text))
    return _WHITESPACE.sub(" ", _SEPARATORS.sub(" ", text.replace(_HYPHEN, "-"))).strip()


_kept_form = reading(normal_form)


def canonical(text: str) -> str:
    """The form behind the content hash: equal for texts a reader would call the same.

    Unicode composition, invisible marks, whitespace and case do not count. NFC and not NFKC:
    compatibility folding makes 10² and 102 one text. Points, punctuation and word order count.
    """
    text = without_marks(unicodedata.normalize("NFC", text))
    # Case folding can leave composed letters apart (İ), hence the second NFC.
    folded = unicodedata.normalize("NFC", text.casefold())
    return _WHITESPACE.sub(" ", folded).strip()


def name_form(text: str) -> str:
    """The form in which names are kept and compared, the same to a reader: NFC, not NFKC, which
    makes one of m² and m2; plain letters for presentation forms; no marks that show nothing."""
    if text.isascii():
        return text.strip()
    plain = _PRESENTED.sub(lambda one: POINTS.sub("", unicodedata.normalize("NFKC", one[0])), text)
    return unicodedata.normalize("NFC", without_marks(plain)).strip()


def label_form(text: str) -> str:
    """The form of tags, entities and of whom a text is about: that of names, without points."""
    return POINTS.sub("", name_form(text)).strip()


def spellings(text: str) -> tuple[str, ...]:
    """A name as it is kept, and as a row from before may have it."""
    if text.isascii():
        return (text,)
    ways = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    return tuple(dict.fromkeys((label_form(text), name_form(text), text, *ways)))


def content_hash(text: str) -> str:
    """SHA-256 of the canonical form, 64 hex digits."""
    return hashlib.sha256(canonical(text).encode("utf-8")).hexdigest()


def shows_nothing(text: str) -> bool:
    """Whether a reader sees no character: only spaces, controls, format and bidi characters, and
    marks that combine with a letter that is not there."""
    return all(
        unicodedata.category(letter)[0] in "CZM" or letter in _BLANK_LETTERS for letter in text
    )


def without_forbidden(text: str) -> str:
    """What `find_forbidden` would find left out, and byte-order marks."""
    return _FORBIDDEN.sub("", text).replace("\ufeff", "")


def without_marks(text: str) -> str:
    """A line without what nobody sees in it: bidi controls, zero-width characters but joiners."""
    return _INVISIBLE_BUT_JOINERS.sub("", text)


def printable(name: object, most: int | None = None) -> str:
    """The beginning of a name that may be junk itself, in characters that everybody can write."""
    text = str(name)[:most]
    return text if text.isprintable() else text.encode("unicode_escape").decode("ascii")


def find_forbidden(text: str) -> str | None:
    """Name and place of the first character that may not be stored, None when all may.

    Bidi marks are allowed: Hebrew text needs them, and prompts escape them.
    """
    match = _FORBIDDEN.search(text)
    if match is None:
        return None
    code = ord(match.group())
    kind = "lone surrogate" if code >= 0xD800 else "control character"
    return f"{kind} U+{code:04X} at character {match.start()}"


# A heading of Markdown, wherever it came from; `#1` and `#garden` are words.
_HEADING_MARK = re.compile(r"\s*#{1,6}(?:[ \t]+|$)")


def below_headings(lines: Iterable[str]) -> list[str]:
    """The lines that say something and are no headings of Markdown; of headings alone, their
    words."""
    every = [(line.strip(), _HEADING_MARK.match(line)) for line in lines]
    said = [line for line, mark in every if line and mark is None]
    if said:
        return said
    words = (line[mark.end() :].strip(" \t#") for line, mark in every if mark is not None)
    return [one for one in words if one]
