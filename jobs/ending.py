"""A command from its options to its exit code; what a user can mend is one plain sentence."""

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rayapp.core.errors import RayappError

DONE, BAD_ARGUMENTS, WITH_FAILURES, DEPENDENCY_AWAY = 0, 2, 3, 4


def command_parser(module: str, doc: str | None, *, out: bool = True) -> ArgumentParser:
    """Of `python -m <module>`, with `--out` for its report unless it has its own."""
    made = ArgumentParser(
        prog=f"python -m {module}", description=doc, formatter_class=RawDescriptionHelpFormatter
    )
    if out:
        made.add_argument("--out", type=Path, help="JSON report")
    return made


def positive(text: str) -> int:
    """The `type` of an argument that counts."""
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise ArgumentTypeError(f"{text!r} is not a whole number from 1")


def run_command(
    parser: Callable[[], ArgumentParser],
    run: Callable[[Namespace], int],
    argv: Sequence[str] | None = None,
) -> int:
    """The exit code of `run` with the arguments of the command line."""
    arguments = parser().parse_args(argv)
    return exit_code_of(lambda: run(arguments))


def exit_code_of(work: Callable[[], int]) -> int:
    """The code that `work` returns, or that of the error that ended it, which is printed.

    Tasks that fail together raise a group: its first error is told. Any other error is a bug of
    the command and leaves with its traceback.
    """
    try:
        return work()
    except* RayappError as group:
        first = next(_single(group))
    print(first.message, file=sys.stderr)
    return DEPENDENCY_AWAY if first.retryable else BAD_ARGUMENTS


def _single(group: ExceptionGroup[RayappError]) -> Iterator[RayappError]:
    """The errors in groups of groups, in the order in which they came."""
    for one in group.exceptions:
        if isinstance(one, ExceptionGroup):
            yield from _single(one)
        else:
            yield one
