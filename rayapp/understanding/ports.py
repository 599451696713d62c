"""The seams of understanding: what a text is when it is understood, and who derives from it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SourceText:
    """One text that passed the gate, as it is understood."""

    user_id: str  # owner
    source_id: str  # memory_id
    text: str
    said_at: datetime
    conversation_id: str | None
    subject_id: str | None
    perspective_owner_id: str | None
    topics: tuple[str, ...]


class Understander(Protocol):
    async def understand(self, source: SourceText) -> None:
        """Derive from it; what the same source gave before is replaced by difference."""

    async def take_back(self, user_id: str, source_id: str) -> None:
        """What only this source gave goes."""
