"""Run tests in several processes, forked when everything is imported and collected.

`python -m pytest -p tests.support.forks --forks 4`: what is collected once costs ten seconds of
processor time here, and a worker that collects for itself pays them again. A process takes a whole
file at a time: what the tests of one file share (an engine, a service) is started once.
"""

from __future__ import annotations

import itertools
import os
import struct
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import connection, get_context
from multiprocessing.context import ForkProcess
from typing import Any

import pytest
from _pytest.capture import CaptureManager
from _pytest.runner import runtestprotocol

# What a process takes from the queue: the number of a file. A pipe keeps 16,000 of them.
NUMBER = struct.Struct("i")
# How long each file took when it last ran, seconds; pytest keeps it between runs.
DURATIONS = "forks/durations"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--forks", type=int, default=1, metavar="N", help="run in N forked processes")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    options = session.config.option
    if options.forks < 2 or options.collectonly or options.usepdb or session.testsfailed:
        return None
    files = _files_of(session)
    queue = _queue_of(len(files))
    workers = [_Worker.start(session, files, queue, place) for place in range(options.forks)]
    try:
        took = _follow(session, workers)
        _remember(session.config, took)
    finally:
        for worker in workers:
            worker.process.terminate()
            worker.process.join()
        os.close(queue)
    return True


def _files_of(session: pytest.Session) -> list[list[pytest.Item]]:
    """The tests of each file; the longest first, so that none of them is left to the end.

    Of files that have not run here yet, those that say so (`takes`), then those with many tests.
    """
    took = _last_durations(session.config)
    grouped = itertools.groupby(session.items, key=lambda item: item.nodeid.partition("::")[0])
    files = {name: list(group) for name, group in grouped}
    expected = {name: sum(map(_expected, items)) for name, items in files.items()} | took
    names = sorted(files, key=lambda name: (expected[name], len(files[name])), reverse=True)
    return [files[name] for name in names]


def _expected(item: pytest.Item) -> float:
    mark = item.get_closest_marker("takes")
    return 0.0 if mark is None else float(mark.args[0])


def _last_durations(config: pytest.Config) -> dict[str, float]:
    # None with `-p no:cacheprovider`.
    cache = getattr(config, "cache", None)
    found = cache.get(DURATIONS, {}) if cache is not None else {}
    return found if isinstance(found, dict) else {}


def _remember(config: pytest.Config, took: dict[str, float]) -> None:
    if getattr(config, "cache", None) is not None:
        config.cache.set(DURATIONS, _last_durations(config) | took)


def _queue_of(count: int) -> int:
    """A pipe of the numbers below `count`: each is read by one process alone."""
    reading, writing = os.pipe()
    os.write(writing, b"".join(map(NUMBER.pack, range(count))))
    os.close(writing)
    return reading


def _taken(files: Sequence[list[pytest.Item]], queue: int) -> Iterator[pytest.Item]:
    while number := os.read(queue, NUMBER.size):
        yield from files[NUMBER.unpack(number)[0]]


@dataclass
class _Worker:
    process: ForkProcess
    results: connection.Connection
    last: str = "nothing"

    @classmethod
    def start(
        cls, session: pytest.Session, files: Sequence[list[pytest.Item]], queue: int, place: int
    ) -> _Worker:
        reading, writing = connection.Pipe(duplex=False)
        folder = session.config._tmp_path_factory.mktemp(f"f{place}", numbered=False)  # type: ignore[attr-defined]
        arguments = (session.config, files, queue, writing, folder)
        process = get_context("fork").Process(target=_run, args=arguments)
        process.start()
        writing.close()
        return cls(process, reading)


def _follow(session: pytest.Session, workers: Sequence[_Worker]) -> dict[str, float]:
    """Report what the processes tell until all have ended; how long each file took, seconds."""
    took: dict[str, float] = {}
    running = {worker.results: worker for worker in workers}
    while running:
        for ready in connection.wait(running):
            assert isinstance(ready, connection.Connection)
            try:
                message = ready.recv()
            except EOFError:
                _ended(session, running.pop(ready))
            else:
                if (report := _tell(session.config, message)) is not None:
                    running[ready].last = report.nodeid
                    name = report.nodeid.partition("::")[0]
                    took[name] = took.get(name, 0.0) + report.duration
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
    return took


def _ended(session: pytest.Session, worker: _Worker) -> None:
    worker.process.join()
    if worker.process.exitcode:
        code = worker.process.exitcode
        session.shouldfail = f"a process ended ({code}) after {worker.last}"


def _tell(config: pytest.Config, message: Any) -> pytest.TestReport | None:
    """Hand on what a process says; the report, if it is one."""
    if isinstance(message, dict) and "warning_message" in message:
        config.hook.pytest_warning_recorded.call_historic(kwargs=message)
        return None
    report: pytest.TestReport = message
    if isinstance(message, dict):
        report = config.hook.pytest_report_from_serializable(config=config, data=message)
    names = {"nodeid": report.nodeid, "location": report.location}
    if report.when == "setup":
        config.hook.pytest_runtest_logstart(**names)
    config.hook.pytest_runtest_logreport(report=report)
    if report.when == "teardown":
        config.hook.pytest_runtest_logfinish(**names)
    return report


class _Telling:
    """The plugin of a forked process: what would be printed here is told to the first process."""

    def __init__(self, config: pytest.Config, results: connection.Connection) -> None:
        self._config = config
        self._results = results

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            # One that passed holds plain values only.
            self._results.send(report if report.passed else self._plain(report))
        return True

    def _plain(self, report: pytest.TestReport) -> Any:
        return self._config.hook.pytest_report_to_serializable(config=self._config, report=report)

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        told = warnings.WarningMessage(
            str(warning_message.message),
            UserWarning,
            warning_message.filename,
            warning_message.lineno,
        )
        names = {"when": when, "nodeid": nodeid, "location": location}
        self._results.send({"warning_message": told, **names})


def _run(
    config: pytest.Config,
    files: Sequence[list[pytest.Item]],
    queue: int,
    results: connection.Connection,
    folder: Any,
) -> None:
    """A forked process: files from the queue until it is empty."""
    config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
    # The file that output is captured in is its own: one shared file has one position.
    capture = config.pluginmanager.getplugin("capturemanager")
    assert isinstance(capture, CaptureManager)
    capture.stop_global_capturing()
    capture.start_global_capturing()
    capture.suspend_global_capture()
    config.pluginmanager.register(_Telling(config, results))
    for item, following in itertools.pairwise(itertools.chain(_taken(files, queue), (None,))):
        assert item is not None
        config.hook.pytest_runtest_protocol(item=item, nextitem=following)
