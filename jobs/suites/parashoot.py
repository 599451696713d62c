"""ParaShoot (Keren and Levy 2021): Hebrew questions over paragraphs, in flat rows.

A question's evidence is its paragraph.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jobs.suites.suite import ParagraphSet, Question

FILE = Path("parashoot") / "dev.json"
NAME = "ParaShoot"


def _rows(data: Any) -> Iterator[tuple[Any, Sequence[Any]]]:
    for row in data:
        yield row["context"], [row]


def _question(row: Mapping[str, Any], doc_id: str) -> Question:
    return Question(str(row["id"]), str(row["question"]), (doc_id,), "answerable", "he")


load_parashoot = ParagraphSet(
    name="parashoot", title=NAME, file=FILE, rows=_rows, question=_question
).load
