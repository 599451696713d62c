"""Tiny sets and a tiny model for the jobs that measure, written by the test that asks."""

import json
from pathlib import Path

from jobs.build.static import build
from tests.unit.jobs.build.tiny import write_english

PARAGRAPHS = 6


def write_heq(data: Path) -> None:
    """Paragraphs with one question that they answer and one that they do not."""
    articles = [
        {
            "title": f"ערך {number}",
            "paragraphs": [
                {
                    "context": f"דנה גרה ברחוב מספר {number} ומגדלת שם חתולים ופרחים.",
                    "qas": [
                        {"id": f"yes-{number}", "question": f"מי גרה ברחוב מספר {number}?",
                         "is_impossible": False},
                        {"id": f"no-{number}", "question": "מתי נולד המלך?",
                         "is_impossible": True},
                    ],
                }
            ],
        }
        for number in range(PARAGRAPHS)
    ]  # fmt: skip
    folder = data / "heq"
    folder.mkdir(parents=True)
    text = json.dumps({"data": articles}, ensure_ascii=False)
    (folder / "heq-v1.1-val.json").write_text(text, encoding="utf-8")


def write_static(folder: Path, name: str) -> Path:
    """The artefact of a static model called `name`."""
    build(write_english(folder / "english"), folder / "model", name=name, origin="a test",
          langs=["en"])  # fmt: skip
    return folder / "model"
