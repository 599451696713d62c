"""Bytes of a text whose encoding nobody states."""

import codecs
import re

import webencodings

# The longest mark first: that of UTF-32 starts like that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# What browsers refuse to read or nobody writes.
_NO_TEXT = ("replacement", "x-user-defined")
# Encodings that browsers read by one that holds theirs.
_WIDER = {"gbk": "gb18030"}
# Browsers take it for cp1252. Programs write it for whatever they hold.
_ASCII = frozenset({"ascii", "us-ascii", "ansi_x3.4-1968"})
# Of encodings whose letters are bytes of ASCII, and so always UTF-8 too.
_SEVEN_BIT = ("iso2022", "hz", "utf-7")
# Tried where the bytes are no UTF-8; without this list short Western texts are taken for Polish.
_CANDIDATES = [
    *("cp1252", "cp1255", "cp1251", "cp1256", "cp1253", "cp1254", "utf_16_le", "utf_16_be"),
    *("cp932", "gb18030", "big5", "cp949", "euc_jp"),
]
# Hebrew letters of cp1255 and iso-8859-8; the first reads all that the second writes. Words of
# them are runs of such bytes: French has single ones, Russian has those of _NO_HEBREW too.
_HEBREW_RUN = re.compile(rb"[\xc0-\xd3\xe0-\xfa]{2,}")
_HIGH = re.compile(rb"[\x80-\xff]")
_NO_HEBREW = re.compile(rb"[\xdb-\xde\xfb\xfc\xff]")
# Share of the bytes above ASCII that stand in such runs (prices and quotes are above it too).
_HEBREW_SHARE = 0.5
# Final letters, and those that do not end their word: a few are slips, many are another alphabet.
_FINAL = re.compile(rb"[\xea\xed\xef\xf3\xf5]")
_FINAL_INSIDE = re.compile(rb"[\xea\xed\xef\xf3\xf5](?=[\xe0-\xfa])")
_MAX_INSIDE = 0.2
# What a byte that is no UTF-8 becomes, and of how many characters of a text it may be one.
_FAULT = "\ufffd"
_FAULT_SHARE = 0.01
# How much of a text is looked at, bytes.
_SAMPLE = 200_000


def decode(data: bytes, stated: str | None = None) -> str:
    """The text. `stated` is the encoding that the file itself names, if it does.

    Never fails: a byte that nothing can read becomes U+FFFD.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    name = codec_of(stated)
    if name is None or not name.startswith(_SEVEN_BIT):
        text = _utf8(data)
        if text is not None:
            return text
    if name:
        text = data.decode(name, "replace")
        if text.count(_FAULT) <= _FAULT_SHARE * len(text):
            return text
    return data.decode(_guess(data[:_SAMPLE]), "replace")


def _utf8(data: bytes) -> str | None:
    """Without its NULs; None where it is another encoding. A cut letter or a stray NUL makes it
    none, but of UTF-16 whole alphabets are ASCII with NULs, and of others a pair of bytes may be
    a letter of UTF-8."""
    text = data.decode("utf-8", "replace")
    nuls = data.count(b"\x00")
    faults = text.count(_FAULT) - data.count(_FAULT.encode())
    if faults or nuls:
        letters = len(text) - len(text.encode("ascii", "ignore")) - faults
        few = max(faults, 0 if letters > nuls else nuls) <= _FAULT_SHARE * len(text)
        if not few or (faults and letters <= faults):
            return None
    return text.replace("\x00", "")


def codec_of(label: str | None) -> str | None:
    """The codec that reads what has this name, as browsers understand it, else as Python does.

    None where the name says nothing. Hebrew of either name is read as cp1255: pages say the one and
    hold the other.
    """
    if not label:
        return None
    try:
        known = webencodings.lookup(label)
        if known is None or known.name in _NO_TEXT:
            name = codecs.lookup(label.strip()).name
        else:
            name = _WIDER.get(known.name, known.codec_info.name)
        bytes(4).decode(name, "ignore")  # fails for what Python calls a codec and is no encoding
    except (LookupError, ValueError):
        return None
    says_nothing = name == "ascii" or label.strip().lower() in _ASCII
    return None if says_nothing else "cp1255" if name.startswith("iso8859-8") else name


def _guess(sample: bytes) -> str:
    if _is_hebrew(sample):
        return "cp1255"
    # Imported where it is needed: it takes longer than a small file.
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_isolation=_CANDIDATES).best()
    return best.encoding if best else "cp1252"


def _is_hebrew(sample: bytes) -> bool:
    high = len(_HIGH.findall(sample))
    runs = sum(map(len, _HEBREW_RUN.findall(sample)))
    inside, finals = len(_FINAL_INSIDE.findall(sample)), len(_FINAL.findall(sample))
    return (
        high > 0
        and runs >= _HEBREW_SHARE * high
        and inside <= _MAX_INSIDE * finals
        and _NO_HEBREW.search(sample) is None
    )
