"""Lines of a stream of server-sent events, out of its bytes as they come.

Not those of httpx, which ends a line as `str.splitlines` does: at U+2028 or U+0085 too, which stand
as they are within the JSON of most writers, so that half an event would be read.
"""

import re
from collections.abc import AsyncIterator, Iterator

_END = re.compile(rb"\r\n|\r|\n")


class EventLines:
    """Gathers parts: `fed` gives the lines that one completes, `rest` what the end completes."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        # The part before ended a line with it; a line feed that follows belongs to it.
        self._returned = False

    def fed(self, part: bytes) -> Iterator[str]:
        if not part:
            return
        first, *more = _END.split(part.removeprefix(b"\n") if self._returned else part)
        self._returned = part.endswith(b"\r")
        self._begun.append(first)
        for one in more:
            yield self._line()
            self._begun.append(one)

    def rest(self) -> Iterator[str]:
        if line := self._line():
            yield line

    def _line(self) -> str:
        whole = b"".join(self._begun)
        self._begun.clear()
        return whole.decode("utf-8", "replace")


async def event_lines(parts: AsyncIterator[bytes]) -> AsyncIterator[str]:
    lines = EventLines()
    async for part in parts:
        for line in lines.fed(part):
            yield line
    for line in lines.rest():
        yield line


def sync_event_lines(parts: Iterator[bytes]) -> Iterator[str]:
    lines = EventLines()
    for part in parts:
        yield from lines.fed(part)
    yield from lines.rest()
