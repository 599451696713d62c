"""The bundled material: `fixture/*.yaml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import yaml

from rayapp.client import Memory
from rayapp.local.demo.material import DemoQuestion, Material

FIXTURE = Path(__file__).parent / "fixture"
USER_ID = "demo"
FACT_IMPORTANCE = 0.9  # a fact about a person that an assistant wrote down on purpose
FACT_CONFIDENCE = 0.9


def bundled() -> Material:
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
