"""The audit log: who changed or deleted what, when and from where; no text (decision 0104)."""

import itertools
import logging
import uuid
from dataclasses import fields
from datetime import timedelta

from rayapp.admin.ports import AuditEntry, AuditQuestion, AuditStore, Deed
from rayapp.core.errors import RayappError
from rayapp.core.runtime import Clock

logger = logging.getLogger(__name__)
# Ids of an entry and characters of each: what callers choose does not make rows grow.
MAX_IDS, MAX_CHARS = 20, 200
# Memories of one request; of more, how many they were is kept beside these.
MAX_MEMORIES = 100


class AuditLog:
    """Adds entries, and shows them page by page. `keep_days`: how long each stays."""

    def __init__(self, store: AuditStore, *, clock: Clock, keep_days: int) -> None:
        self._store, self._clock, self._keep = store, clock, timedelta(days=keep_days)
        self._count = itertools.count()

    async def note(self, deed: Deed) -> None:
        """One request that was let in. What it did is done: where the store is away, the program's
        log has the entry."""
        at = self._clock.now()
        # By time; of one moment and one process in the order in which they came.
        micros, turn = int(at.timestamp() * 1e6), next(self._count)
        done = {field.name: getattr(deed, field.name) for field in fields(deed)}
        done["ids"] = {name: deed.ids[name][:MAX_CHARS] for name in list(deed.ids)[:MAX_IDS]}
        done["memory_ids"] = tuple(one[:MAX_CHARS] for one in deed.memory_ids[:MAX_MEMORIES])
        if len(deed.memory_ids) > MAX_MEMORIES:
            done["ids"]["memories"] = str(len(deed.memory_ids))
        entry = AuditEntry(
            entry_id=f"{micros:014x}{turn:08x}{uuid.uuid4().hex[:8]}",
            at=at,
            expires_at=at + self._keep,
            **done,
        )
        try:
            await self._store.append(entry)
        except RayappError:
            what = {"route": f"{deed.method} {deed.route}", "principal": deed.principal}
            logger.exception(
                "the audit log did not take an entry",
                extra={"fields": what | {"ids": dict(entry.ids)}},
            )

    async def page(self, asked: AuditQuestion) -> list[AuditEntry]:
        """The latest first. Raises StoreDown."""
        return await self._store.page(asked, self._clock.now())
