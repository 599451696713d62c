"""Committed results: per question its id and ranks, and what they were measured on.

A file holds no text of a set. It has the sha256 of every file that was asked from, those of the set
and our own, so that a later run knows whether it may be compared at all. Of the service it has what
the service says of itself: the names of its model, analyser, encoder and recipe. What is inside
them, such as the weights of a recipe or a calibration, is not in it: a change there is what the
ranks show.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jobs.suites.outputs import put
from jobs.suites.rows import Row, headlines, measures
from jobs.suites.suite import read_json
from rayapp.core.errors import ConfigError

FORMAT = 1  # of the file; a reader refuses another one
PLAIN_ID = re.compile(r"[A-Za-z0-9._:-]{1,80}")  # such an id holds no sentence
ID_DIGITS = 16  # hex digits that stand for any other id

OURS = "jobs/suites"  # folder of our own files; in the results their names stand below it

Files = Mapping[str, tuple[Path, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """The committed results of one suite.

    Attributes:
        data: sha256 of each file of the set, by its path below the data folder or the project's.
        service: names of model, analyser, encoder and recipe.
    """

    suite: str
    data: Mapping[str, str]
    service: Mapping[str, str]
    rows: tuple[Row, ...]


def data_hashes(files: Files, data: Path, ours: Sequence[Path] = ()) -> dict[str, str]:
    """The sha256 of every file of a set, by its path below `data`, and of our own files.

    Raises ConfigError: a file is missing or cannot be read.
    """
    found = {}
    for what, paths in files.items():
        for path in paths:
            found[path.as_posix()] = _hash(
                data / path, what, "pass the folder that holds it as --data"
            )
    for path in ours:
        found[f"{OURS}/{path.name}"] = _hash(path, "A file of ours", "restore it")
    return found


def _hash(path: Path, what: str, advice: str) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        raise ConfigError(f"{what} is not at {path}: {advice}.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}): {advice}.") from None


def check_data(golden: Golden, hashes: Mapping[str, str]) -> None:
    """Ranks of other data say nothing about ranking.

    Raises ConfigError: a file differs from the one the results are of.
    """
    for name, known in sorted(golden.data.items()):
        if known != hashes.get(name):
            raise ConfigError(
                f"{name} is not the file that the committed results of {golden.suite} were made "
                "with (its sha256 differs): take that file, or write new results with --golden."
            )


def replace_texts(rows: Iterable[Row]) -> tuple[Row, ...]:
    """The rows with every id that could hold a sentence replaced by its hash."""
    return tuple(replace(row, question_id=_plain(row.question_id)) for row in rows)


def write_golden(folder: Path, golden: Golden) -> Path:
    """Write `<suite>.json`, one question per line, and return its path. Raises as `put`."""
    path = folder / f"{golden.suite}.json"
    head = {
        "format": FORMAT,
        "suite": golden.suite,
        "data": dict(golden.data),
        "service": dict(golden.service),
        "means": _means(golden.rows),
    }
    lines = [
        "{",
        *(f"{json.dumps(name)}: {json.dumps(value)}," for name, value in head.items()),
        '"parts": {',
        ",\n".join(_parts(golden.rows)),
        "}",
        "}",
    ]
    put(path, ("\n".join(lines) + "\n").encode())
    return path


def read_golden(folder: Path, suite: str) -> Golden:
    """The committed results of `suite`.

    Raises ConfigError: there are none, or the file is not one of this format.
    """
    path = folder / f"{suite}.json"
    if not path.is_file():
        raise ConfigError(
            f"{folder} holds no results of {suite}: write them with --golden {folder} first."
        )
    tree = read_json(path, f"The committed result of {suite}")
    try:
        if tree["format"] != FORMAT or tree["suite"] != suite:
            raise ValueError(f"it is format {tree['format']} of {tree['suite']}")
        rows = tuple(
            _row(part, group, name, value)
            for part, groups in tree["parts"].items()
            for group, questions in groups.items()
            for name, value in questions.items()
        )
        return Golden(suite=suite, data=tree["data"], service=tree["service"], rows=rows)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"{path} is no committed result of {suite} ({error}): write it again with --golden."
        ) from None


def _means(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    """For the reader of a difference; a comparison takes the questions."""
    means: dict[str, dict[str, float]] = {}
    for one in headlines(rows):
        means.setdefault(one.part, {})[one.metric] = round(one.service.mean, 4)
    return means


def _parts(rows: Iterable[Row]) -> Iterator[str]:
    parts: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        group = parts.setdefault(row.part, {}).setdefault(f"{row.category}|{row.lang}", [])
        group.append(f"{json.dumps(row.question_id)}: {json.dumps(_value(row))}")
    for part, groups in sorted(parts.items()):
        inside = ",\n".join(
            f"{json.dumps(name)}: {{\n" + ",\n".join(sorted(lines)) + "\n}"
            for name, lines in sorted(groups.items())
        )
        yield f"{json.dumps(part)}: {{\n{inside}\n}}"


def _value(row: Row) -> list[int | None] | dict[str, float]:
    if row.ranks:
        return list(row.ranks)
    return {name: round(value, 4) for name, value in row.values.items()}


def _row(part: str, group: str, name: str, value: Any) -> Row:
    category, _, lang = group.rpartition("|")
    if isinstance(value, list):
        ranks = tuple(value)
        return Row(
            part=part,
            question_id=name,
            category=category,
            lang=lang,
            ranks=ranks,
            values=measures(ranks),
        )
    return Row(part=part, question_id=name, category=category, lang=lang, values=dict(value))


def _plain(name: str) -> str:
    if PLAIN_ID.fullmatch(name):
        return name
    return f"sha256:{hashlib.sha256(name.encode()).hexdigest()[:ID_DIGITS]}"
