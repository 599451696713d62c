"""Arguments that every job takes, and errors in them as one sentence."""

import argparse
import math
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, cast, get_args

from jobs.spec import JobSpec
from rayapp.bulk.params import JobParams, extras_of, normal_form
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
    _add_options(parser, spec.params)
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
    at_once = partial(_number, most=MAX_CONCURRENCY)
    common.add_argument("--concurrency", type=at_once, help="Partitions at a time.")
    common.add_argument("--rate", type=_rate, help="Records per second over all workers.")
    common.add_argument("--job-id", help="Run this stored job; its own options count.")
    common.add_argument("--out", type=Path, help="Write the report here as JSON.")
    parser.set_defaults(dry_run=False)
    return parser


def params_of(spec: JobSpec, options: argparse.Namespace) -> dict[str, Any]:
    """What is stored of the parsed options. InvalidInput: they do not fit."""
    given = {name: getattr(options, name) for name in spec.params.model_fields}
    defaults = {name: extras_of(spec.params, name).get("default") for name in given}
    asked = {name: None if value == defaults[name] else value for name, value in given.items()}
    return normal_form(spec.params, asked)


def _add_options(parser: argparse.ArgumentParser, params: type[JobParams]) -> None:
    either: Any = None
    groups: dict[str, Any] = {}
    for name, field in params.model_fields.items():
        extra, into = extras_of(params, name), cast(Any, parser)
        if "group" in extra:
            title, text = extra["group"]
            into = groups[title] = groups.get(title) or parser.add_argument_group(title, text)
        if "either" in extra:
            into = either = either or parser.add_mutually_exclusive_group()
        flag = extra.get("flag") or f"--{name.replace('_', '-')}"
        kind = next(one for one in (bool, int, float, str) if one in _kinds(field.annotation))
        how: dict[str, Any] = {"action": "store_true"}
        if kind is not bool:
            how = {"type": _number if "least" in extra else kind, "choices": extra.get("choices")}
            how |= {"metavar": extra.get("metavar"), "default": field.default}
        into.add_argument(flag, dest=name, help=field.description, **how)


def _kinds(annotation: Any) -> set[Any]:
    """The plain types in an annotation: `int` of `Annotated[int, ...] | None`."""
    inner = get_args(annotation)
    return set().union(*map(_kinds, inner)) if inner else {annotation}


def _number(text: str, most: int | None = None) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1 or (most is not None and value > most):
        end = "on" if most is None else f"to {most}"
        raise argparse.ArgumentTypeError(f"use a whole number from 1 {end}")
    return value


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise argparse.ArgumentTypeError("use a number above 0")
    return value
