"""The regression gate: a run beside the committed results, question by question."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from jobs.suites.compare import NAMED, Comparison, Difference, Worse, compare
from jobs.suites.golden import Golden, check_data, read_golden, replace_texts
from jobs.suites.rows import Row
from jobs.suites.searched import Searched
from rayapp.core.errors import ConfigError
from rayapp.local.cli.output import markdown_table, number_table

HEAD = ("set", "measure", "committed", "now", "change", "95 % interval", "n", "")
LEFT = 2  # columns of HEAD that hold words


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One suite against its committed results.

    Attributes:
        tolerance: share of a measure that may be lost.
        notes: what differs between the two services, and what is not known of the results.
        searched: how the answers of this run were.
        whole: every question was asked, so one that is missing was lost.
    """

    suite: str
    comparison: Comparison
    tolerance: float
    notes: tuple[str, ...]
    searched: Searched
    whole: bool

    @property
    def lost(self) -> list[Difference]:
        """Measures below the committed floor minus the tolerance."""
        return [one for one in self.comparison.differences if one.lost(self.tolerance)]

    @property
    def named_worse(self) -> Sequence[Worse]:
        return self.comparison.worse[:NAMED]

    @property
    def closed(self) -> bool:
        return bool(self.lost) or (self.whole and self.comparison.missing > 0)


def read_committed(folder: Path, suite: str, hashes: Mapping[str, str]) -> Golden:
    """The results to compare with.

    Raises ConfigError: there are none, or they are of other data.
    """
    golden = read_golden(folder, suite)
    check_data(golden, hashes)
    return golden


def gate(
    golden: Golden,
    rows: Iterable[Row],
    service: Mapping[str, str],
    *,
    searched: Searched,
    hashes: Mapping[str, str],
    tolerance: float,
    whole: bool,
) -> Gate:
    """Compare a run, whose files have these hashes, with the committed results.

    Raises ConfigError: they have no question in common.
    """
    comparison = compare(golden.rows, replace_texts(rows))
    if not comparison.differences:
        raise ConfigError(
            f"No committed result of {golden.suite} is about a question of this run: "
            "write new results with --golden."
        )
    notes = [
        f"{name} is {service.get(name)}, the committed results are of {value}"
        for name, value in golden.service.items()
        if service.get(name) != value
    ]
    notes += [
        f"the committed results do not say which {name} they are of: write them again with --golden"
        for name in sorted(hashes.keys() - golden.data.keys())
    ]
    return Gate(
        suite=golden.suite,
        comparison=comparison,
        tolerance=tolerance,
        notes=tuple(notes),
        searched=searched,
        whole=whole,
    )


def gate_report(one: Gate) -> dict[str, Any]:
    """The JSON section; every question that got worse is in it."""
    comparison = one.comparison
    return {
        "suite": one.suite,
        "closed": one.closed,
        "tolerance": one.tolerance,
        "notes": list(one.notes),
        "answers": one.searched.as_json(),
        "differences": [difference.as_json() for difference in comparison.differences],
        "lost": [f"{difference.part} {difference.metric}" for difference in one.lost],
        "better": comparison.better,
        "worse": [str(worse) for worse in comparison.worse],
        "missing": comparison.missing,
    }


def gate_line(one: Gate) -> str:
    comparison = one.comparison
    moved = f"{comparison.better} questions got better, {len(comparison.worse)} worse"
    notes = f" {one.searched.line}" + "".join(f" Note: {note}." for note in one.notes)
    if not one.closed:
        verdict = f"not below the committed results (tolerance {one.tolerance:g})"
        return f"{one.suite}: {verdict}; {moved}.{notes}"
    reasons = [
        f"{lost.part} {lost.metric} {lost.before:.3f} -> {lost.after:.3f}" for lost in one.lost
    ]
    if one.whole and comparison.missing:
        reasons.append(f"{comparison.missing} committed questions were not asked")
    return f"{one.suite}: BELOW the committed results: {'; '.join(reasons)}; {moved}.{notes}"


def gate_tables(one: Gate) -> list[Table]:
    table = number_table(f"{one.suite}: against the committed results", HEAD, words=LEFT)
    for row in _rows(one):
        table.add_row(*row, style="bold" if row[-1] else "")
    return [table]


def gate_markdown(gates: Sequence[Gate]) -> str:
    """The same tables as Markdown, with the questions that lost most."""
    lines = ["## Against the committed results"]
    for one in gates:
        lines += ["", gate_line(one), "", *markdown_table(HEAD, _rows(one), words=LEFT)]
        worse = one.comparison.worse
        if worse:
            lines += ["", f"Worse, the first {len(one.named_worse)} of {len(worse)}:", ""]
            lines += [f"- {question}" for question in one.named_worse]
    return "\n".join(lines) + "\n"


def _rows(one: Gate) -> list[tuple[str, ...]]:
    return [
        (
            difference.part,
            difference.metric,
            f"{difference.before:.3f}",
            f"{difference.after:.3f}",
            f"{difference.change.mean:+.3f}",
            f"{difference.change.low:+.3f} to {difference.change.high:+.3f}",
            str(difference.change.n),
            "below" if difference.lost(one.tolerance) else "",
        )
        for difference in one.comparison.differences
    ]
