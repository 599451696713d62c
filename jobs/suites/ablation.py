"""What a feature is worth: the suites with everything, and once more without each feature.

The same questions of the same stored memories are asked under recipe names such as
`default-without-dense`, and compared question by question. A feature whose absence lowers no
measure earns nothing in these suites. Of many measures some are lower by chance: a loss counts when
chance does not explain it among all the measures that the feature is looked at by.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.table import Table

from jobs.suites.compare import CHANCE, Difference, compare
from jobs.suites.rows import Row
from jobs.suites.runner import RunOptions
from rayapp.local.cli.output import markdown_table, number_table
from rayapp.search.rules.recipes import ablated_name

HEAD = ("suite", "set", "measure", "with", "without", "change", "95 % interval", "n")
LEFT = 3  # columns of HEAD that hold words
CHANGE = HEAD.index("change")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablated:
    """One suite without one feature, beside the full service.

    `with_ms` and `without_ms`: medians of the search time inside the service, where it says.
    """

    suite: str
    feature: str
    differences: tuple[Difference, ...]
    with_ms: float | None = None
    without_ms: float | None = None


def variants(options: RunOptions, base: str, features: Sequence[str]) -> list[RunOptions]:
    """The options of the full service, then those without each feature.

    Each has a run id of its own, for suites whose questions change what is stored.
    """
    without = [
        replace(options, recipe=ablated_name(base, [feature]), run_id=f"{options.run_id}-{number}")
        for number, feature in enumerate(features, start=1)
    ]
    return [options, *without]


def compare_variants(
    suite: str,
    features: Sequence[str],
    rows: Sequence[Sequence[Row]],
    medians: Sequence[float | None],
) -> list[Ablated]:
    """The comparison of each variant with the first; `rows` and `medians` as `variants`."""
    full, *others = rows
    return [
        Ablated(
            suite=suite,
            feature=feature,
            differences=compare(full, without).differences,
            with_ms=medians[0],
            without_ms=median,
        )
        for feature, without, median in zip(features, others, medians[1:], strict=True)
    ]


def idle(found: Iterable[Ablated]) -> list[str]:
    """Features without which no measure of any suite was surely lower, in their order."""
    return [
        feature
        for feature, measures in _measures(found).items()
        if not any(measure.surely_lower(len(measures)) for measure in measures)
    ]


def _measures(found: Iterable[Ablated]) -> dict[str, list[Difference]]:
    """Everything that each feature is looked at by."""
    measures: dict[str, list[Difference]] = {}
    for one in found:
        measures.setdefault(one.feature, []).extend(one.differences)
    return measures


def ablation_report(found: Sequence[Ablated]) -> dict[str, Any]:
    return {
        "idle": idle(found),
        "chance": CHANCE,
        "measures": {feature: len(measures) for feature, measures in _measures(found).items()},
        "without": [
            {
                "suite": one.suite,
                "feature": one.feature,
                "search_ms": {"with": one.with_ms, "without": one.without_ms},
                "differences": [difference.as_json() for difference in one.differences],
            }
            for one in found
        ],
    }


def ablation_tables(found: Sequence[Ablated]) -> list[Table]:
    made = []
    for feature, rows in _by_feature(found).items():
        table = number_table(f"without {feature}: paired change", HEAD, words=LEFT)
        for row, sign in rows:
            table.add_row(*row, style="dim" if sign == "same" else "")
        made.append(table)
    return made


def ablation_markdown(found: Sequence[Ablated]) -> str:
    """The same tables as Markdown; a change whose interval leaves zero out is bold."""
    lines = ["## Ablation", "", ablation_line(found)]
    for feature, rows in _by_feature(found).items():
        marked = [
            row if sign == "same" else (*row[:CHANGE], f"**{row[CHANGE]}**", *row[CHANGE + 1 :])
            for row, sign in rows
        ]
        lines += ["", f"### without {feature}", "", *markdown_table(HEAD, marked, words=LEFT)]
        lines += ["", *_speed(found, feature)]
    return "\n".join(lines) + "\n"


def ablation_line(found: Sequence[Ablated]) -> str:
    """What earned nothing here, and what counts as earning."""
    names = idle(found)
    looked_at = max((len(measures) for measures in _measures(found).values()), default=0)
    how = (
        f"Chance is {CHANCE:.1%} for all {looked_at} measures of a feature together (paired "
        "sign-flip test, Bonferroni); the intervals of the tables are each for one measure alone."
    )
    if not names:
        return f"Every feature that was switched off lowered a measure beyond chance. {how}"
    return (
        f"Without {', '.join(names)} no measure of these suites was lower beyond chance: "
        f"look at other suites before keeping what earns nothing. {how}"
    )


def _by_feature(found: Sequence[Ablated]) -> Mapping[str, list[tuple[tuple[str, ...], str]]]:
    tables: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for one in found:
        rows = tables.setdefault(one.feature, [])
        rows += [(_row(one.suite, difference), difference.sign) for difference in one.differences]
    return tables


def _row(suite: str, one: Difference) -> tuple[str, ...]:
    change = one.change
    return (
        suite,
        one.part,
        one.metric,
        f"{one.before:.3f}",
        f"{one.after:.3f}",
        f"{change.mean:+.3f}",
        f"{change.low:+.3f} to {change.high:+.3f}",
        str(change.n),
    )


def _speed(found: Sequence[Ablated], feature: str) -> list[str]:
    return [
        f"{one.suite}: search p50 {one.with_ms} ms with, {one.without_ms} ms without."
        for one in found
        if one.feature == feature and one.with_ms is not None and one.without_ms is not None
    ]
