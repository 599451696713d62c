"""The table of suites: the files each reads, how it runs, and how it tells what it found."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from rich.table import Table

from jobs.build.silence import EVERYDAY
from jobs.suites import (
    beam,
    datagov_report,
    datagov_set,
    documents,
    facts,
    facts_report,
    facts_set,
    heq,
    locomo,
    mixed,
    outcomes_report,
    parashoot,
    precision_report,
    report,
    scenarios,
    silence_report,
)
from jobs.suites.datagov import DatagovSuite
from jobs.suites.datagov_set import SCHEMAS, SNAPSHOT, load_datagov
from jobs.suites.outcomes import OutcomesSuite, load_outcomes
from jobs.suites.precision import PrecisionSuite
from jobs.suites.precision_set import BELIEFS, CASES, load_precision
from jobs.suites.rows import Row
from jobs.suites.runner import Answered, RunOptions, SuiteRun, ask_suite, store_suite
from jobs.suites.searched import Searched
from jobs.suites.silence import SilenceSuite, load_silence
from jobs.suites.suite import Suite
from rayapp.client import MemoryClient
from rayapp.client.progress import Progress


class Finished(Protocol):
    """What every run has: how many of its memories or questions failed, and its searches."""

    @property
    def failures(self) -> int: ...

    @property
    def searched(self) -> Searched: ...


LoadedT = TypeVar("LoadedT")
LoadedT_contra = TypeVar("LoadedT_contra", contravariant=True)
RunT = TypeVar("RunT", bound=Finished)
RunT_contra = TypeVar("RunT_contra", bound=Finished, contravariant=True)
MadeT = TypeVar("MadeT", bound=Finished, covariant=True)


class Telling(Protocol[RunT_contra]):
    """How a run is told; a module of functions. From what single questions got follow headlines,
    pictures, ablations and the gate."""

    def rows(self, run: RunT_contra) -> list[Row]: ...
    def report(self, run: RunT_contra) -> dict[str, Any]: ...
    def tables(self, run: RunT_contra) -> list[Table]: ...
    def line(self, run: RunT_contra) -> str: ...
    def markdown(self, run: RunT_contra) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Where a suite runs: the service, and how much of the set."""

    client: MemoryClient
    progress: Progress
    limit_questions: int | None = None


# One run per options, in their order; their recipes differ and nothing else.
Runner = Callable[[Setting, Sequence[RunOptions]], Awaitable[list[RunT]]]


class OwnSuite(Protocol[MadeT]):
    """A suite that is more than stored documents and questions: it runs itself."""

    async def run(self) -> MadeT: ...


class MakeSuite(Protocol[LoadedT_contra, MadeT]):
    """The class of such a suite, which is made of its loaded set."""

    def __call__(
        self,
        client: MemoryClient,
        loaded: LoadedT_contra,
        options: RunOptions,
        progress: Progress,
        *,
        limit_questions: int | None = None,
    ) -> OwnSuite[MadeT]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteKind(Generic[RunT]):
    """One row of the table.

    Attributes:
        files: what the set is called, and the files below the data folder that are it.
        load: reads and checks the set below the data folder; what it returns runs it.
        told: the module that tells of a run.
        answered: the searches whose time counts.
        ours: question files of the project that are asked as well.
    """

    files: Mapping[str, tuple[Path, ...]]
    load: Callable[[Path], Runner[RunT]]
    told: Telling[RunT]
    answered: Callable[[RunT], Sequence[Answered]]
    ours: tuple[Path, ...] = ()


def own(
    load: Callable[[Path], LoadedT], make: MakeSuite[LoadedT, RunT]
) -> Callable[[Path], Runner[RunT]]:
    """Runs the suite from its beginning for each of the options."""

    def read(data: Path) -> Runner[RunT]:
        loaded = load(data)

        async def run(setting: Setting, variants: Sequence[RunOptions]) -> list[RunT]:
            runs = []
            for options in variants:
                suite = make(
                    setting.client,
                    loaded,
                    options,
                    setting.progress,
                    limit_questions=setting.limit_questions,
                )
                runs.append(await suite.run())
            return runs

        return run

    return read


