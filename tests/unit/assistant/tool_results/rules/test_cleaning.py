"""A tool's raw output becomes a text."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.assistant.tool_results.rules import as_text, clean
from rayapp.core.errors import InvalidInput
from rayapp.text.normalize import find_forbidden

BLOB = base64.b64encode(bytes(range(256)) * 2).decode()


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ({"a": "שלום", "b": [1, None]}, '{"a": "שלום", "b": [1, null]}'),
        ([1, 2], "[1, 2]"),
        ([], "[]"),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "שתיים"}], "one\n\nשתיים"),
        ({"content": [{"type": "text", "text": "one"}], "isError": False}, "one"),
        ([{"type": "image", "data": "AAAA", "mimeType": "image/png"}], "[image/png]"),
        ([{"type": "resource", "resource": {"text": "inside"}}], "inside"),
        ([{"text": "no type"}], '[{"text": "no type"}]'),
        (12.5, "12.5"),
    ],
)
def test_every_form_of_an_output_has_a_text(output: Any, text: str) -> None:
    assert as_text(output) == text


def test_an_output_nested_too_deeply_is_refused() -> None:
    deep: Any = "x"
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(InvalidInput):
        as_text(deep)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("a\x00b\x07c\u200bd\ufeff", "abcd"),
        ("\x1b[31mred\x1b[0m \x1b]0;title\x07done", "red done"),
        ("hidden\U000e0041\U000e0042 tag", "hidden tag"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("a  \n\n\n\n\nb\t\t c", "a\n\nb c"),
        (f"see data:image/png;base64,{BLOB} here", "see [binary data: image/png] here"),
        (f"blob {BLOB} end", f"blob [binary data: {len(BLOB)} characters] end"),
        ("ab" * 300, "[binary data: 600 characters]"),
        ("wordsWithoutSpaces" * 20, "wordsWithoutSpaces" * 20),
        ("מילה" * 100, "מילה" * 100),
        ("if a < b and c > d: List<String>", "if a < b and c > d: List<String>"),
        ("\u202bשלום\u202c", "\u202bשלום\u202c"),
    ],
)
def test_what_no_reader_needs_is_taken_out(raw: str, text: str) -> None:
    assert clean(raw) == text


def test_wrapped_binary_data_is_one_mark() -> None:
    lines = "\n".join(BLOB[at : at + 76] for at in range(0, len(BLOB), 76))
    assert clean(f"before\n{lines}\nafter").startswith("before\n[binary data: ")
    assert clean(f"before\n{lines}\nafter").endswith("characters]\nafter")


def test_a_page_becomes_what_it_shows() -> None:
    page = (
        "<!doctype html><html><head><title>t</title><style>p{}</style></head><body>"
        "<!-- note --><p>Opening hours: <b>9&ndash;17</b></p><script>steal('x')</script>"
        "<ul><li>ראשון</li><li>שני &amp; שלישי</li></ul></body></html>"
    )
    assert clean(page) == "Opening hours: 9\u201317\n\nראשון\n\nשני & שלישי"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<html><head><title>t</title><body><p>a</p><p>ב</p>", "a\n\nב"),
        ("<html><head><title>t</title><p>a</p><p>ב</p>", "a\n\nב"),
        ("<head><script>w('<p>')</script><title>t</title></head><p>a</p><p>b</p>", "a\n\nb"),
        ("<p>a</p><svg width=1 /><p>b</p><p>ג</p>", "a\n\nb\n\nג"),
        ("<p>a</p><script src=x/><p>b</p><p>ג</p>", "a\n\nb\n\nג"),
        ("<p>a</p><style/><p>b</p><p>ג</p>", "a\n\nb\n\nג"),
        ("<p>a</p><svg><p>b</p><p>ג</p>", "a\n\nb\n\nג"),
        ("<p>a</p><p>c</p><head><title>b</title>ג", "a\n\nc\n\nb\nג"),
    ],
)
def test_a_tag_that_nothing_closes_does_not_hide_the_rest(page: str, text: str) -> None:
    assert clean(page) == text


def test_markup_never_hides_a_control_character() -> None:
    assert find_forbidden(clean("<p>a</p><p>b</p><p>&#7;&#x1b;c</p>")) is None


@given(st.text(max_size=400))
def test_a_cleaned_text_may_be_stored_and_stays_as_it_is(raw: str) -> None:
    text = clean(raw)
    assert find_forbidden(text) is None
    assert text == text.strip()


@pytest.mark.parametrize(
    "piece",
    [
        "<",
        "<a ",
        "<a>",
        "<script>",
        "<!--",
        "\x1b[",
        "\x1b]",
        "\n",
        " ",
        "x \n",
        "A" * 70 + "\n",
        "data:image/png;base64,",
        "data:a",
        "\u00a0",
        "&amp;",
        "Aa1",
    ],
)
def test_the_work_grows_with_the_length(piece: str) -> None:
    assert len(clean((piece * 20_000)[:200_000])) <= 200_000


@pytest.mark.parametrize("text", ["a" + " " * 200_000 + "b", "a" + "\u00a0 " * 100_000 + "ב"])
def test_a_long_run_of_spaces_is_one_space(text: str) -> None:
    """Tried from every space of the run, this would not end within the time of a test."""
    assert clean(text) == f"a {text[-1]}"
