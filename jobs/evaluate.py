"""Retrieval quality through the public HTTP API, beside a plain BM25 floor of the same run.

    python -m jobs.evaluate --suite locomo --suite heq --data DIR --out report.json

Every run stores under user ids of its own and deletes nothing. Exit codes: 0 done, 2 bad
arguments, 3 finished with failures, 4 the service is away.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import orjson
from rich.console import Console
from rich.table import Table

from jobs.suites import SUITES
from jobs.suites.datagov import DatagovRun, DatagovSuite
from jobs.suites.datagov_report import (
    datagov_line,
    datagov_markdown,
    datagov_report,
    datagov_tables,
)
from jobs.suites.outcomes import OutcomesRun, OutcomesSuite
from jobs.suites.outcomes_report import (
    outcomes_line,
    outcomes_markdown,
    outcomes_report,
    outcomes_tables,
)
from jobs.suites.report import counts_line, markdown, suite_report, tables
from jobs.suites.runner import RunOptions, SuiteRun, run_suite
from rayapp.client import MemoryClient
from rayapp.client.discovery import data_dir_of, read_key, service_url
from rayapp.client.progress import Progress
from rayapp.errors import ConfigError, RayappError

Run = SuiteRun | OutcomesRun | DatagovRun
# Suites that are more than stored documents and questions: they run themselves.
OWN_RUNNERS: Mapping[str, type[OutcomesSuite] | type[DatagovSuite]] = {
    "outcomes": OutcomesSuite,
    "datagov": DatagovSuite,
}
DONE, BAD_ARGUMENTS, WITH_FAILURES, DEPENDENCY_AWAY = 0, 2, 3, 4


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message[:1].upper()}{message[1:]}: see --help.")


def parser() -> argparse.ArgumentParser:
    made = _Parser(prog="python -m jobs.evaluate", description=__doc__)
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    made.add_argument(
        "--suite",
        action="append",
        required=True,
        choices=sorted([*SUITES, *OWN_RUNNERS]),
        help="set to run; repeat it for several",
    )
    made.add_argument("--data", type=Path, required=True, help="folder that holds the sets")
    made.add_argument("--url", help="service; default: the stack of --data-dir")
    made.add_argument("--data-dir", type=Path, help="data directory of the local stack")
    made.add_argument(
        "--api-key-file",
        type=Path,
        help="file that holds the bearer key; it needs the admin scope, because every suite is "
        "stored under a user of its own (X-User-Id)",
    )
    made.add_argument("--recipe", help="retrieval recipe; default: the server's")
    made.add_argument("--limit-questions", type=_positive, help="questions per suite, spread")
    made.add_argument("--concurrency", type=_positive, default=4, help="questions in flight")
    made.add_argument("--out", type=Path, help="JSON report")
    made.add_argument("--markdown", type=Path, help="Markdown report")
    return made


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


async def evaluate(arguments: argparse.Namespace, console: Console) -> int:
    """Run the suites and write the reports; returns the exit code."""
    chosen = list(dict.fromkeys(arguments.suite))
    suites = {
        name: SUITES[name](arguments.data).sampled(arguments.limit_questions)
        for name in chosen
        if name in SUITES
    }
    url = service_url(arguments.url, data_dir_of(arguments.data_dir))
    options = RunOptions(
        run_id=f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}",
        recipe=arguments.recipe,
        concurrency=arguments.concurrency,
    )
    started = time.monotonic()
    runs: list[Run] = []
    async with MemoryClient(url, api_key=read_key(arguments.api_key_file)) as client:
        await _probe(client, options)
        with Progress(console) as progress:
            for name in chosen:
                if name in OWN_RUNNERS:
                    suite = OWN_RUNNERS[name](
                        client,
                        arguments.data,
                        options,
                        progress,
                        limit_questions=arguments.limit_questions,
                    )
                    runs.append(await suite.run())
                else:
                    runs.append(await run_suite(client, suites[name], options, progress))
    report = {
        "run_id": options.run_id,
        "at": datetime.now(UTC).isoformat(),
        "url": url,
        "recipe": options.recipe,
        "elapsed_s": round(time.monotonic() - started, 1),
        "suites": [_report(run) for run in runs],
    }
    _write(arguments, report, runs)
    for run in runs:
        for table in _tables(run):
            console.print(table)
        console.print(_line(run))
    failures = sum(run.failures for run in runs)
    if failures:
        console.print(f"{failures} memories or questions failed: see rejected and errors.")
    return WITH_FAILURES if failures else DONE


async def _probe(client: MemoryClient, options: RunOptions) -> None:
    """An absent service, a refused recipe or key end the run before anything is stored."""
    await client.backlog()
    await client.search(
        "probe", limit=1, recipe=options.recipe, user_id=f"eval-probe-{options.run_id}"
    )


def _report(run: Run) -> dict[str, Any]:
    match run:
        case OutcomesRun():
            return outcomes_report(run)
        case DatagovRun():
            return datagov_report(run)
        case _:
            return suite_report(run)


def _tables(run: Run) -> list[Table]:
    match run:
        case OutcomesRun():
            return outcomes_tables(run)
        case DatagovRun():
            return datagov_tables(run)
        case _:
            return tables(run)


def _line(run: Run) -> str:
    match run:
        case OutcomesRun():
            return outcomes_line(run)
        case DatagovRun():
            return datagov_line(run)
        case _:
            return counts_line(run)


def _markdown(run: Run) -> str:
    match run:
        case OutcomesRun():
            return outcomes_markdown(run)
        case DatagovRun():
            return datagov_markdown(run)
        case _:
            return markdown(run)


def _write(
    arguments: argparse.Namespace,
    report: dict[str, Any],
    runs: Sequence[Run],
) -> None:
    if arguments.out is not None:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_bytes(orjson.dumps(report, option=orjson.OPT_INDENT_2))
    if arguments.markdown is not None:
        head = f"# Retrieval, run {report['run_id']}\n\n"
        arguments.markdown.parent.mkdir(parents=True, exist_ok=True)
        arguments.markdown.write_text(
            head + "\n".join(_markdown(run) for run in runs), encoding="utf-8"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, run, and turn every expected failure into one sentence and its exit code."""
    console = Console(markup=False, emoji=False)
    try:
        return asyncio.run(evaluate(parser().parse_args(argv), console))
    except RayappError as error:
        print(error.message, file=sys.stderr)
        return DEPENDENCY_AWAY if error.retryable else BAD_ARGUMENTS


if __name__ == "__main__":
    sys.exit(main())
