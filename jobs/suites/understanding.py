"""How well the tables read labelled texts: entities and relations found, without a model.

`python -m jobs.suites.understanding` prints the table; it needs no service.
"""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import yaml
from rich.console import Console
from rich.table import Table

from rayapp.container.understanding import load_reader, load_registry
from rayapp.text.normalize import normalize
from rayapp.understanding.statements.rules.reading import Named, Reader, Reading
from rayapp.understanding.statements.rules.registry import DETAIL, EVENT, Ontology

LABELLED = Path("tests/golden/understanding")
LANGUAGES = ("en", "he")
SAID_AT = datetime(2026, 5, 20, 9, tzinfo=UTC)
# Share of the words of an event that another naming of it has at least.
SAME_EVENT = 0.5


class Said(NamedTuple):
    """A relation with typed ends, by names."""

    source: tuple[str, str]
    relation: str
    target: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Labelled:
    """A text and what it says."""

    text: str
    says: tuple[Said, ...]
    held_out: bool


@dataclass(slots=True)
class Counts:
    """Found, wanted, and both."""

    right: int = 0
    found: int = 0
    wanted: int = 0

    def add(self, right: int, found: int, wanted: int) -> None:
        self.right, self.found = self.right + right, self.found + found
        self.wanted += wanted

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        return self.right / self.wanted if self.wanted else 1.0

    @property
    def f1(self) -> float:
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def load_labelled(path: Path, ontology: Ontology) -> list[Labelled]:
    """The texts of one language."""
    rows = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [
        Labelled(
            row["text"],
            tuple(_said(line, ontology) for line in row["says"]),
            bool(row.get("held_out")),
        )
        for row in rows
    ]


def _said(line: str, ontology: Ontology) -> Said:
    source, relation, target = (part.strip() for part in line.split(" > "))
    row = ontology.relations[relation]
    return Said(
        _end(source, row.source or ("Person",)), relation, _end(target, row.target or ("Person",))
    )


def _end(name: str, types: tuple[str, ...]) -> tuple[str, str]:
    type_, joint, rest = name.partition(":")
    return (type_, _plain(rest)) if joint else (types[0], _plain(name))


def _plain(name: str) -> str:
    return " ".join(normalize(name).casefold().split())


def said_by(reading: Reading) -> Iterator[Said]:
    """What was found, as labels say it; details are values, and no relations between entities."""
    for one in reading.claims:
        if one.object is None or one.relation == DETAIL:
            continue
        source, target = reading.entities[one.subject], reading.entities[one.object]
        yield Said(_shown(source), one.relation, _shown(target))


def _shown(one: Named) -> tuple[str, str]:
    if one.me:
        return one.type, "i"
    return one.type, _plain(one.known or (one.names[-1] if one.names else one.role or ""))


def matched(found: Iterable[Said], wanted: Iterable[Said]) -> int:
    """How many of the relations are there; an event is the same where most of its words are."""
    left = list(wanted)
    right = 0
    for one in found:
        hit = next((each for each in left if _same(one, each)), None)
        if hit is not None:
            left.remove(hit)
            right += 1
    return right


def _same(one: Said, other: Said) -> bool:
    return one.relation == other.relation and all(
        same_end(mine, theirs)
        for mine, theirs in ((one.source, other.source), (one.target, other.target))
    )


def same_end(one: tuple[str, str], other: tuple[str, str]) -> bool:
    """Whether two ends are one entity."""
    if one == other:
        return True
    if one[0] != other[0] or one[0] not in (EVENT, "Goal", "Skill", "Person"):
        return False
    mine, theirs = set(one[1].split()), set(other[1].split())
    shared = len(mine & theirs) / max(len(mine | theirs), 1)
    return one[0] != "Person" and shared >= SAME_EVENT


def measure(reader: Reader, texts: Iterable[Labelled]) -> tuple[Counts, Counts, list[str]]:
    """Entities, relations, and the texts with what was missed or is wrong."""
    entities, relations, wrong = Counts(), Counts(), []
    for one in texts:
        found = list(dict.fromkeys(said_by(reader.read(one.text, SAID_AT))))
        ends = _ends(found)
        gold = _ends(one.says)
        hit = sum(any(same_end(each, other) for other in gold) for each in ends)
        entities.add(min(hit, len(gold)), len(ends), len(gold))
        right = matched(found, one.says)
        relations.add(right, len(found), len(one.says))
        if right < max(len(found), len(one.says)):
            wrong.append(f"{one.text}\n  found  {_lines(found)}\n  wanted {_lines(one.says)}")
    return entities, relations, wrong


def _ends(said: Iterable[Said]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(end for one in said for end in (one.source, one.target)))


def _lines(said: Iterable[Said]) -> str:
    return "; ".join(f"{one.source[1]} > {one.relation} > {one.target[1]}" for one in said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", choices=("tuned", "held_out"), help="what was read wrongly")
    shown = parser.parse_args().show
    ontology = load_registry()
    reader = load_reader()
    table = Table(title="Entities and relations by the tables, without a model")
    for name in ("language", "part", "texts", "entities P / R / F1", "relations P / R / F1"):
        table.add_column(name)
    for language in LANGUAGES:
        texts = load_labelled(LABELLED / f"{language}.yaml", ontology)
        for part in ("tuned", "held_out"):
            some = [one for one in texts if one.held_out == (part == "held_out")]
            entities, relations, wrong = measure(reader, some)
            cells = (
                f"{one.precision:.3f} / {one.recall:.3f} / {one.f1:.3f}"
                for one in (entities, relations)
            )
            table.add_row(language, part, str(len(some)), *cells)
            if shown == part:
                print("\n".join(wrong))
    Console().print(table)


if __name__ == "__main__":
    main()
