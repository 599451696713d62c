"""LoCoMo (Maharana et al. 2024): long dialogues, questions with evidence turns.

One turn is one memory, `speaker: text [image: caption] (session date)`; one conversation is one
user. Categories: 1 multi-hop, 2 temporal, 3 open domain, 4 single-hop, 5 adversarial. Retrieval
is scored by the evidence turns; the headline averages categories 1 to 4.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jobs.suites.suite import Corpus, Document, Question, Suite, read_json, rows_of

FILE = Path("locomo") / "locomo-open5.json"
NAME = "LoCoMo"
TURN_ID = re.compile(r"D\d+:\d+")
SESSION_KEY = re.compile(r"session_(\d+)")
DATE_FORMAT = "%I:%M %p on %d %B, %Y"  # "1:56 pm on 8 May, 2023", no zone: read as UTC
HEADLINE = frozenset({"1", "2", "3", "4"})


def load_locomo(data: Path) -> Suite:
    """The suite of the conversations under `data`.

    Raises ConfigError: the file is missing, is not JSON or has no such rows.
    """
    corpora, excluded = [], 0
    samples = read_json(data / FILE, NAME)
    with rows_of(data / FILE, NAME):
        for sample in samples:
            name = str(sample["sample_id"])
            documents = _turns(sample["conversation"])
            known = {document.doc_id for document in documents}
            questions, dropped = _questions(name, sample["qa"], known)
            excluded += dropped
            corpora.append(Corpus(name, documents, questions))
        if not any(corpus.questions for corpus in corpora):
            raise ValueError("no question")
    return Suite(
        name="locomo",
        corpora=tuple(corpora),
        headline=HEADLINE,
        excluded=excluded,
        group_of=session_of,
        group_name="sessions",
    )


def session_of(turn_id: str) -> str:
    """`D3:12` is turn 12 of session D3."""
    return turn_id.split(":", 1)[0]


def _turns(conversation: Mapping[str, Any]) -> tuple[Document, ...]:
    numbers = sorted(
        int(match[1]) for key in conversation if (match := SESSION_KEY.fullmatch(key)) is not None
    )
    return tuple(
        _document(turn, str(conversation[f"session_{number}_date_time"]))
        for number in numbers
        for turn in conversation[f"session_{number}"]
    )


def _document(turn: Mapping[str, Any], date: str) -> Document:
    caption = turn.get("blip_caption")
    image = f" [image: {caption}]" if caption else ""
    created_at = datetime.strptime(date, DATE_FORMAT).replace(tzinfo=UTC)
    return Document(
        str(turn["dia_id"]), f"{turn['speaker']}: {turn['text']}{image} ({date})", created_at
    )


def _questions(
    name: str, rows: Sequence[Mapping[str, Any]], known: set[str]
) -> tuple[tuple[Question, ...], int]:
    """Questions with valid evidence, and how many had none."""
    questions = []
    for index, row in enumerate(rows):
        named = TURN_ID.findall(" ".join(row["evidence"]))
        gold = tuple(dict.fromkeys(turn for turn in named if turn in known))
        if gold:
            text = str(row["question"])
            questions.append(Question(f"{name}:{index}", text, gold, str(row["category"]), "en"))
    return tuple(questions), len(rows) - len(questions)
