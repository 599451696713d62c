"""Checks the bilingual dictionary and reports how much of a catalogue it knows.

    python -m jobs.dictionary --data DIR --out coverage.json

The loader refuses a broken dictionary: repeated forms or pairs, a form that expands to itself, a
stop word. Coverage is the share of distinct Hebrew words of the titles, tags and field names of
the catalogue in DIR. Exit codes: 0 done, 2 bad arguments or a broken dictionary.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from jobs.ending import DONE, command_parser, run_command
from jobs.suites.outputs import put_json
from jobs.suites.suite import read_json
from rayapp.core.settings.load import CONFIG_DIR
from rayapp.local.cli.output import number_table, report_console
from rayapp.storage.files import load_expansions
from rayapp.text.expansions import Coverage, coverage_of, pairs_by_domain

CATALOGUE = Path("datagov") / "enterprise_schemas.json"


def texts_of(catalogue: Mapping[str, Any]) -> dict[str, list[str]]:
    """Titles, tags and field names of the catalogue."""
    datasets = catalogue["datasets"]
    return {
        "titles": [dataset["title"] for dataset in datasets],
        "tags": [tag for dataset in datasets for tag in dataset["tags"]],
        "fields": list(_fields(datasets)),
    }


def _fields(datasets: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for dataset in datasets:
        for resource in dataset["resources"]:
            yield from (field["name"] for field in resource["fields"])


def report(folder: Path, data: Path | None) -> dict[str, Any]:
    """Counts per domain, and the coverage when there is a catalogue."""
    dictionary = load_expansions(folder)
    domains = pairs_by_domain(dictionary)
    found = {}
    if data is not None:
        texts = texts_of(read_json(data / CATALOGUE, "The catalogue"))
        found = {name: coverage_of(dictionary, lines) for name, lines in texts.items()}
    return {
        "entries": len(dictionary),
        "pairs": sum(pairs for _, pairs in domains.values()),
        "domains": {
            name: {"entries": entries, "pairs": pairs}
            for name, (entries, pairs) in sorted(domains.items())
        },
        "coverage": {name: _values(coverage) for name, coverage in found.items()},
    }


def _values(coverage: Coverage) -> dict[str, Any]:
    return {
        "share": round(coverage.share, 4),
        "known": coverage.known,
        "words": coverage.total,
        "missing": dict(coverage.missing),
    }


def tables(made: Mapping[str, Any]) -> list[Table]:
    counts = number_table(
        "dictionary",
        ("domain", "entries", "term pairs"),
        ((name, str(row["entries"]), str(row["pairs"])) for name, row in made["domains"].items()),
    )
    counts.add_row("all", str(made["entries"]), str(made["pairs"]), style="bold")
    known = Table(title="catalogue words known", title_justify="left")
    for name in ("of", "share", "words", "most frequent unknown"):
        known.add_column(name, justify="right" if name in ("share", "words") else "left")
    for name, row in made["coverage"].items():
        unknown = " ".join(list(row["missing"])[:8])
        known.add_row(name, f"{row['share']:.3f}", str(row["words"]), unknown)
    return [counts, known] if made["coverage"] else [counts]


def parser() -> argparse.ArgumentParser:
    made = command_parser("jobs.dictionary", __doc__)
    made.add_argument("--data", type=Path, help="folder that holds the catalogue")
    made.add_argument(
        "--folder", type=Path, default=CONFIG_DIR / "expansions", help="dictionary folder"
    )
    return made


def _run(options: argparse.Namespace) -> int:
    console = report_console()
    made = report(options.folder, options.data)
    for table in tables(made):
        console.print(table)
    put_json(options.out, made)
    return DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
