"""What an evaluation found, as JSON, Markdown, a picture and terminal tables.

Files are written after every suite, so that what is finished outlives what comes after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from rich.console import Console

from jobs.suites.ablation import (
    Ablated,
    ablation_line,
    ablation_markdown,
    ablation_report,
    ablation_tables,
)
from jobs.suites.gate import Gate, gate_line, gate_markdown, gate_report, gate_tables
from jobs.suites.kinds import Finished, SuiteKind
from jobs.suites.outputs import as_json, check_files, put
from jobs.suites.picture import picture
from jobs.suites.report import latency, values_of
from jobs.suites.rows import Headline, Row, headlines


@dataclass(frozen=True, kw_only=True)
class Evaluated:
    """One suite as it ran in full. `data`: the sha256 of its files.

    The cached parts draw intervals, which takes seconds, and are read at every writing.
    """

    name: str
    kind: SuiteKind[Any]
    run: Finished
    rows: Sequence[Row]
    data: Mapping[str, str]

    @cached_property
    def headlines(self) -> list[Headline]:
        return headlines(self.rows)

    @cached_property
    def report(self) -> dict[str, Any]:
        return self.kind.told.report(self.run)

    @cached_property
    def markdown(self) -> str:
        return self.kind.told.markdown(self.run)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """The reports that were asked for."""

    out: Path | None = None
    markdown: Path | None = None
    picture: Path | None = None

    def check(self) -> None:
        """Raises ConfigError: one of them cannot be written."""
        check_files(self.out, self.markdown, self.picture)

    def write(self, results: Results) -> None:
        """Write them as far as the results go. Raises ConfigError as `put`."""
        made = ((self.out, _json), (self.markdown, _markdown), (self.picture, _picture))
        for path, make in made:
            if path is not None:
                put(path, make(results))


@dataclass(slots=True)
class Results:
    """Everything that is reported.

    Attributes:
        service: names of model, analyser, encoder and recipe that were measured.
        asked_for: the suites that are to run, in their order.
    """

    run_id: str
    url: str
    service: Mapping[str, str]
    asked_for: Sequence[str] = ()
    at: str = ""
    elapsed_s: float = 0.0
    suites: list[Evaluated] = field(default_factory=list)
    ablation: list[Ablated] = field(default_factory=list)
    gates: list[Gate] = field(default_factory=list)

    @property
    def failures(self) -> int:
        return sum(one.run.failures for one in self.suites)

    @property
    def missing(self) -> list[str]:
        """Suites that did not end."""
        done = {one.name for one in self.suites}
        return [name for name in self.asked_for if name not in done]

    @property
    def search_ms(self) -> dict[str, float] | None:
        """Percentiles over the searches of all suites."""
        return latency([one for suite in self.suites for one in suite.kind.answered(suite.run)])

    @property
    def caption(self) -> str:
        return f"Retrieval: {self.service['recipe']}, {self.service['model']}"


def show(results: Results, console: Console) -> None:
    """Tables and one sentence each, as the terminal shows them, of the suites that ended."""
    for suite in results.suites:
        for table in suite.kind.told.tables(suite.run):
            console.print(table)
        console.print(suite.kind.told.line(suite.run))
        console.print(suite.run.searched.line)
    if results.ablation:
        for table in ablation_tables(results.ablation):
            console.print(table)
        console.print(ablation_line(results.ablation), soft_wrap=True)
    times = results.search_ms
    if times is not None:
        console.print(_speed(times))
    if results.failures:
        console.print(f"{results.failures} memories or questions failed: see rejected and errors.")
    if results.suites and results.missing:
        console.print(_unfinished(results), soft_wrap=True)


def show_gates(results: Results, console: Console) -> None:
    """The comparisons with the committed results, as the terminal shows them."""
    for gate in results.gates:
        for table in gate_tables(gate):
            console.print(table)
        console.print(gate_line(gate), soft_wrap=True)
        for worse in gate.named_worse:
            console.print(f"  worse: {worse}", soft_wrap=True)


def _json(results: Results) -> bytes:
    report = {
        "run_id": results.run_id,
        "at": results.at,
        "url": results.url,
        "recipe": results.service["recipe"],
        "service": results.service,
        "elapsed_s": results.elapsed_s,
        "missing": results.missing,
        "search_ms": results.search_ms,
        "suites": [_section(suite) for suite in results.suites],
        "ablation": ablation_report(results.ablation) if results.ablation else None,
        "against": [gate_report(gate) for gate in results.gates] or None,
    }
    return as_json(report)


def _section(suite: Evaluated) -> dict[str, Any]:
    return {
        **suite.report,
        "data": dict(suite.data),
        "answers": suite.run.searched.as_json(),
        "headline": [
            {
                "set": one.part,
                "metric": one.metric,
                "service": values_of(one.service),
                "floor": values_of(one.floor) if one.floor is not None else None,
            }
            for one in suite.headlines
        ],
    }


def _markdown(results: Results) -> bytes:
    service = results.service
    about = (
        f"Model {service['model']}, analyser {service['analyser']}, recipe {service['recipe']}, "
        f"{results.elapsed_s:.0f} s."
    )
    parts = [f"# Retrieval, run {results.run_id}\n\n{about}"]
    times = results.search_ms
    if times is not None:
        parts[0] += f" {_speed(times)}"
    if results.missing:
        parts.append(_unfinished(results))
    for suite in results.suites:
        parts += [suite.markdown.rstrip("\n"), suite.run.searched.line]
    if results.ablation:
        parts.append(ablation_markdown(results.ablation).rstrip("\n"))
    if results.gates:
        parts.append(gate_markdown(results.gates).rstrip("\n"))
    return ("\n\n".join(parts) + "\n").encode()


def _unfinished(results: Results) -> str:
    return f"This is a part of a run: {', '.join(results.missing)} did not end."


def _picture(results: Results) -> bytes:
    shown = {suite.name: suite.headlines for suite in results.suites}
    return picture(shown, results.caption).encode()


def _speed(times: Mapping[str, float]) -> str:
    inside = (
        f" (inside the service {times['server_p50']} and {times['server_p95']} ms)"
        if "server_p50" in times
        else ""
    )
    return f"Search p50 {times['p50']} ms, p95 {times['p95']} ms{inside}."
