"""`--data DIR`: one LoCoMo conversation and the HeQ paragraphs with their own questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jobs.suites.heq import load_heq
from jobs.suites.locomo import HEADLINE, load_locomo
from jobs.suites.suite import Corpus, Question
from rayapp.client import Memory
from rayapp.local.demo.material import DemoQuestion, Material

USER_ID = "demo-data"
QUESTIONS_PER_SET = 6  # a table that fits a screen


def from_data(data: Path) -> Material:
    """Material of the sets under `data`.

    Raises:
        ConfigError: a set is not there.
    """
    dialogue, paragraphs = load_locomo(data).corpora[0], load_heq(data).corpora[0]
    scored = [q for q in dialogue.questions if q.category in HEADLINE]
    answerable = [q for q in paragraphs.questions if q.gold]
    questions = [
        *_questions(_spread(scored), f"{dialogue.name}:"),
        *_questions(_spread(answerable), ""),
    ]
    return Material(
        title=f"LoCoMo {dialogue.name} and the HeQ paragraphs",
        user_id=USER_ID,
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


def _spread(questions: Sequence[Question]) -> list[Question]:
    """Evenly spaced, so that the choice flatters nobody."""
    count = min(QUESTIONS_PER_SET, len(questions))
    return [questions[index * len(questions) // count] for index in range(count)]


def _questions(questions: Sequence[Question], prefix: str) -> list[DemoQuestion]:
    return [
        DemoQuestion(question.text, frozenset(f"{prefix}{name}" for name in question.gold))
        for question in questions
    ]
