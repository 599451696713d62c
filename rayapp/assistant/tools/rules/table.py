"""What a program shows of a tool while it runs, and how long it waits for it. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from rayapp.assistant.tools.rules.definitions import own_name

Latency = Literal["fast", "medium", "slow"]
# How long a program waits for a tool of this kind, seconds. Our choice: a person waits for a search
# as for a page, and for research as for a download.
WAIT_S: Mapping[Latency, float] = {"fast": 5.0, "medium": 15.0, "slow": 60.0}
ANY_OTHER = "*"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """The same in both languages."""

    en: str
    he: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRow:
    """One row of the table.

    Attributes:
        priority: 0 to 100, which of several to try first.
        tokens: of its answer; more is cut.
        progress, failure: what a person reads while it runs, and when it did not answer.
    """

    category: str
    priority: int
    latency: Latency
    tokens: int
    label: Wording
    progress: Wording
    failure: Wording

    @property
    def wait_s(self) -> float:
        """How long a program waits for its answer, seconds."""
        return WAIT_S[self.latency]


def first_to_try(tools: Iterable[str], table: Mapping[str, ToolRow]) -> tuple[str, ...]:
    """The same tools in the order in which they should be tried; equals as they came."""
    return tuple(sorted(tools, key=lambda tool: -row_of(tool, table).priority))


def row_of(tool: str, table: Mapping[str, ToolRow]) -> ToolRow:
    """Of a tool by its name, with or without the server before it."""
    return table.get(own_name(tool).lower()) or table[ANY_OTHER]
