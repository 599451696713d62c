"""The names of encodings that mailers write, in headers, parts and names of attachments."""

import base64

import pytest
from webencodings.labels import LABELS

from rayapp.documents.readers.found import Order
from rayapp.documents.readers.letters import read
from rayapp.documents.rules.kinds import Kind

# What is written in each encoding, and by which codec.
HEBREW = ("שלום לכולם", "cp1255")
WRITTEN = {
    "utf-8": ("שלום לכולם", "utf-8"),
    "utf-16le": ("שלום לכולם", "utf-16-le"),
    "utf-16be": ("שלום לכולם", "utf-16-be"),
    "windows-1255": HEBREW,
    "iso-8859-8": HEBREW,
    "iso-8859-8-i": HEBREW,
    "ibm866": ("привет", "cp866"),
    "iso-8859-2": ("žluťoučký kůň", "iso8859-2"),
    "iso-8859-3": ("ĉiuĵaŭde", "iso8859-3"),
    "iso-8859-4": ("šķūnis", "iso8859-4"),
    "iso-8859-5": ("привет", "iso8859-5"),
    "iso-8859-6": ("سلام عليكم", "iso8859-6"),
    "iso-8859-7": ("καλημέρα", "iso8859-7"),
    "iso-8859-10": ("þórður", "iso8859-10"),
    "iso-8859-13": ("ąžuolas", "iso8859-13"),
    "iso-8859-14": ("ŵyneb", "iso8859-14"),
    "iso-8859-15": ("cœur à 5 €", "iso8859-15"),
    "iso-8859-16": ("știință", "iso8859-16"),
    "koi8-r": ("привет", "koi8-r"),
    "koi8-u": ("їжак", "koi8-u"),
    "macintosh": ("naïve “café”", "mac-roman"),
    "windows-874": ("สวัสดี", "cp874"),
    "windows-1250": ("žluťoučký kůň", "cp1250"),
    "windows-1251": ("привет", "cp1251"),
    "windows-1252": ("“naïve” – 5 €", "cp1252"),
    "windows-1253": ("καλημέρα", "cp1253"),
    "windows-1254": ("ığdır “şiş”", "cp1254"),
    "windows-1256": ("سلام عليكم", "cp1256"),
    "windows-1257": ("ąžuolas", "cp1257"),
    "windows-1258": ("Đươ\u0300ng", "cp1258"),
    "x-mac-cyrillic": ("привет", "mac-cyrillic"),
    "gbk": ("你好，世界 €", "gb18030"),
    "gb18030": ("你好，世界", "gb18030"),
    "big5": ("你好，世界", "big5"),
    "euc-jp": ("名前と住所", "euc-jp"),
    "iso-2022-jp": ("名前と住所", "iso-2022-jp"),
    "shift_jis": ("名前①と住所", "cp932"),
    "euc-kr": ("안녕하세요 똠", "cp949"),
}
# Refused by browsers, for a page can be made to say two things in them. Those that a reader knows:
OF_OLD = {
    "csiso2022kr": ("안녕하세요", "iso2022_kr"),
    "iso-2022-kr": ("안녕하세요", "iso2022_kr"),
    "hz-gb-2312": ("你好", "hz"),
}
# Of the standard, what no letter is written in.
NO_TEXT = {"x-user-defined", "replacement"}
# What programs write for any encoding.
ASCII = ("ascii", "us-ascii", "ansi_x3.4-1968")
CASES = [
    *(
        (one, *WRITTEN[name])
        for one, name in LABELS.items()
        if name not in NO_TEXT and one not in ASCII
    ),
    *((label, *written) for label, written in OF_OLD.items()),
    *(("ISO-8859-8-I", *HEBREW), ("Windows-1255", *HEBREW), ("iso-8859-8-E", *HEBREW)),
]


def shown(data: bytes) -> list[str]:
    return [block.text for block in read(data, Order(Kind.EML, max_pages=9)).blocks]


def word_of(text: str, label: str, codec: str, way: str) -> str:
    data = text.encode(codec)
    said = base64.b64encode(data).decode() if way == "B" else escaped(data, "=")
    return f"=?{label}?{way}?{said}?="


