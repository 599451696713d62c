"""Encoded files in texts."""

import base64
import hashlib
import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.admin.rules import MIN_BLOB_CHARS, blobs, without_blobs

PROSE = "Dana drinks tea in the morning. דנה שותה תה בבוקר. "
HEX = hashlib.sha512(b"x").hexdigest() * 4
PATH = "/home/dana/" + "/".join(f"folder-{n}" for n in range(60))
WORD = "antidisestablishmentarianism" * 12
HEBREW = "והמשתמשים" * 60


def encoded(size: int, seed: int = 1) -> str:
    return base64.b64encode(random.Random(seed).randbytes(size)).decode()


def of_text(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "blob",
    [
        encoded(200),
        encoded(5_000),
        base64.urlsafe_b64encode(random.Random(2).randbytes(400)).decode(),
        of_text(PROSE * 5),
        base64.b64encode(zlib.compress(PROSE.encode() * 40 + bytes(range(256)))).decode(),
        f"data:image/png;base64,{encoded(300)}",
        base64.encodebytes(random.Random(3).randbytes(600)).decode().strip(),
    ],
)
@pytest.mark.parametrize(("before", "after"), [("", ""), ("The file: ", ""), ("הקובץ ", " סוף.")])
def test_a_file_is_found_wherever_it_stands(blob: str, before: str, after: str) -> None:
    text = f"{before}{blob}{after}"
    found = blobs(text)
    assert len(found) == 1
    assert text[found[0].start : found[0].end] == blob


@pytest.mark.parametrize("text", [PROSE * 50, HEX, PATH, WORD, HEBREW, "=" * 500, "A" * 500])
def test_what_people_write_is_no_file(text: str) -> None:
    assert blobs(text) == ()


def test_a_short_run_is_no_file() -> None:
    assert blobs(encoded(MIN_BLOB_CHARS // 2)) == ()


def test_a_line_of_prose_after_a_file_stays() -> None:
    text = f"{encoded(300)}\nRegards\nDana"
    assert without_blobs(text, blobs(text)).endswith("\nRegards\nDana")


def test_a_text_that_is_only_files_has_nothing_left() -> None:
    text = f"{encoded(300)}\n...\n{encoded(400, 2)}"
    assert without_blobs(text, blobs(text)) == ""


@given(st.text(max_size=200), st.integers(150, 600), st.integers(0, 99))
def test_what_was_cleaned_holds_no_file(around: str, size: int, seed: int) -> None:
    text = f"{around} {encoded(size, seed)} {around}"
    clean = without_blobs(text, blobs(text))
    assert blobs(clean) == ()
    assert without_blobs(clean, blobs(clean)) in ("", clean)


@given(st.text(max_size=400))
def test_a_text_without_files_is_unchanged(text: str) -> None:
    assert blobs(text) == ()
