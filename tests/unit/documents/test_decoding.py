"""Bytes of texts become letters."""

import pytest

from rayapp.documents.readers import rtf, web
from rayapp.documents.readers.decoding import decode
from rayapp.documents.readers.found import Order
from rayapp.documents.rules.kinds import Kind


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("שלום", "cp1255"),
        ("Hello שלום world", "iso-8859-8"),
        ("שָׁלוֹם", "cp1255"),
        ("מחיר 10 ₪ – „כן”", "cp1255"),
        ("café déjà vu garçon naïve", "cp1252"),
        ("Größe über Straße", "cp1252"),
        ("привет мир как дела", "cp1251"),
        ("名前,年齢,住所 佐藤太郎", "cp932"),
        ("שלום", "utf-8"),
        ("שלום עולם", "utf-16"),
        ("שלום עולם", "utf-16-le"),
        ("שלום", "utf-8-sig"),
        ("שלום", "utf-32"),
        ("", "utf-8"),
    ],
)
def test_texts_that_state_nothing(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize("text", ["שלום עולם, זה טקסט. " * 9, "Ça va très bien à côté. " * 9])
def test_a_cut_letter_or_a_stray_nul_makes_no_other_encoding(text: str) -> None:
    data = text.encode()
    assert decode(data + "ש".encode()[:1]) == text + "\ufffd"
    assert decode(data[:60] + b"\x00" + data[60:], "windows-1255") == text
    assert decode(b"plain " * 99 + b"\x00") == "plain " * 99


@pytest.mark.parametrize(
    "text", ["привет мир, как дела? " * 9, "plain words " * 9, "سلام عليكم " * 9]
)
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_nuls_of_wide_letters_are_no_strays(text: str, encoding: str) -> None:
    assert decode((text * 9).encode(encoding)) == text * 9


def test_a_rare_letter_of_an_old_encoding_is_no_fault_of_another() -> None:
    text = "plain words " * 99 + "café"
    assert decode(text.encode("cp1252")) == text


def test_what_a_file_states_is_believed_where_it_fits() -> None:
    assert decode("привет".encode("koi8-r"), "koi8-r") == "привет"
    assert decode("שלום".encode("cp1255"), "iso-8859-8-i") == "שלום"
    assert decode("שלום".encode("cp1255"), "utf-8") == "שלום"
    assert decode("שלום".encode("cp1255"), "no such thing") == "שלום"


def test_nothing_fails() -> None:
    assert decode(bytes(range(256)))


@pytest.mark.parametrize("label", ["iso-8859-8-i", "ISO-8859-8-E", "logical", "x-cp1255", "cp1255"])
def test_a_page_is_read_by_the_label_in_its_head(label: str) -> None:
    page = f'<html><head><meta http-equiv=Content-Type content="text/html; charset={label}"></head>'
    data = f"{page}<body><p>א × ב ÷</p></body></html>".encode("cp1255")
    blocks = web.read(data, Order(Kind.HTML, max_pages=9)).blocks
    assert [block.text for block in blocks] == ["א × ב ÷"]


@pytest.mark.parametrize(
    ("head", "codec"),
    [
        (r"\ansi\ansicpg1255", "cp1255"),
        (r"\ansi\ansicpg862", "cp862"),
        (r"\ansi\ansicpg1252\deff0{\fonttbl{\f0\fnil\fcharset0\cpg1255 Arial;}}", "cp1255"),
        (r"\ansi\ansicpg1252\deff0{\fonttbl{\f0\fnil\fcharset177 Arial;}}", "cp1255"),
    ],
)
def test_the_pages_of_codes_that_rtf_names(head: str, codec: str) -> None:
    said = "".join(rf"\'{byte:02x}" for byte in "שלום".encode(codec))
    found = rtf.read(rf"{{\rtf1{head}\pard {said}\par}}".encode(), Order(Kind.RTF, max_pages=9))
    assert [block.text for block in found.blocks] == ["שלום"]


@pytest.mark.parametrize(("word", "byte"), [("pc", "82"), ("pca", "82"), ("mac", "8e")])
def test_the_alphabets_of_old_machines_that_rtf_names(word: str, byte: str) -> None:
    data = rf"{{\rtf1\{word}\pard caf\'{byte}\par}}".encode()
    found = rtf.read(data, Order(Kind.RTF, max_pages=9))
    assert [block.text for block in found.blocks] == ["café"]


def test_one_byte_that_is_no_letter_makes_no_other_encoding_of_what_is_stated() -> None:
    greek = "καλημέρα σας, " * 30
    assert decode(greek.encode("cp1253") + b"\xd2", "windows-1253") == greek + "\ufffd"
