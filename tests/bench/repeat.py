"""`python -m tests.bench.repeat`: the same tests again and again, every second time on busy cores.

A test that passes once says little about a race. Exit code 3 when any run of any test failed.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil
from rich.console import Console
from rich.table import Table

from jobs.ending import BAD_ARGUMENTS, DONE, WITH_FAILURES, command_parser, run_command
from rayapp.local.cli.output import number_table
from tests.bench.arguments import positive

RELIABILITY = "tests/reliability"
# What keeps a core busy until it is ended; it ends by itself when this process is gone.
BURN = """
import os, sys
parent = int(sys.argv[1])
while os.getppid() == parent:
    for n in range(1_000_000):
        n * n
"""
# Exit codes of pytest after which its report holds the tests that ran.
RAN = (0, 1)
# Lines of pytest's output that are shown of a run that failed.
SHOWN = 60


class Case(NamedTuple):
    """One test in one run."""

    name: str
    seconds: float
    failed: bool


@dataclass
class Row:
    """What all runs say about one test."""

    name: str
    seconds: list[float] = field(default_factory=list)
    failures: int = 0

    @property
    def p50(self) -> float:
        return statistics.median(self.seconds)


def cases_of(report: str) -> list[Case]:
    """The tests in a JUnit report; one that was skipped did not run, so it failed."""
    found = []
    for case in ET.fromstring(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        failed = any(case.find(tag) is not None for tag in ("failure", "error", "skipped"))
        found.append(Case(name, float(case.get("time") or 0.0), failed))
    return found


def rows_of(runs: Sequence[Sequence[Case]]) -> list[Row]:
    """One row per test, those that failed most first."""
    rows: dict[str, Row] = {}
    for case in (case for run in runs for case in run):
        row = rows.setdefault(case.name, Row(case.name))
        row.seconds.append(case.seconds)
        row.failures += case.failed
    return sorted(rows.values(), key=lambda row: (-row.failures, row.name))


def table_of(rows: Sequence[Row]) -> Table:
    heads = ("test", "runs", "failures", "p50 s", "max s")
    table = number_table("The same tests again and again", heads)
    table.columns[0].overflow = "fold"
    for row in rows:
        numbers = (len(row.seconds), row.failures, f"{row.p50:.1f}", f"{max(row.seconds):.1f}")
        table.add_row(row.name, *(str(number) for number in numbers))
    return table


@contextmanager
def busy_cores(count: int) -> Iterator[list[int]]:
    """Keep `count` cores busy; the ids of the processes that do, which end with the block."""
    command = [sys.executable, "-c", BURN, str(os.getpid())]
    processes = [subprocess.Popen(command) for _ in range(count)]
    try:
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run_once(tests: Sequence[str], folder: Path, cores: int) -> tuple[list[Case], int, str]:
    """One run in a process of its own: its tests, pytest's exit code, and what it printed."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    with busy_cores(cores):
        done = subprocess.run(
            [*command, f"--junit-xml={report}", *tests],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    cases = cases_of(report.read_text(encoding="utf-8")) if report.is_file() else []
    return cases, done.returncode, done.stdout


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.repeat", __doc__, out=False)
    made.add_argument("tests", nargs="*", default=[RELIABILITY], help="pytest node ids or folders")
    made.add_argument("--runs", type=positive, default=30, help="runs; every second one is loaded")
    made.add_argument(
        "--cores",
        type=positive,
        default=psutil.cpu_count() or 1,
        help="cores kept busy in every second run; default: all",
    )
    return made


def _run(options: argparse.Namespace) -> int:
    console = Console(markup=False, soft_wrap=True)
    runs: list[list[Case]] = []
    failed_runs = 0
    with tempfile.TemporaryDirectory(prefix="rayapp-r-") as folder:
        for number in range(1, options.runs + 1):
            cores = 0 if number % 2 else options.cores
            begun = time.monotonic()
            cases, code, text = run_once(options.tests, Path(folder), cores)
            if code not in RAN or not cases:
                console.print(text)
                console.print("pytest could not run these tests: see its last lines above.")
                return BAD_ARGUMENTS
            runs.append(cases)
            bad = [case.name for case in cases if case.failed]
            failed_runs += bool(bad or code)
            load = f"{cores} busy cores" if cores else "quiet"
            console.print(
                f"run {number}/{options.runs} ({load}): {len(cases) - len(bad)} passed, "
                f"{len(bad)} failed in {time.monotonic() - begun:.0f} s"
            )
            if bad or code:
                console.print("\n".join(text.splitlines()[-SHOWN:]))
    console.print(table_of(rows_of(runs)))
    console.print(f"{options.runs} runs, {failed_runs} with failures.")
    return WITH_FAILURES if failed_runs else DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
