"""The bundled material: `fixture/*.yaml` and the project's documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import yaml

from rayapp.client import Memory
from rayapp.demo.documents import project_documents
from rayapp.demo.material import DemoQuestion, Material

FIXTURE = Path(__file__).parent / "fixture"
PROJECT = Path(__file__).parents[2]
USER_ID = "demo"
FACT_IMPORTANCE = 0.9  # a fact about a person that an assistant wrote down on purpose
FACT_CONFIDENCE = 0.9


def bundled(project: Path = PROJECT) -> Material:
    """The conversation in `history`, its facts in `memory_bank`, the documents in `books`."""
    conversation = _read("conversation.yaml")
    passages = project_documents(project)
    memories = [*_turns(conversation["turns"]), *_facts(conversation["facts"]), *passages]
    rows: list[Mapping[str, Any]] = _read("questions.yaml")["questions"]
    questions, notes = [], []
    for row in rows:
        evidence = frozenset(row["evidence"] if "evidence" in row else _holding(passages, row))
        if evidence:
            questions.append(DemoQuestion(row["text"], evidence))
        else:
            notes.append(f"Left out, {row['book']} is not there to answer it: {row['text']}")
    return Material(
        title="A year of a Hebrew and English conversation, and this project's documents",
        user_id=USER_ID,
        memories=memories,
        questions=questions,
        notes=notes,
    )


def _read(name: str) -> Any:
    return yaml.safe_load((FIXTURE / name).read_text(encoding="utf-8"))


def _turns(rows: Sequence[Mapping[str, Any]]) -> Iterator[Memory]:
    for row in rows:
        day: date = row["date"]
        yield Memory(
            text=f"{row['speaker']}: {row['text']} ({day:%d.%m.%Y})",
            tier="history",
            memory_id=row["id"],
            created_at=_noon(day),
            source={"type": "user", "conversation_id": f"demo-session-{row['session']}"},
        )


def _facts(rows: Sequence[Mapping[str, Any]]) -> Iterator[Memory]:
    for row in rows:
        yield Memory(
            text=row["text"],
            tier="memory_bank",
            memory_id=row["id"],
            tags=(row["tag"],),
            importance=FACT_IMPORTANCE,
            confidence=FACT_CONFIDENCE,
            created_at=_noon(row["date"]),
        )


def _holding(passages: Sequence[Memory], row: Mapping[str, Any]) -> Iterator[str]:
    """Ids of the passages of the named document that hold all the words."""
    for passage in passages:
        title = ((passage.source or {}).get("book") or {}).get("title")
        if title == row["book"] and all(words in passage.text for words in row["holds"]):
            yield str(passage.memory_id)


def _noon(day: date) -> datetime:
    return datetime.combine(day, time(12), tzinfo=UTC)