def escaped(data: bytes, sign: str) -> str:
    return "".join(f"{sign}{byte:02X}" for byte in data)


def test_the_table_has_every_encoding_of_the_standard() -> None:
    assert set(LABELS.values()) == {*WRITTEN, *NO_TEXT}


@pytest.mark.parametrize("way", ["B", "Q"])
@pytest.mark.parametrize(("label", "text", "codec"), CASES)
def test_a_header_is_read_by_any_label(label: str, text: str, codec: str, way: str) -> None:
    word = word_of(text, label, codec, way)
    letter = f"From: {word} <d@example.org>\r\nSubject: Re: {word}\r\n\r\nhello\r\n"
    assert shown(letter.encode()) == [f"Re: {text}", f"From: {text} <d@example.org>", "hello"]


@pytest.mark.parametrize(("label", "text", "codec"), CASES)
def test_a_part_is_read_by_any_label(label: str, text: str, codec: str) -> None:
    body = base64.b64encode(text.encode(codec)).decode()
    letter = (
        f'From: d@e.org\nSubject: s\nContent-Type: text/plain; charset="{label}"\n'
        f"Content-Transfer-Encoding: base64\n\n{body}\n"
    )
    assert shown(letter.encode())[2:] == [text]


@pytest.mark.parametrize(("label", "text", "codec"), CASES)
def test_a_name_of_an_attachment_is_read_by_any_label(label: str, text: str, codec: str) -> None:
    name = escaped(text.encode(codec), "%")
    letter = (
        "From: d@e.org\nSubject: s\nContent-Type: application/pdf\n"
        f"Content-Disposition: attachment; filename*={label}''{name}\n\nx\n"
    )
    assert shown(letter.encode())[2:] == [f"Attachment: {text}"]


@pytest.mark.parametrize("label", ["iso-8859-8-i", "iso-8859-8-e", "windows-1255", "us-ascii", ""])
def test_headers_of_bare_bytes_are_read_as_the_letter_is(label: str) -> None:
    stated = f"\r\nContent-Type: text/plain; charset={label}" if label else ""
    letter = f"From: דנה כהן <d@example.org>\r\nSubject: שלום לכולם{stated}\r\n\r\nלהתראות\r\n"
    assert shown(letter.encode("cp1255")) == [
        "שלום לכולם", "From: דנה כהן <d@example.org>", "להתראות",
    ]  # fmt: skip


@pytest.mark.parametrize("label", ASCII)
def test_letters_that_call_themselves_ascii_are_read_as_what_they_are(label: str) -> None:
    word = word_of("שלום לכולם", label, "cp1255", "B")
    letter = f"From: d@e.org\nSubject: {word}\nContent-Type: text/plain; charset={{}}\n\nלהתראות\n"
    for stated in ("windows-1255", label):
        assert shown(letter.format(stated).encode("cp1255"))[-1] == "להתראות"
    assert shown(letter.format("windows-1255").encode("cp1255"))[0] == "שלום לכולם"


def test_letters_above_those_of_the_label_are_read_too() -> None:
    """Hebrew of the narrow label is written with the signs of the wide one."""
    word = word_of("„שָׁלוֹם” – 5 ₪", "iso-8859-8-i", "cp1255", "B")
    assert shown(f"From: d@e.org\nSubject: {word}\n\nx\n".encode())[0] == "„שָׁלוֹם” – 5 ₪"


def test_a_letter_that_is_cut_between_two_words_of_a_header_is_whole() -> None:
    data = "שלום".encode()
    halves = (f"=?utf-8?B?{base64.b64encode(half).decode()}?=" for half in (data[:3], data[3:]))
    letter = "From: d@e.org\nSubject: " + "\n ".join(halves) + "\n\nx\n"
    assert shown(letter.encode())[0] == "שלום"


@pytest.mark.parametrize("label", ["no-such-thing", "rot13", "base64", "x-user-defined", "?"])
def test_a_label_of_nothing_breaks_no_letter(label: str) -> None:
    letter = (
        f"From: d@e.org\nSubject: =?{label}?B?eA==?=\nContent-Type: text/plain; charset={label}"
    )
    assert shown(f"{letter}\n\nשלום לכולם\n".encode("cp1255"))[-1] == "שלום לכולם"
