"""ParaShoot (Keren and Levy 2021): Hebrew questions over paragraphs, in flat rows.

One distinct paragraph is one memory, all of one user; a question's evidence is its paragraph.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from jobs.suites.suite import Corpus, Document, Question, Suite, read_json, rows_of

FILE = Path("parashoot") / "dev.json"
NAME = "ParaShoot"
ID_DIGITS = 12  # hex digits of a paragraph id: no collision among thousands


def load_parashoot(data: Path) -> Suite:
    """The suite of the development questions under `data`.

    Raises:
        ConfigError: the file is missing, is not JSON or has no such rows.
    """
    paragraphs: dict[str, Document] = {}
    questions = []
    rows = read_json(data / FILE, NAME)
    with rows_of(data / FILE, NAME):
        for row in rows["data"]:
            text = str(row["context"]).strip()
            doc_id = f"parashoot:{hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]}"
            paragraphs[doc_id] = Document(doc_id, text)
            name, asked = str(row["id"]), str(row["question"])
            questions.append(Question(name, asked, (doc_id,), "answerable", "he"))
        if not questions:
            raise ValueError("no question")
    corpus = Corpus("parashoot", tuple(paragraphs.values()), tuple(questions))
    return Suite(name="parashoot", corpora=(corpus,))
