"""Beliefs and cases of PrecisionMemBench as memories of our API and as what an answer must hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs.suites.suite import read_json, rows_of
from rayapp.client import Memory

FOLDER = Path("precisionmembench")
BELIEFS = FOLDER / "beliefs.seed.json"
CASES = FOLDER / "retrieval.cases.json"
NAME = "PrecisionMemBench"
TIER = "memory_bank"  # the tier of distilled facts, and the one that can pin
OWNER = "test-user"
OPEN_QUESTION = "type:open_question"
RELATION = "type:relation"
UNIVERSAL = "user:universal"
IMPORTANCE = 0.8  # the set has none; all alike, so that it decides nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What one part of an answer must and must not hold; `only` None = others may be there."""

    must: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    only: frozenset[str] | None = None

    def problem(self, part: str, got: Sequence[str]) -> str | None:
        """The first thing that is wrong with `got`, as a sentence; None when it is right."""
        found = frozenset(got)
        missing = (self.must | (self.only or frozenset())) - found
        extra = found & self.never if self.only is None else found - self.only | found & self.never
        if missing:
            return f"{part} lacks {', '.join(sorted(missing))}"
        if extra:
            return f"{part} holds {', '.join(sorted(extra))} as well"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prelude:
    """What the pinned memories of everywhere must say together."""

    present: bool | None = None
    contains: tuple[str, ...] = ()
    never: tuple[str, ...] = ()

    def problem(self, text: str) -> str | None:
        """As `Wanted.problem`, for the text of the prelude."""
        if self.present is not None and bool(text) is not self.present:
            return "prelude is empty" if self.present else "prelude is not empty"
        lacking = [word for word in self.contains if word not in text]
        if lacking:
            return f"prelude lacks {', '.join(lacking)}"
        return next((f"prelude holds {word}" for word in self.never if word in text), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`budget` = most memories of a context, pinned ones first; None = no limit."""

    case_id: str
    category: str
    query: str
    scopes: tuple[str, ...]
    owner: str
    budget: int | None
    relevant: Wanted
    pinned: Wanted
    questions: Wanted
    prelude: Prelude

    @property
    def active(self) -> bool:
        """Whether the search must return something: an empty answer fails the case."""
        return bool(self.relevant.only or self.relevant.must or self.questions.must)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionSet:
    """Memories by owner, older ones first, so that a newer one finds what it replaces."""

    beliefs: Mapping[str, tuple[Memory, ...]]
    cases: tuple[Case, ...]


def load_precision(data: Path) -> PrecisionSet:
    """The set under `data`.

    Raises ConfigError: a file is missing, is not JSON or has no such rows.
    """
    seed, asked = read_json(data / BELIEFS, NAME), read_json(data / CASES, NAME)
    with rows_of(data / BELIEFS, NAME):
        beliefs = _beliefs(sorted(seed, key=lambda row: str(row["created_at"])))
    with rows_of(data / CASES, NAME):
        cases = tuple(_case(row) for row in asked)
        if not cases:
            raise ValueError("no case")
    return PrecisionSet(beliefs=beliefs, cases=cases)


def _beliefs(rows: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Memory, ...]]:
    replaces = {row["superseded_by"]: str(row["_id"]) for row in rows if row["superseded_by"]}
    beliefs: dict[str, tuple[Memory, ...]] = {}
    for row in rows:
        owner = str(row["user_id"])
        memory = memory_of(row, replaces.get(row["_id"]))
        beliefs[owner] = (*beliefs.get(owner, ()), memory)
    return beliefs


def memory_of(row: Mapping[str, Any], supersedes: str | None) -> Memory:
    """A belief as any client would store it.

    Its names are the entities of the memory and lead its text; scope and type are tags; what was
    resolved is valid until then.
    """
    names = (str(row["canonical_name"]), *(str(alias) for alias in row["aliases"]))
    titles = [name.replace("_", " ") for name in names]
    return Memory(
        text=f"{', '.join(dict.fromkeys(titles))}: {row['content']}",
        tier=TIER,
        tags=(*row["scope"], f"type:{row['type']}"),
        entities=names,
        importance=IMPORTANCE,
        confidence=float(row["confidence"]),
        always_inject=bool(row["pinned"]),
        memory_id=str(row["_id"]),
        created_at=_time(row["created_at"]),
        valid_to=_time(row["resolved_at"]) if row["resolved_at"] else None,
        supersedes=supersedes,
    )


def _case(row: Mapping[str, Any]) -> Case:
    expect: Mapping[str, Any] = row["expect"]
    prelude = expect.get("personaPrelude", {})
    present = True if prelude.get("nonEmpty") else False if prelude.get("isNull") else None
    return Case(
        case_id=str(row["caseId"]),
        category=str(row["category"]),
        query=str(row["query"]),
        scopes=tuple(row["scope"]),
        owner=str(row.get("userId", OWNER)),
        budget=row.get("budget", {}).get("maxBeliefs"),
        relevant=_wanted(expect.get("relevantBeliefs", {})),
        pinned=_wanted(expect.get("pinnedFacts", {})),
        questions=_wanted(expect.get("openQuestions", {})),
        prelude=Prelude(
            present=present,
            contains=tuple(prelude.get("contains", ())),
            never=tuple(prelude.get("mustNotContain", ())),
        ),
    )


def _wanted(row: Mapping[str, Any]) -> Wanted:
    only = row.get("shouldOnlyInclude")
    return Wanted(
        must=frozenset(row.get("mustInclude", ())),
        never=frozenset(row.get("mustExclude", ())),
        only=None if only is None else frozenset(only),
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
