"""Every pattern of the project, as its modules compile it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

# Imports every module with a compiler that notes what it is given, and who gave it.
NOTING = """
import importlib, json, pkgutil, re, sys
import rayapp, jobs
found = {}
compiled = re._compile
def note(pattern, flags):
    frame = sys._getframe(1)
    while frame.f_globals.get("__name__", "").split(".")[0] == "re":
        frame = frame.f_back
    module = frame.f_globals.get("__name__", "")
    made = compiled(pattern, flags)
    if module.split(".")[0] in ("rayapp", "jobs"):
        text = pattern if isinstance(pattern, (str, bytes)) else pattern.pattern
        kind = "bytes" if isinstance(text, bytes) else "str"
        text = text.decode("latin-1") if isinstance(text, bytes) else text
        found[module, text] = [module, kind, text, int(made.flags)]
    return made
re._compile = note
for package in (rayapp, jobs):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(json.dumps(list(found.values())))
"""


def compiled_patterns() -> list[tuple[str, str | bytes, int]]:
    """Module, pattern and flags of all that importing the project compiles."""
    done = subprocess.run([sys.executable, "-c", NOTING], capture_output=True, check=True)
    return [
        (module, text.encode("latin-1") if kind == "bytes" else text, flags)
        for module, kind, text, flags in json.loads(done.stdout.splitlines()[-1])
    ]


def repeats_without_return(parsed: Any) -> Iterator[Any]:
    """Each possessive repeat of more than one character, and each atomic group."""
    for code, argument in parsed:
        if code is codes.ATOMIC_GROUP:
            yield argument
        if code is codes.POSSESSIVE_REPEAT and not is_one_character(argument[2]):
            yield argument
        yield from _within(argument)


def is_one_character(parsed: Any) -> bool:
    single = (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN)
    return len(parsed) == 1 and parsed[0][0] in single


def _within(argument: Any) -> Iterator[Any]:
    if isinstance(argument, parser.SubPattern):
        yield from repeats_without_return(argument)
    elif isinstance(argument, (tuple, list)):
        for part in argument:
            yield from _within(part)


@pytest.mark.parametrize(
    "pattern", [r"(?:ab|\\.)*+", r"((?!x)a){4,5}+", r"(?>ab)", r"(a|(?:bc)?+)"]
)
def test_what_no_pattern_may_hold_is_noticed(pattern: str) -> None:
    assert list(repeats_without_return(parser.parse(pattern)))


@pytest.mark.parametrize("pattern", [r"[^\\\"]*+(?:\\.)*", r"\s++x.?+"])
def test_a_possessive_repeat_of_a_character_is_allowed(pattern: str) -> None:
    assert not list(repeats_without_return(parser.parse(pattern)))


def test_no_group_is_repeated_possessively() -> None:
    """CPython before 3.11.5 ends such a repeat early where the group looks ahead, and it is the
    interpreter of Debian 12: half of a secret stayed in clear."""
    patterns = compiled_patterns()
    bad = sorted(
        {
            f"{module}: {text!r}"
            for module, text, flags in patterns
            if list(repeats_without_return(parser.parse(text, flags)))
        }
    )
    assert len(patterns) > 100
    assert bad == []
