"""Arguments that every job takes, and errors in them as one sentence."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import NoReturn

from jobs.spec import JobSpec
from rayapp.core.errors import InvalidInput

MAX_CONCURRENCY = 256  # the bound of the setting jobs.concurrency


class _Parser(argparse.ArgumentParser):
    """Raises instead of printing its usage and ending the process."""

    def error(self, message: str) -> NoReturn:
        raise InvalidInput(f"{message[:1].upper()}{message[1:]}; see --help.")


def parser_of(spec: JobSpec) -> argparse.ArgumentParser:
    """The options of `spec` and the common ones. Its `parse_args` raises InvalidInput."""
    parser = _Parser(
        prog=spec.kind,
        # `--data` of another command is no short form of `--data-dir`.
        allow_abbrev=False,
        description=spec.description,
        epilog="Exit codes: 0 done, 2 bad arguments or another one runs, 3 finished with "
        "failures or cut short, 4 a dependency is away.",
    )
    spec.add_arguments(parser)
    common = parser.add_argument_group("common to all jobs")
    common.add_argument("--data-dir", type=Path, help="Stack to attach to.")
    if spec.writes:
        common.add_argument(
            "--dry-run", action="store_true", help="Print what it would do; write nothing."
        )
    common.add_argument(
        "--resume",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="Go on with the last job of equal options that did not end.",
    )
    common.add_argument("--concurrency", type=_concurrency, help="Partitions at a time.")
    common.add_argument("--rate", type=_rate, help="Records per second over all workers.")
    common.add_argument("--job-id", help="Run this stored job; its own options count.")
    common.add_argument("--out", type=Path, help="Write the report here as JSON.")
    parser.set_defaults(dry_run=False)
    return parser


def _concurrency(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 1 <= value <= MAX_CONCURRENCY:
        raise argparse.ArgumentTypeError(f"use a whole number from 1 to {MAX_CONCURRENCY}")
    return value


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError("use a number above 0")
    return value
