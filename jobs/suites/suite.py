"""What a retrieval suite is: corpora of documents, and questions with their evidence."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from rayapp.core.errors import ConfigError
from rayapp.search.rules.evaluation import Judged

OneT = TypeVar("OneT")
ID_DIGITS = 12  # hex digits of a paragraph id: no collision among thousands


@dataclass(frozen=True, slots=True)
class Document:
    """One memory to store. `doc_id` is unique in its corpus and is the memory id."""

    doc_id: str
    text: str
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """`gold` holds the ids of the evidence; empty = the corpus holds no answer."""

    question_id: str
    text: str
    gold: tuple[str, ...]
    category: str
    lang: str

    def judged(self, ranked: Iterable[str]) -> Judged:
        """With the ids that a system answered, best first."""
        return Judged(
            question_id=self.question_id,
            gold=self.gold,
            ranked=tuple(ranked),
            category=self.category,
            lang=self.lang,
        )


@dataclass(frozen=True, slots=True)
class Corpus:
    """The memories of one user, and the questions asked of them."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A named set.

    Attributes:
        headline: categories that the headline row averages; None = all.
        excluded: questions left out because their evidence is not valid.
        group_of: maps a document id to its group, when the set is also scored by group.
        group_name: what a group is called in reports.
    """

    name: str
    corpora: tuple[Corpus, ...]
    headline: frozenset[str] | None = None
    excluded: int = 0
    group_of: Callable[[str], str] | None = None
    group_name: str = ""

    @property
    def documents(self) -> int:
        return sum(len(corpus.documents) for corpus in self.corpora)

    @property
    def questions(self) -> int:
        return sum(len(corpus.questions) for corpus in self.corpora)

    def every_question(self) -> Iterator[Question]:
        """Of all corpora, one after the other."""
        for corpus in self.corpora:
            yield from corpus.questions

    @property
    def headline_name(self) -> str:
        if self.headline is None:
            return "all"
        if len(self.headline) == 1:
            return min(self.headline)
        return f"categories {min(self.headline)}-{max(self.headline)}"

    def sampled(self, limit: int | None) -> Suite:
        """At most `limit` questions, evenly spread over the whole set; all documents stay."""
        if limit is None or limit >= self.questions:
            return self
        keep = frozenset(spread(range(self.questions), limit))
        corpora, at = [], 0
        for corpus in self.corpora:
            chosen = tuple(q for i, q in enumerate(corpus.questions, at) if i in keep)
            corpora.append(replace(corpus, questions=chosen))
            at += len(corpus.questions)
        return replace(self, corpora=tuple(corpora))


@dataclass(frozen=True, slots=True, kw_only=True)
class ParagraphSet:
    """A set whose questions are asked of paragraphs: a distinct one is one memory, all of one user.

    Attributes:
        title: what the set is called.
        file: below the data folder.
        rows: the paragraphs of its data, each with the rows of its questions.
        question: of a row; the id is that of its paragraph.
    """

    name: str
    title: str
    file: Path
    rows: Callable[[Any], Iterable[tuple[Any, Sequence[Any]]]]
    question: Callable[[Any, str], Question]

    def load(self, data: Path) -> Suite:
        """The suite of the file under `data`.

        Raises ConfigError: the file is missing, is not JSON or has no such rows.
        """
        path = data / self.file
        paragraphs: dict[str, Document] = {}
        questions: list[Question] = []
        raw = read_json(path, self.title)
        with rows_of(path, self.title):
            for context, asked in self.rows(raw["data"]):
                text = str(context).strip()
                digest = hashlib.sha256(text.encode()).hexdigest()
                doc_id = f"{self.name}:{digest[:ID_DIGITS]}"
                paragraphs[doc_id] = Document(doc_id, text)
                questions += [self.question(row, doc_id) for row in asked]
            if not questions:
                raise ValueError("no question")
        corpus = Corpus(self.name, tuple(paragraphs.values()), tuple(questions))
        return Suite(name=self.name, corpora=(corpus,))


def spread(items: Sequence[OneT], limit: int | None) -> Sequence[OneT]:
    """At most `limit` of them, evenly spread, in their order."""
    if limit is None or limit >= len(items):
        return items
    return [items[index * len(items) // limit] for index in range(limit)]


@contextmanager
def rows_of(path: Path, what: str) -> Iterator[None]:
    """Around the reading of a set's rows: a file of another shape is one sentence.

    Raises ConfigError: a field is missing or is of another kind.
    """
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        said = (str(error).splitlines() or [""])[0]
        raise ConfigError(
            f"{path} has no rows of {what} ({type(error).__name__}: {said}): "
            "take the file as the set has it."
        ) from None


def read_json(path: Path, what: str) -> Any:
    """The parsed file.

    Raises ConfigError: missing or not JSON; the sentence names the set and the file.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"{what} is not at {path}: pass the folder that holds it as --data."
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read as JSON: {error}.") from None
