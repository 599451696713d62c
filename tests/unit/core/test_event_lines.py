"""Lines of server-sent events, however the bytes are cut."""

from collections.abc import AsyncIterator

import pytest

from rayapp.core.event_lines import event_lines, sync_event_lines

LINES = ['data: {"a":"שלום\u2028b\u0085c\u2029"}', "", "data: x", "", "the end"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
async def test_a_separator_within_json_ends_no_line(size: int, end: str) -> None:
    raw = end.join(LINES).encode()
    parts = [raw[at : at + size] for at in range(0, len(raw), size)]

    async def coming() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    assert list(sync_event_lines(iter(parts))) == LINES
    assert [line async for line in event_lines(coming())] == LINES


def test_a_stream_that_ends_with_a_line_has_no_other() -> None:
    assert list(sync_event_lines(iter([b"a\n", b"", b"b\n"]))) == ["a", "b"]
