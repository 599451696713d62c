"""The table of suites: the files each reads, how it runs, and how it tells what it found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from rich.table import Table

from jobs.suites import heq, locomo, parashoot, scenarios
from jobs.suites.datagov import DatagovSuite
from jobs.suites.datagov_report import (
    datagov_line,
    datagov_markdown,
    datagov_report,
    datagov_rows,
    datagov_tables,
)
from jobs.suites.datagov_set import SCHEMAS, SNAPSHOT
from jobs.suites.outcomes import OutcomesRun, OutcomesSuite
from jobs.suites.outcomes_report import (
    outcomes_line,
    outcomes_markdown,
    outcomes_report,
    outcomes_rows,
    outcomes_tables,
)
from jobs.suites.precision import PrecisionSuite
from jobs.suites.precision_report import (
    precision_line,
    precision_markdown,
    precision_report,
    precision_rows,
    precision_tables,
)
from jobs.suites.precision_set import BELIEFS, CASES
from jobs.suites.report import counts_line, markdown, suite_report, tables
from jobs.suites.rows import Row, suite_rows
from jobs.suites.runner import Answered, RunOptions, SuiteRun, ask_suite, store_suite
from jobs.suites.suite import Suite
from rayapp.client import MemoryClient
from rayapp.client.progress import Progress


class Finished(Protocol):
    """What every run has: how many of its memories or questions failed."""

    @property
    def failures(self) -> int: ...


RunT = TypeVar("RunT", bound=Finished)
MadeT = TypeVar("MadeT", bound=Finished, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Where a suite runs: the service, the folder of the sets, and how much of them."""

    client: MemoryClient
    data: Path
    progress: Progress
    limit_questions: int | None = None


class OwnSuite(Protocol[MadeT]):
    """A suite that is more than stored documents and questions: it runs itself."""

    def __init__(
        self,
        client: MemoryClient,
        data: Path,
        options: RunOptions,
        progress: Progress,
        *,
        limit_questions: int | None = None,
    ) -> None: ...

    async def run(self) -> MadeT: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteKind(Generic[RunT]):
    """One row of the table.

    Attributes:
        files: what the set is called, and the files below the data folder that are it.
        run: one run per options, in their order; their recipes differ and nothing else.
        rows: what single questions got; headlines, pictures, ablations and the gate follow.
        answered: the searches whose time counts.
    """

    files: Mapping[str, tuple[Path, ...]]
    run: Callable[[Setting, Sequence[RunOptions]], Awaitable[list[RunT]]]
    rows: Callable[[RunT], list[Row]]
    report: Callable[[RunT], dict[str, Any]]
    tables: Callable[[RunT], list[Table]]
    line: Callable[[RunT], str]
    markdown: Callable[[RunT], str]
    answered: Callable[[RunT], Sequence[Answered]]


def own(
    suite: type[OwnSuite[RunT]],
) -> Callable[[Setting, Sequence[RunOptions]], Awaitable[list[RunT]]]:
    """Runs the suite from its beginning for each of the options."""

    async def run(setting: Setting, variants: Sequence[RunOptions]) -> list[RunT]:
        runs = []
        for options in variants:
            made = suite(
                setting.client,
                setting.data,
                options,
                setting.progress,
                limit_questions=setting.limit_questions,
            )
            runs.append(await made.run())
        return runs

    return run


def stored(
    load: Callable[[Path], Suite],
) -> Callable[[Setting, Sequence[RunOptions]], Awaitable[list[SuiteRun]]]:
    """Stores once and asks with each of the options: what differs is the recipe alone."""

    async def run(setting: Setting, variants: Sequence[RunOptions]) -> list[SuiteRun]:
        suite = load(setting.data).sampled(setting.limit_questions)
        kept = await store_suite(setting.client, suite, variants[0].run_id, setting.progress)
        return [
            await ask_suite(setting.client, kept, options, setting.progress) for options in variants
        ]

    return run


def _documents(name: str, file: Path, load: Callable[[Path], Suite]) -> SuiteKind[SuiteRun]:
    return SuiteKind(
        files={name: (file,)},
        run=stored(load),
        rows=suite_rows,
        report=suite_report,
        tables=tables,
        line=counts_line,
        markdown=markdown,
        answered=lambda run: run.answered,
    )


def _outcome_searches(run: OutcomesRun) -> list[Answered]:
    return [one for part in (run.before, run.after) if part is not None for one in part.answered]


KINDS: Mapping[str, SuiteKind[Any]] = {
    # First, because it refuses a service without the catalogue before anything is stored.
    "datagov": SuiteKind(
        files={
            "The schema catalogue of data.gov.il": (SCHEMAS,),
            "The snapshot of data.gov.il": (SNAPSHOT,),
        },
        run=own(DatagovSuite),
        rows=datagov_rows,
        report=datagov_report,
        tables=datagov_tables,
        line=datagov_line,
        markdown=datagov_markdown,
        answered=lambda run: [one for part in run.parts for one in part.answered],
    ),
    "locomo": _documents("LoCoMo", locomo.FILE, locomo.load_locomo),
    "heq": _documents("HeQ", heq.FILE, heq.load_heq),
    "parashoot": _documents("ParaShoot", parashoot.FILE, parashoot.load_parashoot),
    "precision": SuiteKind(
        files={"PrecisionMemBench": (BELIEFS, CASES)},
        run=own(PrecisionSuite),
        rows=precision_rows,
        report=precision_report,
        tables=precision_tables,
        line=precision_line,
        markdown=precision_markdown,
        answered=lambda run: [],
    ),
    "outcomes": SuiteKind(
        files={"The adversarial set": (scenarios.ADVERSARIAL,), "LoCoMo": (locomo.FILE,)},
        run=own(OutcomesSuite),
        rows=outcomes_rows,
        report=outcomes_report,
        tables=outcomes_tables,
        line=outcomes_line,
        markdown=outcomes_markdown,
        answered=_outcome_searches,
    ),
}
