"""Client calls about the upkeep of the stores; they need a key with the scope `admin`."""

from __future__ import annotations

from typing import Any

from rayapp.client.calls import Calls, Talk, asked, call, given
from rayapp.client.models import Plain

OPS = "/api/memory/ops"
CLEANUP = "/api/memory/cleanup"


class UpkeepCalls(Calls):
    """The calls. Each answers the whole body, as the API documents it."""

    @call
    def data_sizes(self) -> Talk[dict[str, Any]]:
        """Rows and bytes of every collection, and of the index."""
        return (yield from self.reading(Plain, "/api/system/data-sizes")).body

    @call
    def compact(self) -> Talk[dict[str, Any]]:
        """Give the room of removed rows back to the disk."""
        return (yield from self.writing(Plain, "/api/data/compact-database")).body

    @call
    def session_users(self, *, quiet_days: int | None = None) -> Talk[dict[str, Any]]:
        """Users that were made for one session and are quiet since."""
        return (yield from self.reading(Plain, asked(CLEANUP, quiet_days=quiet_days))).body

    @call
    def clean_up(
        self, *, dry_run: bool = True, quiet_days: int | None = None
    ) -> Talk[dict[str, Any]]:
        """Remove them with all that is theirs; `dry_run` only counts."""
        body = given({"dry_run": dry_run, "quiet_days": quiet_days})
        return (yield from self.writing(Plain, CLEANUP, body)).body

    @call
    def migration(self, *, owner: str | None = None) -> Talk[dict[str, Any]]:
        """What of the first client's old collection is still to be moved."""
        return (yield from self.reading(Plain, asked(f"{OPS}/migrate", user_id=owner))).body

    @call
    def migrate(self, *, owner: str | None = None, dry_run: bool = False) -> Talk[dict[str, Any]]:
        """Move it."""
        body = given({"user_id": owner, "dry_run": dry_run})
        return (yield from self.writing(Plain, f"{OPS}/migrate", body)).body

    @call
    def verify_migration(self, *, owner: str | None = None) -> Talk[dict[str, Any]]:
        """Look whether all of it is there."""
        body = given({"user_id": owner})
        return (yield from self.writing(Plain, f"{OPS}/migrate", body, method="PUT")).body

    @call
    def find_blobs(
        self, *, tier: str | None = None, cursor: str | None = None, user_id: str | None = None
    ) -> Talk[dict[str, Any]]:
        """Memories whose text holds encoded files."""
        path = asked(f"{OPS}/sanitize", tier=tier, cursor=cursor)
        return (yield from self.reading(Plain, path, user_id=user_id)).body

    @call
    def remove_blobs(
        self,
        *,
        tier: str | None = None,
        cursor: str | None = None,
        dry_run: bool = True,
        user_id: str | None = None,
    ) -> Talk[dict[str, Any]]:
        """Cut them out; `dry_run` only looks."""
        body = given({"tier": tier, "cursor": cursor, "dry_run": dry_run})
        return (yield from self.writing(Plain, f"{OPS}/sanitize", body, user_id=user_id)).body

    @call
    def reset_preview(self) -> Talk[dict[str, Any]]:
        """What a reset would remove."""
        return (yield from self.reading(Plain, f"{OPS}/reset")).body

    @call
    def reset(self, *, confirm: bool) -> Talk[dict[str, Any]]:
        """Remove all memories of all users for good. Raises InvalidInput without `confirm`."""
        return (yield from self.writing(Plain, f"{OPS}/reset", {"confirm": confirm})).body
