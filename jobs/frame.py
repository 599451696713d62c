"""What every job does around its work: arguments, the stack, Ray, progress, report, exit code.

Exit codes: 0 done, 2 bad arguments or another one runs, 3 finished with failures or cut short,
4 a dependency is away.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import importlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from rich.console import Console
from rich.table import Table
from rich.text import Text

from jobs.job_arguments import params_of, parser_of
from jobs.joining import STDERR, connect, submission_id
from jobs.spec import JobSpec
from rayapp.bulk.lease import PASSING, STOPPED, RunRequest
from rayapp.bulk.model import Job, Plan
from rayapp.bulk.ports import JobWork
from rayapp.bulk.rules import (
    EXIT_BAD_ARGUMENTS,
    EXIT_DEPENDENCY,
    EXIT_DONE,
    EXIT_INCOMPLETE,
    JobResult,
)
from rayapp.bulk.runner import JobRunner
from rayapp.client.discovery import data_dir_of
from rayapp.client.progress import Bar, Progress
from rayapp.container import bootstrap
from rayapp.core.errors import InvalidInput, RayappError
from rayapp.core.logging import configure_logging
from rayapp.core.runtime import SystemClock
from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.local.stack import stack

if TYPE_CHECKING:
    from jobs.workers import RayWorkers


def run_main(spec: JobSpec, argv: Sequence[str] | None = None, *, module: str | None = None) -> int:
    """Run a job from its command line; the exit code.

    Args:
        module: where workers find `SPEC`; `jobs.<kind>` when not given.
    """
    console = Console(markup=False, emoji=False, soft_wrap=True)
    # `kill -USR1` asks a driver that seems to hang where it stands.
    faulthandler.register(signal.SIGUSR1, file=STDERR)
    try:
        options = parser_of(spec).parse_args(argv)
        settings = attached(options.data_dir)
        configure_logging(settings.logging)
        params = params_of(spec, options)
        _check_out(options.out)
        run = _Run(spec, settings, options, console, module or f"jobs.{spec.kind}")
        if options.dry_run:
            return asyncio.run(run.preview(params))
        return asyncio.run(run.to_the_end(params))
    except RayappError as error:
        console.print(error.message)
        if error.code == STOPPED:
            return EXIT_INCOMPLETE
        return EXIT_DEPENDENCY if isinstance(error, PASSING) else EXIT_BAD_ARGUMENTS
    except KeyboardInterrupt:
        console.print("Stopped before the job began.")
        return EXIT_INCOMPLETE


def attached(data_dir: Path | None) -> Settings:
    """The settings of the stack of this directory, else those of the environment.

    A cluster without a local stack names its servers in the environment of its nodes.
    Raises ConfigError when there is neither.
    """
    folder = data_dir_of(data_dir)
    in_cluster = os.environ.get("RAY_ADDRESS") and not stack.is_running(folder)
    if data_dir is None and in_cluster:
        settings = load_settings()
        if settings.mongo.uri:
            return settings
    return stack.attach(folder)


class _Run:
    """One call of a job's command line."""

    def __init__(
        self,
        spec: JobSpec,
        settings: Settings,
        options: argparse.Namespace,
        console: Console,
        module: str,
    ) -> None:
        self._spec, self._settings, self._options = spec, settings, options
        self._console, self._module = console, module
        self._begun = time.monotonic()

    async def preview(self, params: Mapping[str, Any]) -> int:
        with self._runner() as runner:
            plan = await runner.preview(self._request(params))
        self._console.print(
            f"Dry run: {self._spec.kind} would look at {plan.total} records in "
            f"{len(plan.partitions)} partitions; nothing was written."
        )
        for name, value in plan.facts.items():
            self._console.print(f"  {name}: {_short(value)}")
        self._write(_plan_report(self._spec.kind, params, plan))
        return EXIT_DONE

    async def to_the_end(self, params: Mapping[str, Any]) -> int:
        with (
            self._runner(warm=self._warms(params)) as runner,
            _signals(runner),
            Progress(self._console) as progress,
            progress.step(self._spec.kind, 0) as bar,
        ):
            result = await runner.run(self._request(params), _shown_on(bar), self._follows)
        self._console.print(result.sentence)
        if self._console.is_terminal:
            self._console.print(report_table(result.job))
        try:
            self._write(_job_report(result, time.monotonic() - self._begun))
        except InvalidInput as error:  # the job is what it is without it
            self._console.print(error.message)
        return result.exit_code

    def _follows(self, job: Job) -> None:
        self._console.print(
            f"Job {job.job_id} has a driver already: showing its progress, and taking over if it "
            "dies. Ctrl-C leaves it alone."
        )

    def _request(self, params: Mapping[str, Any]) -> RunRequest:
        return RunRequest(
            kind=self._spec.kind,
            params=params,
            new_id=bootstrap.new_id(),
            job_id=self._options.job_id,
            resume=self._options.resume,
            submission_id=submission_id(),
            requested_by="command line",
            concurrency=self._concurrency,
        )

    def _warms(self, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """A stored job has params of its own, and may be nearly done."""
        return None if self._options.job_id or not self._spec.warms(params) else params

    @property
    def _concurrency(self) -> int:
        return int(self._options.concurrency or self._settings.jobs.concurrency)

    @contextmanager
    def _runner(self, warm: Mapping[str, Any] | None = None) -> Iterator[JobRunner]:
        """`warm`: workers for these params start at once."""
        # Imported after the stack's environment is set: Ray reads it at import.
        import ray

        connect(self._settings, self._spec.kind)
        try:
            for name in self._spec.imports:
                importlib.import_module(name)
            stores = bootstrap.Stores(self._settings)
            workers = self._workers()
            if warm is not None:
                workers.warm(warm)
            yield JobRunner(
                stores.jobs,
                stores.leases,
                workers,
                self._open_work,
                settings=self._settings.jobs,
                clock=SystemClock(),
                process=bootstrap.process_token(),
            )
        finally:
            ray.shutdown()

    def _workers(self) -> RayWorkers:
        from jobs.workers import RayWorkers, WorkerPlan

        return RayWorkers(
            WorkerPlan(
                module=self._module,
                kind=self._spec.kind,
                settings=self._settings,
                count=self._concurrency,
                rate=self._options.rate,
                gpus=self._settings.jobs.worker_gpus if self._spec.embeds else 0.0,
            )
        )

    async def _open_work(self, params: Mapping[str, Any]) -> JobWork:
        return await self._spec.open_work(self._settings, params)

    def _write(self, report: Mapping[str, Any]) -> None:
        if self._options.out is None:
            return
        try:
            self._options.out.write_bytes(orjson.dumps(report, option=orjson.OPT_INDENT_2))
        except OSError as error:
            raise InvalidInput(
                f"The report cannot be written to {self._options.out} ({error.strerror}): "
                "choose another --out."
            ) from None


def _check_out(path: Path | None) -> None:
    """Hours of work must not end with a report that cannot be written."""
    if path is None:
        return
    folder = path.resolve().parent
    there = path if path.exists() else folder
    if path.is_dir() or not folder.is_dir() or not os.access(there, os.W_OK):
        raise InvalidInput(f"The report cannot be written to {path}: choose another --out.")


@contextmanager
def _signals(runner: JobRunner) -> Iterator[None]:
    """The first SIGTERM or SIGINT stops the job after its step, a second one ends the process.

    SIGINT comes from a person, whose job then rests. SIGTERM is how a node or a stack goes down:
    the job only lost its place and waits for its next driver.
    """
    loop = asyncio.get_running_loop()
    watched = (signal.SIGTERM, signal.SIGINT)

    def once(signum: int) -> None:
        for one in watched:
            loop.remove_signal_handler(one)
            signal.signal(one, signal.SIG_DFL)
        runner.stop(pause=signum == signal.SIGINT)

    for one in watched:
        loop.add_signal_handler(one, once, one)
    # Thread stacks come first: that works even when the loop does not turn.
    faulthandler.unregister(signal.SIGUSR1)
    loop.add_signal_handler(signal.SIGUSR1, print_awaits)
    faulthandler.register(signal.SIGUSR1, file=STDERR, chain=True)
    try:
        yield
    finally:
        faulthandler.unregister(signal.SIGUSR1)
        for one in (*watched, signal.SIGUSR1):
            loop.remove_signal_handler(one)
        faulthandler.register(signal.SIGUSR1, file=STDERR)


def print_awaits() -> None:
    """What each task of this loop waits for, the innermost call last."""
    lines = []
    for task in asyncio.all_tasks():
        lines.append(f"Task {task.get_name()} waits in:")
        waiting: Any = task.get_coro()
        while (frame := getattr(waiting, "cr_frame", None)) is not None:
            code = frame.f_code
            lines.append(f"  {code.co_filename}:{frame.f_lineno} {code.co_qualname}")
            waiting = waiting.cr_await
    os.write(STDERR, "\n".join([*lines, ""]).encode())


def _shown_on(bar: Bar) -> Callable[[Job], None]:
    return lambda job: bar.at(job.done, job.total, job.stage)


def report_table(job: Job) -> Table:
    """Counts and the flat part of the report, for people."""
    table = Table(title=f"{job.kind} {job.job_id}: {job.state.value}")
    table.add_column("what")
    table.add_column("value", overflow="fold")
    rows: dict[str, Any] = {"records": job.done, "failed": job.failed}
    rows |= {**job.counts, **(job.report or {})}
    if job.error:
        rows["error"] = job.error
    for name, value in rows.items():
        table.add_row(Text(name), Text(_short(value)))
    return table


def _short(value: Any) -> str:
    if isinstance(value, str | int | float | bool) or value is None:
        return str(value)
    return orjson.dumps(value).decode()[:500]


def _plan_report(kind: str, params: Mapping[str, Any], plan: Plan) -> dict[str, Any]:
    return {
        "kind": kind,
        "dry_run": True,
        "params": dict(params),
        "total": plan.total,
        "partitions": len(plan.partitions),
        "facts": dict(plan.facts),
    }


def _job_report(result: JobResult, seconds: float) -> dict[str, Any]:
    job = result.job
    return {
        "job_id": job.job_id,
        "kind": job.kind,
        "state": job.state.value,
        "exit_code": result.exit_code,
        "message": result.sentence,
        "params": dict(job.params),
        "total": job.total,
        "done": job.done,
        "failed": job.failed,
        "counts": dict(job.counts),
        "attempts": job.attempts,
        "error": job.error,
        "seconds": round(seconds, 3),
        "report": dict(job.report or {}),
    }
