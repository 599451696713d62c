"""HeQ (Cohen et al. 2023, CC BY 4.0): Hebrew questions over paragraphs.

A question's evidence is its paragraph. Questions marked impossible have no answer in any
paragraph: they measure abstention only.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs.suites.suite import ParagraphSet, Question

FILE = Path("heq") / "heq-v1.1-val.json"
NAME = "HeQ"


def _rows(data: Any) -> Iterator[tuple[Any, Sequence[Any]]]:
    for article in data:
        for given in article["paragraphs"]:
            yield given["context"], given["qas"]


def _question(row: Mapping[str, Any], doc_id: str) -> Question:
    impossible = bool(row["is_impossible"])
    return Question(
        str(row["id"]),
        str(row["question"]),
        () if impossible else (doc_id,),
        "impossible" if impossible else "answerable",
        "he",
    )


load_heq = ParagraphSet(name="heq", title=NAME, file=FILE, rows=_rows, question=_question).load
