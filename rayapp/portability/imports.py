"""Imports: an archive is checked as a whole, then written; a repeat goes on where one ended."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from itertools import islice

import orjson

from rayapp.core.cancelling import ahead
from rayapp.core.runtime import Runtime
from rayapp.memory.rules.creation import TextLimits
from rayapp.memory.scope import WriteScope
from rayapp.portability.archive import Archive
from rayapp.portability.exports import ExportService
from rayapp.portability.ports import (
    ImportReport,
    ImportRequest,
    ImportState,
    PutCounts,
    Putting,
    Restored,
    RowsWanted,
    UserArchive,
)
from rayapp.portability.rules.archive import BadArchive, Row, RowCheck, UserMapping, bad_row
from rayapp.portability.rules.collections import BY_NAME, EXPORTED, ITEMS, Collection
from rayapp.portability.rules.kinds import Kind, Merge

ReadRow = Callable[[Collection, bytes], Row]
# Rows of one write: a transaction of 500 memories takes some tenths of a second.
BATCH = 500
# Share of a call's time that is left for writing at least.
LEAST_SHARE = 0.25
NODES, STATEMENTS, ENDS = "kg_entities", "kg_statements", ("subject_id", "object_id")
# Beside their rows nothing is in the way of an exact import.
LIVING = frozenset(one.name for one in EXPORTED if one.kind is not Kind.TOMBSTONES)
# Kinds whose rows belong to memories of every tier.
OF_MEMORIES = frozenset({Kind.VERSIONS, Kind.OUTCOMES, Kind.GRAPHS, Kind.TOMBSTONES})
# Rows after which the state is kept: what is written twice after a death, and harmless.
STATE_EVERY = 5_000


class ImportService:
    """Raises BadArchive before anything is written; StoreDown."""

    def __init__(
        self, archive: UserArchive, exports: ExportService, *, limits: TextLimits, runtime: Runtime
    ) -> None:
        self._archive = archive
        self._exports = exports
        self._limits = limits
        self._clock = runtime.clock
        self._budget_s = runtime.stream_budget_s

    async def restore(self, scope: WriteScope, found: Archive, request: ImportRequest) -> Restored:
        """An import after an export of all there is."""
        until = self._until()
        mapping = _mapping(found, scope, request)
        await self._check(found, self._row_check(found), mapping)
        before = await self._exports.safety(scope.own)
        return Restored(before=before, report=await self._run(scope, found, request, until))

    async def run(self, scope: WriteScope, found: Archive, request: ImportRequest) -> ImportReport:
        """Check all, then write; the same archive again changes nothing."""
        return await self._run(scope, found, request, self._until())

    def _until(self) -> float:
        """When a call is to be answered, by the monotonic clock."""
        return self._clock.monotonic() + self._budget_s

    async def _run(
        self, scope: WriteScope, found: Archive, request: ImportRequest, until: float
    ) -> ImportReport:
        mapping, check = _mapping(found, scope, request), self._row_check(found)
        await self._check(found, check, mapping)
        # The checks may have taken all of it: a call that writes nothing would go on for ever.
        until = max(until, self._clock.monotonic() + LEAST_SHARE * self._budget_s)
        state, resumed = await self._state(scope, found, (check, mapping), request)
        onto_nothing = not state.erased
        cleared, ended = await self._cleared(scope, found, state, request, until)
        report = ImportReport(counts={}, cleared=cleared, resumed=resumed, complete=ended)
        if not ended:
            return report
        state = replace(state, erased=True)
        how = Putting(
            at=self._clock.now(),
            newer=state.merge is Merge.MERGE,
            derive=not state.exact,
            dry_run=request.dry_run,
            onto_nothing=onto_nothing,
        )
        report = replace(report, derived=how.derive)
        return await self._write(scope, found, (check, mapping), state, how, report, until)

    # --- steps

    def _row_check(self, found: Archive) -> RowCheck:
        return RowCheck(found.manifest.owner_id, self._limits)

    async def _check(self, found: Archive, check: RowCheck, mapping: UserMapping | None) -> None:
        """Read every row once; BadArchive names the first that cannot be taken."""
        for collection in found.collections():
            async for _ in _rows(found, collection, check.row, mapping):
                pass

    async def _state(
        self,
        scope: WriteScope,
        found: Archive,
        reading: tuple[RowCheck, UserMapping | None],
        request: ImportRequest,
    ) -> tuple[ImportState, bool]:
        """Where to go on; whether an earlier import of this archive was cut short."""
        # Only of the last one: what it wrote another one may have replaced since.
        before = await self._archive.last_state(scope.own)
        same = before and (before.archive, before.merge) == (found.fingerprint, request.merge)
        if before and same and not before.done:
            written = before.lines.get(ITEMS, 0)
            gone = written and await self._is_gone(scope, found, reading, written)
            return replace(before, lines={}) if gone else before, True
        sizes = await self._archive.sizes(scope.own, RowsWanted())
        alone = not any(sizes[one.name].rows for one in found.collections() if one.name in LIVING)
        exact = found.manifest.exact and (alone or request.merge is Merge.REPLACE)
        return (
            ImportState(
                archive=found.fingerprint,
                merge=request.merge,
                exact=exact,
                erased=request.merge is not Merge.REPLACE,
                at=self._clock.now(),
            ),
            False,
        )

    async def _is_gone(
        self,
        scope: WriteScope,
        found: Archive,
        reading: tuple[RowCheck, UserMapping | None],
        written: int,
    ) -> bool:
        """Whether nothing is left of the first `written` memories: somebody cleared half an import
        to begin anew. Who deleted some of them does not want those back."""
        check, mapping = reading
        memories, counting = BY_NAME[ITEMS], Putting(at=self._clock.now(), dry_run=True)
        async with aclosing(_rows(found, memories, check.known, mapping)) as pages:
            async for rows in pages:
                there = rows[:written]
                counts = await self._archive.put(scope, memories, there, counting)
                if counts.added < len(there):
                    return False
                written -= len(there)
                if not written:
                    break
        return True

    async def _cleared(
        self,
        scope: WriteScope,
        found: Archive,
        state: ImportState,
        request: ImportRequest,
        until: float,
    ) -> tuple[dict[str, int], bool]:
        """What is replaced goes first, what refers to memories before them. Raises BadArchive."""
        if state.erased:
            return {}, True
        wanted, first = _held_by(found), _first_to_go(found)
        if request.dry_run:
            left = await self._archive.left(scope.own)
            if not wanted.whole:
                left[ITEMS] = (await self._archive.sizes(scope.own, wanted))[ITEMS].rows
            return {one.name: left[one.name] for one in first}, True
        await self._archive.keep_state(scope, state)
        cleared: dict[str, int] = {}
        for collection in reversed(first):
            while gone := await self._archive.clear(scope, collection, BATCH, wanted):
                cleared[collection.name] = cleared.get(collection.name, 0) + gone
                if self._clock.monotonic() >= until:
                    return cleared, False
        return cleared, True

    async def _write(
        self,
        scope: WriteScope,
        found: Archive,
        reading: tuple[RowCheck, UserMapping | None],
        state: ImportState,
        how: Putting,
        report: ImportReport,
        until: float,
    ) -> ImportReport:
        check, mapping = reading
        lines, counts = dict(state.lines), dict(report.counts)
        left_out = report.left_out | _left_out(found, how, mapping)
        kept_at = 0
        gone_first = _first_to_go(found) if how.onto_nothing else ()
        if not how.dry_run:
            await self._archive.keep_state(scope, state)
        for collection in found.collections():
            if collection.name in left_out and not collection.by_hand:
                continue
            by_hand = await _by_hand(found, collection, left_out)
            counts.setdefault(collection.name, PutCounts())
            skipped = 0 if how.dry_run else lines.get(collection.name, 0)
            # Rows are read while those before them are written.
            all_rows = _rows(found, collection, check.known, mapping, skipped)
            async with aclosing(ahead(all_rows)) as pages:
                async for read in pages:
                    rows = list(filter(by_hand, read))
                    if how.dry_run and collection in gone_first:
                        counts[collection.name] += PutCounts(added=len(rows))
                    else:
                        put = await self._archive.put(scope, collection, rows, how)
                        counts[collection.name] += put
                    lines[collection.name] = lines.get(collection.name, 0) + len(read)
                    if how.dry_run:
                        continue
                    late = self._clock.monotonic() >= until
                    if late or sum(lines.values()) - kept_at >= STATE_EVERY:
                        kept_at = sum(lines.values())
                        await self._archive.keep_state(scope, replace(state, lines=lines))
                    if late:
                        return replace(report, counts=counts, left_out=left_out, complete=False)
        if not how.dry_run:
            await self._archive.keep_state(scope, replace(state, lines=lines, done=True))
        return replace(report, counts=counts, left_out=left_out)


async def _rows(
    found: Archive,
    collection: Collection,
    read: ReadRow,
    mapping: UserMapping | None,
    skipped: int = 0,
) -> AsyncGenerator[list[Row]]:
    """Some hundred rows at a time. Reading them is work: it must not hold up the loop. Raises
    BadArchive."""
    lines = enumerate(found.checked_lines(collection.name), 1)
    for _ in range(skipped // BATCH):
        await asyncio.to_thread(lambda: list(islice(lines, BATCH)))
    while rows := await asyncio.to_thread(_read, lines, collection, read, mapping):
        yield rows


def _read(
    lines: Iterator[tuple[int, bytes]],
    collection: Collection,
    read: ReadRow,
    mapping: UserMapping | None,
) -> list[Row]:
    rows = []
    for number, line in islice(lines, BATCH):
        try:
            row = read(collection, line)
        except ValueError as error:
            raise bad_row(collection.name, number, error) from None
        rows.append(row if mapping is None else mapping.row(row))
    return rows


async def _by_hand(
    found: Archive, collection: Collection, left_out: Mapping[str, str]
) -> Callable[[Row], bool] | None:
    """Which rows are written of a part that is left out: what a person made or said, and the nodes
    that they said it of. None: all of them, it is not left out."""
    if collection.name not in left_out:
        return None
    needs = collection.name == NODES
    ends = await asyncio.to_thread(_ends_by_hand, found) if needs else frozenset[str]()
    return lambda row: bool(row.get("verified_by")) or row.get("entity_id") in ends


def _ends_by_hand(found: Archive) -> frozenset[str]:
    if STATEMENTS not in {one.name for one in found.collections()}:
        return frozenset()
    rows = map(orjson.loads, found.checked_lines(STATEMENTS))
    said = [row for row in rows if row.get("verified_by")]
    return frozenset(row[end] for row in said for end in ENDS if row.get(end))


def _held_by(found: Archive) -> RowsWanted:
    """Which memories an archive that replaces stands for. Raises BadArchive."""
    manifest = found.manifest
    wanted = RowsWanted(tiers=manifest.tiers, archived=manifest.archived)
    if manifest.partial and wanted.whole:
        raise BadArchive(
            "The archive holds a part of the memories and does not say which, so that nothing can "
            "be replaced by it; import it with mergeStrategy merge, which removes nothing."
        )
    return wanted


def _first_to_go(found: Archive) -> tuple[Collection, ...]:
    """What is replaced. Rows that belong to memories which a partial archive does not hold stay:
    versions go with their memory, and what is missing is added."""
    every = found.collections()
    if not found.manifest.partial:
        return every
    return tuple(one for one in every if one.kind not in OF_MEMORIES)


def _mapping(found: Archive, scope: WriteScope, request: ImportRequest) -> UserMapping | None:
    """Raises BadArchive: it is another user's, and nobody asked for that."""
    source = found.manifest.owner_id
    if source == scope.user_id:
        return None
    if not request.map_user:
        raise BadArchive(
            "The archive is of another user; send mapUser true to take it as your own.",
            code="other_user_archive",
        )
    return UserMapping(source, scope.user_id)


def _left_out(found: Archive, how: Putting, mapping: UserMapping | None) -> dict[str, str]:
    """Why parts of the archive are not written, by name."""
    why = {one.name: _why_left_out(one, how, mapping) for one in found.collections()}
    return {name: said for name, said in why.items() if said}


def _why_left_out(collection: Collection, how: Putting, mapping: UserMapping | None) -> str:
    """Empty: it is written."""
    if how.derive and collection.kind is Kind.GRAPHS:
        added = "; what was made by hand is added" if collection.by_hand else ""
        return f"learned anew from memories and outcomes{added}"
    if how.derive and collection.kind is Kind.TOMBSTONES:
        return "counts of what this store deleted stay"
    if mapping is not None and not collection.mapped:
        return "its ids belong to the other user"
    return ""
