"""HeQ (Cohen et al. 2023, CC BY 4.0): Hebrew questions over paragraphs.

One distinct paragraph is one memory, all of one user; a question's evidence is its paragraph.
Questions marked impossible have no answer in any paragraph: they measure abstention only.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from jobs.suites.suite import Corpus, Document, Question, Suite, read_json

FILE = Path("heq") / "heq-v1.1-val.json"
ID_DIGITS = 12  # hex digits of a paragraph id: no collision among thousands


def load_heq(data: Path) -> Suite:
    """The suite of the validation paragraphs under `data`.

    Raises:
        ConfigError: the file is missing or is not JSON.
    """
    paragraphs: dict[str, Document] = {}
    questions = []
    for article in read_json(data / FILE, "HeQ")["data"]:
        for paragraph in article["paragraphs"]:
            text = str(paragraph["context"]).strip()
            doc_id = f"heq:{hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]}"
            paragraphs[doc_id] = Document(doc_id, text)
            for row in paragraph["qas"]:
                impossible = bool(row["is_impossible"])
                questions.append(
                    Question(
                        str(row["id"]),
                        str(row["question"]),
                        () if impossible else (doc_id,),
                        "impossible" if impossible else "answerable",
                        "he",
                    )
                )
    return Suite(name="heq", corpora=(Corpus("heq", tuple(paragraphs.values()), tuple(questions)),))
