"""What the HTTP layer asks of the services about personalities and the data as a whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rayapp.domain.data.records import (
    Cleanup,
    Cleared,
    ClearTarget,
    Compaction,
    HiddenItem,
    Migration,
    ResetPreview,
    ResetReport,
    SanitizeReport,
    Sizes,
    UserCounts,
    Verification,
)
from rayapp.domain.memory import MemoryItem
from rayapp.domain.personality.prompt import PromptLang
from rayapp.domain.personality.records import Checked, Template
from rayapp.domain.scope import ReadScope, WriteScope
from rayapp.domain.tiers import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Personality:
    """A template that can be used, and what is in it."""

    template: Template
    checked: Checked


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedPersonality:
    """`overwritten`: a template of the same name was there before."""

    personality: Personality
    overwritten: bool
    activated: bool


class Personalities(Protocol):
    """Raises InvalidInput, code `bad_template`; NotFound, Conflict, StoreDown."""

    async def current(self, scope: ReadScope) -> Personality:
        """The one in use, `default` for a user who never chose."""
        ...

    async def listed(self, scope: ReadScope) -> tuple[list[Template], str]:
        """Presets, then the user's own; and the id of the one in use."""
        ...

    async def template(self, scope: ReadScope, template_id: str) -> Template: ...
    async def save(
        self,
        scope: WriteScope,
        content: str,
        *,
        name: str | None,
        description: str | None,
        activate: bool,
    ) -> SavedPersonality:
        """Keep a template under its name; a text equal to a preset's is that preset."""
        ...

    async def activate(self, scope: WriteScope, template_id: str) -> Personality: ...
    async def delete(self, scope: WriteScope, template_id: str) -> None:
        """Conflict for a preset and for the one in use."""
        ...

    async def prompt(self, scope: ReadScope, lang: PromptLang) -> tuple[Personality, str]:
        """The one in use, and the section of a system prompt that it becomes."""
        ...


class UserData(Protocol):
    """A user's data as a whole. Raises NotFound, Conflict, StoreDown."""

    async def hide(self, scope: WriteScope, memory_id: str, reason: str) -> HiddenItem:
        """Archive it as hidden; harmless to repeat. Conflict when it is archived for another
        reason."""
        ...

    async def unhide(self, scope: WriteScope, memory_id: str) -> MemoryItem:
        """Restore a hidden memory; NotFound, code `not_hidden`, for any other."""
        ...

    async def hidden(self, scope: ReadScope, limit: int) -> list[HiddenItem]:
        """Newest first."""
        ...

    async def counts(self, scope: ReadScope) -> UserCounts: ...
    async def clear(self, scope: WriteScope, target: ClearTarget) -> Cleared:
        """Delete for good, within the time of a request; `left` says what it did not reach."""
        ...


class Upkeep(Protocol):
    """Work of an administrator on the store. Raises InvalidInput, Conflict, StoreDown."""

    async def sizes(self) -> Sizes: ...
    async def compact(self) -> tuple[list[Compaction], bool]:
        """What each collection gave back, and whether there was time for all of them."""
        ...

    async def cleanup(self, *, dry_run: bool, quiet_days: int) -> Cleanup:
        """Users that were browser sessions: nobody's key is bound to them, and nothing of theirs
        changed for `quiet_days`."""
        ...

    async def migrate(self, scope: WriteScope, *, dry_run: bool) -> Migration:
        """Move the old memory bank of the user in; what is there already stays as it is."""
        ...

    async def verify_migration(self, scope: ReadScope) -> Verification: ...
    async def sanitize(
        self, scope: WriteScope, tier: Tier | None, *, dry_run: bool, cursor: str | None
    ) -> SanitizeReport:
        """Take encoded files out of the user's texts."""
        ...

    async def reset_preview(self) -> ResetPreview: ...
    async def reset(self) -> ResetReport:
        """Remove the data of all users. Conflict, code `busy`, while a job goes on."""
        ...
