"""HeQ (Cohen et al. 2023, CC BY 4.0): Hebrew questions over paragraphs.

One distinct paragraph is one memory, all of one user; a question's evidence is its paragraph.
Questions marked impossible have no answer in any paragraph: they measure abstention only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jobs.suites.suite import Corpus, Document, Question, Suite, read_json, rows_of

FILE = Path("heq") / "heq-v1.1-val.json"
NAME = "HeQ"
ID_DIGITS = 12  # hex digits of a paragraph id: no collision among thousands


def load_heq(data: Path) -> Suite:
    """The suite of the validation paragraphs under `data`.

    Raises:
        ConfigError: the file is missing, is not JSON or has no such rows.
    """
    paragraphs: dict[str, Document] = {}
    questions = []
    rows = read_json(data / FILE, NAME)
    with rows_of(data / FILE, NAME):
        for paragraph in [one for article in rows["data"] for one in article["paragraphs"]]:
            text = str(paragraph["context"]).strip()
            doc_id = f"heq:{hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]}"
            paragraphs[doc_id] = Document(doc_id, text)
            questions += [_question(row, doc_id) for row in paragraph["qas"]]
        if not questions:
            raise ValueError("no question")
    return Suite(name="heq", corpora=(Corpus("heq", tuple(paragraphs.values()), tuple(questions)),))


def _question(row: Mapping[str, Any], doc_id: str) -> Question:
    impossible = bool(row["is_impossible"])
    return Question(
        str(row["id"]),
        str(row["question"]),
        () if impossible else (doc_id,),
        "impossible" if impossible else "answerable",
        "he",
    )