def stored(load: Callable[[Path], Suite]) -> Callable[[Path], Runner[SuiteRun]]:
    """Stores once and asks with each of the options: what differs is the recipe alone."""

    def read(data: Path) -> Runner[SuiteRun]:
        loaded = load(data)

        async def run(setting: Setting, variants: Sequence[RunOptions]) -> list[SuiteRun]:
            suite = loaded.sampled(setting.limit_questions)
            client, progress = setting.client, setting.progress
            kept = await store_suite(client, suite, variants[0].run_id, progress)
            return [await ask_suite(client, kept, options, progress) for options in variants]

        return run

    return read


def _asked(
    files: Mapping[str, Path], load: Callable[[Path], Runner[SuiteRun]]
) -> SuiteKind[SuiteRun]:
    """Questions with their evidence, judged by ranks."""
    return SuiteKind(
        files={name: (file,) for name, file in files.items()},
        load=load,
        told=report,
        answered=lambda run: run.answered,
    )


KINDS: Mapping[str, SuiteKind[Any]] = {
    # First, because it refuses a service without the catalogue before anything is stored.
    "datagov": SuiteKind(
        files={datagov_set.CATALOGUE: (SCHEMAS,), datagov_set.DESCRIBING: (SNAPSHOT,)},
        load=own(load_datagov, DatagovSuite),
        told=datagov_report,
        answered=lambda run: [one for part in run.parts for one in part.answered],
        ours=(datagov_set.QUESTIONS,),
    ),
    "locomo": _asked({locomo.NAME: locomo.FILE}, stored(locomo.load_locomo)),
    "heq": _asked({heq.NAME: heq.FILE}, stored(heq.load_heq)),
    "parashoot": _asked({parashoot.NAME: parashoot.FILE}, stored(parashoot.load_parashoot)),
    "precision": SuiteKind(
        files={"PrecisionMemBench": (BELIEFS, CASES)},
        load=own(load_precision, PrecisionSuite),
        told=precision_report,
        answered=lambda run: [],
    ),
    "outcomes": SuiteKind(
        files={scenarios.NAME: (scenarios.ADVERSARIAL,), locomo.NAME: (locomo.FILE,)},
        load=own(load_outcomes, OutcomesSuite),
        told=outcomes_report,
        answered=lambda run: [one for part in run.locomo for one in part.answered],
        ours=(scenarios.CONTRADICTIONS,),
    ),
    # After those whose committed results were found in an index without its books.
    documents.NAME: _asked(
        {heq.NAME: heq.FILE, parashoot.NAME: parashoot.FILE},
        own(documents.load_documents, documents.DocumentsSuite),
    ),
    # Last, so that the index of those before holds what it held when their results were committed.
    "beam": _asked({beam.NAME: beam.FILE}, stored(beam.load_beam)),
    "beam-exchanges": _asked({beam.NAME: beam.FILE}, stored(beam.load_beam_exchanges)),
    "mixed": _asked(
        {
            locomo.NAME: locomo.FILE,
            beam.NAME: beam.FILE,
            heq.NAME: heq.FILE,
            scenarios.NAME: scenarios.ADVERSARIAL,
        },
        stored(mixed.load_mixed),
    ),
    "silence": SuiteKind(
        files={
            locomo.NAME: (locomo.FILE,),
            beam.NAME: (beam.FILE,),
            heq.NAME: (heq.FILE,),
            parashoot.NAME: (parashoot.FILE,),
        },
        load=own(load_silence, SilenceSuite),
        told=silence_report,
        answered=lambda run: [],
        ours=(EVERYDAY,),
    ),
    facts.NAME: SuiteKind(
        files={},
        load=own(facts.load_facts, facts.FactsSuite),
        told=facts_report,
        answered=lambda run: [],
        ours=(facts_set.WORDS,),
    ),
}
