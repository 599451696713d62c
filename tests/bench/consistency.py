"""Injected drift of six kinds on a real MongoDB and the real embedded engine: times and proof.

python -m tests.bench.consistency --items 100000 --share 0.01 --out consistency.json

Everything is in one process, the indexer too: the times are those of the comparison and the
repair themselves, without Ray and without a second core. Exit codes: 0 done, 2 bad arguments,
3 drift was missed or something else was touched, 4 the server did not start.
"""

import argparse
import asyncio
import platform
import sys
import tempfile
import time
from collections.abc import Awaitable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

from jobs.ending import DONE, WITH_FAILURES, command_parser, run_command
from jobs.suites.outputs import put_json
from rayapp.bulk.model import Finish
from rayapp.index.consistency.rules import Drift
from rayapp.local.cli.output import number_table
from tests.bench.arguments import not_negative_number, positive, positive_number
from tests.support.drift import everything
from tests.support.sweep_rig import SweepRig, kinds_of

T = TypeVar("T")


class Stopwatch:
    """Seconds by name, in the order in which they were taken."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    async def __call__(self, name: str, work: Awaitable[T]) -> T:
        began = time.perf_counter()
        result = await work
        self.seconds[name] = round(time.perf_counter() - began, 3)
        return result


async def measured(items: int, share: float, grace_s: float) -> dict[str, Any]:
    watch = Stopwatch()
    with tempfile.TemporaryDirectory() as folder:
        async with SweepRig.opened(Path(folder), consistency={"grace_s": grace_s}) as rig:
            scan, index = rig.container.stores.scan, rig.container.index
            await watch("fill", rig.fill(items))
            before: tuple[Mapping[str, Any], ...] = await everything(scan, index)
            clean = await watch("sweep of a clean store", rig.sweep(repair=False))
            broken = await watch("injection", rig.break_share(share))
            looked = await watch("sweep", rig.sweep(repair=False))
            healed = await watch("sweep with repair", rig.sweep(repair=True))
            again = await watch("sweep after it", rig.sweep(repair=False))
            after: tuple[Mapping[str, Any], ...] = await everything(scan, index)
    touched = {point for ids in broken.values() for point in ids}
    return {
        "items": items,
        "share": share,
        "grace_s": grace_s,
        "machine": {"python": platform.python_version(), "platform": platform.platform()},
        "seconds": watch.seconds,
        "ids_per_s": round(clean.report["checked"] / watch.seconds["sweep of a clean store"]),
        "injected": kinds_of(broken),
        "found": looked.report["found"],
        "repaired": healed.report["repaired"],
        "healed": healed.report["healed"],
        "left": again.report["found"],
        "others_changed": sum(_changed(b, a, touched) for b, a in zip(before, after, strict=True)),
        "passed": _passed(clean, looked, healed, again, kinds_of(broken)),
    }


def _changed(before: Mapping[str, Any], after: Mapping[str, Any], touched: set[str]) -> int:
    """Rows or points that differ although nobody broke them."""
    keys = (before.keys() | after.keys()) - touched
    return sum(before.get(key) != after.get(key) for key in keys)


def _passed(
    clean: Finish, looked: Finish, healed: Finish, again: Finish, injected: dict[str, int]
) -> bool:
    quiet = clean.report["found"] == {} and again.report["found"] == {}
    found = looked.report["found"] == injected == healed.report["repaired"]
    return quiet and found and healed.complete


def table(report: dict[str, Any]) -> Table:
    title = f"Drift of {report['share']:.1%} per kind over {report['items']:,} items"
    columns = ("injected", "found", "repaired", "left")
    shown = number_table(title, ("kind", *columns))
    for kind in Drift:
        shown.add_row(kind.value, *(str(report[name].get(kind.value, 0)) for name in columns))
    shown.add_section()
    for name, seconds in report["seconds"].items():
        shown.add_row(name, f"{seconds:.1f} s")
    shown.add_row("ids per second, clean", f"{report['ids_per_s']:,}")
    shown.add_row("others changed", str(report["others_changed"]))
    shown.add_row("passed", str(report["passed"] and not report["others_changed"]))
    return shown


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.consistency", __doc__)
    made.add_argument("--items", type=positive, default=100_000)
    made.add_argument("--share", type=positive_number, default=0.01, help="Of all items, per kind.")
    made.add_argument(
        "--grace", type=not_negative_number, default=2.0, help="Pause before the second look."
    )
    return made


def _run(options: argparse.Namespace) -> int:
    report = asyncio.run(measured(options.items, options.share, options.grace))
    Console().print(table(report))
    put_json(options.out, report)
    return DONE if report["passed"] and not report["others_changed"] else WITH_FAILURES


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
