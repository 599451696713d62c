"""Cursors come from outside: whatever they hold is refused with a sentence, never a crash."""

import base64

import pytest

from rayapp.core.errors import InvalidInput
from rayapp.memory.requests import decode_cursor


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "[",
        "[" * 1500,
        '["recent",0,1' + "0" * 400 + ',0,"x"]',
        '["recent",1e400,0,0,"x"]',
        '["score",0.5,0,"x"]',
        '["recent",true,0,0,"x"]',
        '["recent",0,"1",0,"x"]',
        '["recent",0,0,0,7]',
        "null",
    ],
    ids=lambda raw: raw[:24],
)
def test_a_cursor_that_cannot_be_read_is_invalid_input(raw: str) -> None:
    with pytest.raises(InvalidInput, match="cursor"):
        decode_cursor(base64.urlsafe_b64encode(raw.encode()).decode(), "recent")
