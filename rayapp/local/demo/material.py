"""What a demo run stores and asks: the bundled conversation, or real data from a folder."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import yaml

from jobs.suites.heq import load_heq
from jobs.suites.locomo import HEADLINE, load_locomo
from jobs.suites.suite import Corpus, Question, spread
from rayapp.client import Memory


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question, the ids of which any one answers it, and what it says in English."""

    text: str
    evidence: frozenset[str]
    translation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Everything of one run. Every memory has a stable id, so a second run stores duplicates.

    Attributes:
        next_question: one that the demo leaves to the reader.
        translations: English of a memory in another language, by id; shown, never stored.
    """

    title: str
    user_id: str
    memories: Sequence[Memory]
    questions: Sequence[DemoQuestion]
    next_question: str
    translations: Mapping[str, str] = field(default_factory=dict)


FIXTURE = Path(__file__).parent / "fixture"
USER_ID = "demo"
FACT_IMPORTANCE = 0.9  # a fact about a person that an assistant wrote down on purpose
FACT_CONFIDENCE = 0.9


def material_of(data: Path | None) -> Material:
    """Of the sets under `data`; None: the bundled conversation. Raises as `from_data` does."""
    return load_material() if data is None else from_data(data)


def load_material() -> Material:
    """The conversation in `history`, its facts in `memory_bank`."""
    conversation = _read("conversation.yaml")
    turns, facts = conversation["turns"], conversation["facts"]
    rows: list[Mapping[str, Any]] = _read("questions.yaml")["questions"]
    return Material(
        title="A year of a conversation in Hebrew and English",
        user_id=USER_ID,
        memories=[*_turns(turns), *_facts(facts)],
        questions=[
            DemoQuestion(row["text"], frozenset(row["evidence"]), row.get("en", "")) for row in rows
        ],
        next_question="What is the hedgehog called?",
        translations={row["id"]: row["en"] for row in (*turns, *facts) if "en" in row},
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


def _noon(day: date) -> datetime:
    return datetime.combine(day, time(12), tzinfo=UTC)


# `--data DIR`: one LoCoMo conversation and the HeQ paragraphs with their own questions.

DATA_USER_ID = "demo-data"
QUESTIONS_PER_SET = 6  # a table that fits a screen


def from_data(data: Path) -> Material:
    """Material of the sets under `data`. Raises ConfigError: a set is not there."""
    dialogue, paragraphs = load_locomo(data).corpora[0], load_heq(data).corpora[0]
    scored = [q for q in dialogue.questions if q.category in HEADLINE]
    answerable = [q for q in paragraphs.questions if q.gold]
    # Evenly spaced, so that the choice flatters nobody.
    questions = [
        *_questions(spread(scored, QUESTIONS_PER_SET), f"{dialogue.name}:"),
        *_questions(spread(answerable, QUESTIONS_PER_SET), ""),
    ]
    return Material(
        title=f"LoCoMo {dialogue.name} and the HeQ paragraphs",
        user_id=DATA_USER_ID,
        memories=[
            *_memories(dialogue, "history", f"{dialogue.name}:"),
            *_memories(paragraphs, "history", ""),
        ],
        questions=questions,
        next_question=questions[0].text,
    )


def _memories(corpus: Corpus, tier: str, prefix: str) -> list[Memory]:
    return [
        Memory(
            text=document.text,
            tier=tier,
            memory_id=f"{prefix}{document.doc_id}",
            created_at=document.created_at,
        )
        for document in corpus.documents
    ]


def _questions(questions: Sequence[Question], prefix: str) -> list[DemoQuestion]:
    return [
        DemoQuestion(question.text, frozenset(f"{prefix}{name}" for name in question.gold))
        for question in questions
    ]
