"""Takes encoded files out of a user's texts, by ordinary edits that keep the old version."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from rayapp.admin.ports import SanitizeReport
from rayapp.admin.rules import blobs, without_blobs
from rayapp.core.errors import Conflict, DuplicateMemory, InvalidInput, NotFound
from rayapp.core.runtime import Runtime
from rayapp.memory.item import MemoryItem
from rayapp.memory.ports import MemoryStore
from rayapp.memory.requests import ItemQuery, MemoryEdit
from rayapp.memory.scope import ItemFilter, WriteScope
from rayapp.memory.service import MemoriesService
from rayapp.memory.tiers import CORE_TIERS, Tier

# Memories of one page: with texts of 100,000 characters a page is still a few megabytes.
PAGE = 100
MAX_SAMPLES = 10
PREVIEW_CHARS = 80
REASON = "encoded file removed"


@dataclass(eq=False)
class Sanitizing:
    """A text that is nothing but a file is archived: there is nothing left to remember."""

    memories: MemoriesService
    items: MemoryStore
    _: KW_ONLY
    runtime: Runtime

    async def run(
        self, scope: WriteScope, tier: Tier | None, *, dry_run: bool, cursor: str | None
    ) -> SanitizeReport:
        """Pages until the time of a request is up; the report says where the next call goes on."""
        clock = self.runtime.clock
        started = clock.monotonic()
        report = SanitizeReport(dry_run=dry_run)
        tiers = CORE_TIERS if tier is None else (tier,)
        where = ItemFilter(tiers=tiers, include_superseded=True)
        while True:
            # By birth: an edit does not move an item to another page.
            page = await self.items.page(scope.own, where, ItemQuery(limit=PAGE, cursor=cursor))
            for item in page.items:
                await self._look_at(scope, item, report)
            cursor = page.next_cursor
            if cursor is None or clock.monotonic() - started >= self.runtime.budget_s:
                break
        report.duration_ms = (clock.monotonic() - started) * 1000
        report.next_cursor = cursor
        return report

    async def _look_at(self, scope: WriteScope, item: MemoryItem, report: SanitizeReport) -> None:
        report.scanned += 1
        clean = _clean(item.text)
        summary = None if item.summary is None else _clean(item.summary)
        if clean == item.text and summary == item.summary:
            return
        report.corrupted += 1
        if len(report.samples) < MAX_SAMPLES:
            report.samples.append(_sample(item, clean))
        if report.dry_run:
            return
        try:
            await self._change(scope, item, clean, summary)
        except NotFound:
            return
        except (Conflict, InvalidInput):
            report.failed += 1
        else:
            report.sanitized += 1

    async def _change(
        self, scope: WriteScope, item: MemoryItem, clean: str, summary: str | None
    ) -> None:
        edit = MemoryEdit(text=clean, summary=summary, reason=REASON, expected_version=item.version)
        if clean:
            try:
                await self.memories.edit(scope, item.memory_id, edit)
                return
            except DuplicateMemory:
                pass  # without the file it says what another one says: that one is enough
        await self.memories.archive(
            scope, item.memory_id, reason=REASON, expected_version=item.version
        )


def _clean(text: str) -> str:
    found = blobs(text)
    return without_blobs(text, found) if found else text


def _sample(item: MemoryItem, clean: str) -> dict[str, Any]:
    return {
        "memory_id": item.memory_id,
        "tier": item.tier.value,
        "chars": len(item.text),
        "chars_after": len(clean),
        "preview": clean[:PREVIEW_CHARS],
    }
