"""Numbers and tables of the server profile. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table

from rayapp.local.cli.output import number_table

# Scores that differ by less are equal: engines sum the same products in another order.
TIE = 1e-5
# Columns of one client alone.
SPEED = ("p50 ms", "p95 ms", "client CPU ms", "engine CPU ms", "1/s")


def recall(found: Sequence[float], best: Sequence[float]) -> float:
    """Share of the best that was found, both given by their exact scores.

    Short texts of few words often have the very same vector: any of them is as right as another,
    so a point counts when it reaches the worst of the best.
    """
    if not best:
        raise ValueError("There is nothing to find: ask only users who have points.")
    worst = min(best) - TIE
    return min(1.0, sum(score >= worst for score in found) / len(best))


def agreement(left: Sequence[Sequence[str]], right: Sequence[Sequence[str]]) -> float:
    """Mean share of ids that two answers have in common, over the lists that are not both empty."""
    shares = [
        len(set(one) & set(other)) / max(len(one), len(other))
        for one, other in zip(left, right, strict=True)
        if one or other
    ]
    return sum(shares) / len(shares) if shares else 1.0


def tables(report: dict[str, Any]) -> Iterator[Table]:
    """What each build costs, how the dense one does, a whole search beside the embedded engine."""
    yield _costs(report)
    yield _dense(report)
    yield _search(report)


def _costs(report: dict[str, Any]) -> Table:
    made = number_table(
        f"{report['items']:,} memories of {report['users']:,} users,"
        f" {report['heavy']:,} of a heavy one; {report['dims']} dimensions",
        (
            *("build", "load s", "then wait s", "server CPU s"),
            *("indexed vectors", "segments", "PSS MiB"),
        ),
    )
    for name, build in report["builds"].items():
        made.add_row(
            name,
            f"{build['load_s']:.1f}",
            f"{build['wait_s']:.1f}",
            f"{build['cpu_s']:.0f}",
            f"{build['indexed_vectors']:,}",
            str(build["segments"]),
            f"{build['pss_mib']:.0f}",
        )
    near = report["embedded"]
    made.add_row(
        "embedded", f"{near['load_s']:.1f}", "", f"{near['cpu_s']:.0f}", "", "",
        f"{near['pss_mib']:.0f}",
    )  # fmt: skip
    return made


def _dense(report: dict[str, Any]) -> Table:
    many = report["clients"]
    made = number_table(
        f"Dense sub-query, best {report['top']}",
        ("search", "of", "recall", *SPEED, f"1/s of {many}"),
    )
    for build in report["builds"].values():
        for mode, audiences in build["dense"].items():
            for audience, row in audiences.items():
                made.add_row(mode, audience, f"{row['recall']:.3f}", *_speed(row))
    return made


def _search(report: dict[str, Any]) -> Table:
    many = report["clients"]
    made = number_table(
        "A search's call: dense and bm25 of five tiers",
        ("build", "of", "same ids", *SPEED, f"1/s of {many}", "x embedded"),
    )
    for name, build in report["builds"].items():
        for audience, row in build["search"].items():
            ratio = f"{row['p50_ratio']:.2f}"
            made.add_row(name, audience, f"{row['same_ids']:.3f}", *_speed(row["server"]), ratio)
            made.add_row("  embedded", audience, "", *_speed(row["embedded"]), "")
    return made


def _speed(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{row['p50_ms']:.2f}",
        f"{row['p95_ms']:.2f}",
        f"{row['client_cpu_ms']:.2f}",
        f"{row['engine_cpu_ms']:.2f}",
        f"{row['per_s']:.0f}",
        f"{row['per_s_many']:.0f}",
    )


def without_graph(report: dict[str, Any]) -> list[str]:
    """Builds that were to have a graph and have none: their numbers are those of exact search."""
    return [
        name
        for name, build in report["builds"].items()
        # The sparse vectors of all points are indexed in any case.
        if name != "exact" and build["indexed_vectors"] <= report["items"]
    ]
