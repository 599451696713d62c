"""Keys of known providers go whole, wherever a text is wrapped; what looks like them stays."""

import random
import re
import string
from pathlib import Path

import pytest
import yaml

from rayapp.text.redaction import redact

SHAPES = yaml.safe_load(Path(__file__).with_name("secret_shapes.yaml").read_text(encoding="utf-8"))
SECRETS: dict[str, str] = SHAPES["secrets"]
ORDINARY: list[str] = SHAPES["ordinary"]

LETTERS = {
    "A": string.ascii_letters + string.digits,
    "U": string.ascii_uppercase + string.digits,
    "L": string.ascii_lowercase + string.digits,
    "X": "0123456789abcdef",
    "D": string.digits,
    "W": string.ascii_letters + string.digits + "_-",
    "B": string.ascii_letters + string.digits + "+/",
}
# How a tool result holds a text that was too wide for its terminal, a mail or a string of JSON.
BREAKS = ("\n", "\r\n", "\n    ", "\\\n", "\n> ", r"\n")


def draw_secret(name: str) -> str:
    """The same each time. A run of letters and digits holds both, as a random one of its length
    does."""
    source = random.Random(name)

    def drawn(match: re.Match[str]) -> str:
        kind, count = match[1], int(match[2])
        value = "".join(source.choice(LETTERS[kind]) for _ in range(count))
        if kind in "ALUWBX" and count > 4:
            small = "A" if kind == "U" else "a"
            value = small + value[1:-3] + "7" + small + "9"
        return value

    return re.sub(r"<([AULXDWB])(\d+)>", drawn, SECRETS[name])


def test_there_are_sixty_of_each() -> None:
    assert len(SECRETS) >= 60
    assert len(ORDINARY) >= 60


@pytest.mark.parametrize("frame", ["{}", "the key is {} for now", "המפתח: {}, תודה", '["{}"]'])
@pytest.mark.parametrize("name", SECRETS)
def test_the_whole_token_goes(name: str, frame: str) -> None:
    redacted = redact(frame.format(draw_secret(name))).text
    before, after = frame.split("{}")
    assert re.fullmatch(
        re.escape(before) + r"(?:https://)?\[redacted:\w+\]" + re.escape(after), redacted
    ), redacted


@pytest.mark.parametrize("line_break", BREAKS)
@pytest.mark.parametrize("name", SECRETS)
def test_a_token_that_is_wrapped_goes_whole(name: str, line_break: str) -> None:
    secret = draw_secret(name)
    # Within its random part, so that what follows is no word.
    middle = len(secret) - 9
    wrapped = secret[:middle] + line_break + secret[middle:]
    redacted = redact(f"Output:\n{wrapped}\nDone in 3 s").text
    assert re.fullmatch(r"Output:\n\[redacted:\w+\]\nDone in 3 s", redacted), redacted


@pytest.mark.parametrize("text", ORDINARY)
def test_what_only_looks_like_one_stays(text: str) -> None:
    assert redact(text).text == text
    wrapped = f"see\n{text}\nand then"
    assert redact(wrapped).text == wrapped


@pytest.mark.parametrize("name", ["github-personal", "openai-project", "jwt"])
@pytest.mark.parametrize("after", ["Then we go on", "- next item", "2026-11-28 12:00 log", "ואז"])
def test_the_next_line_stays(name: str, after: str) -> None:
    redacted = redact(f"{draw_secret(name)}\n{after}").text
    assert re.fullmatch(r"\[redacted:\w+\]\n" + re.escape(after), redacted), redacted


def test_keys_on_lines_of_their_own_are_two() -> None:
    text = "\n".join(
        draw_secret(name) for name in ("github-personal", "openai-project", "aws-access-key")
    )
    assert redact(text).text == "\n".join(["[redacted:api_key]"] * 3)
