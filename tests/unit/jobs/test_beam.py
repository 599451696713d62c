"""BEAM and the mixed store as suites."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jobs.suites.beam import load_beam, load_beam_exchanges
from jobs.suites.mixed import load_mixed
from rayapp.core.errors import ConfigError

CHAT = {
    "id": 3,
    "messages": [
        [0, "user", "March-15-2024", "I planted 12 tulips."],
        [1, "assistant", "", "Well done."],
        [2, "user", "", "And 3 roses."],
        [3, "assistant", "", "Roses need sun."],
        [4, "user", "April-02-2024", "One rose died."],
    ],
    "questions": [
        {"ability": "several", "question": "How many plants?", "gold": [0, 2, 3]},
        {"ability": "abstention", "question": "Which shop?", "gold": []},
    ],
}
TURN = {"speaker": "Dana", "dia_id": "D1:1", "text": "I moved to Haifa."}
DIALOGUE = {
    "sample_id": "c1",
    "conversation": {"session_1": [TURN], "session_1_date_time": "1:56 pm on 8 May, 2023"},
    "qa": [
        {"question": "Where does Dana live?", "evidence": ["D1:1"], "category": 4},
        {"question": "Where is it said?", "evidence": ["D1:1"], "category": 5},
    ],
}
PARAGRAPH = {
    "context": "חיפה היא עיר.",
    "qas": [{"id": "q1", "question": "מה זאת חיפה?", "is_impossible": False}],
}
ADVICE = {"id": 1, "good_advice": "Drink water.", "bad_advice": "Drink tea.", "query": "thirsty?"}
FILES: dict[str, Any] = {
    "beam/beam-100k-1to8.json": [CHAT],
    "locomo/locomo-open5.json": [DIALOGUE],
    "heq/heq-v1.1-val.json": {"data": [{"title": "Haifa", "paragraphs": [PARAGRAPH]}]},
    "outcomes/adversarial-30.json": [ADVICE],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(content), encoding="utf-8")
    return tmp_path


def test_a_message_is_a_memory_of_its_session(data: Path) -> None:
    (chat,) = load_beam(data).corpora
    assert [one.doc_id for one in chat.documents] == ["0", "1", "2", "3", "4"]
    assert chat.documents[3].text == "Roses need sun."
    assert chat.documents[3].created_at == datetime(2024, 3, 15, tzinfo=UTC)
    assert chat.documents[4].created_at == datetime(2024, 4, 2, tzinfo=UTC)
    assert [(one.category, one.gold) for one in chat.questions] == [
        ("several", ("0", "2", "3")),
        ("abstention", ()),
    ]


def test_an_exchange_holds_what_both_said(data: Path) -> None:
    (chat,) = load_beam_exchanges(data).corpora
    assert [one.doc_id for one in chat.documents] == ["0", "2", "4"]
    assert chat.documents[1].text == "user: And 3 roses.\nassistant: Roses need sun."
    assert chat.questions[0].gold == ("0", "2")


def test_a_file_of_another_shape_is_one_sentence(data: Path) -> None:
    (data / "beam/beam-100k-1to8.json").write_text('[{"id": 1}]', encoding="utf-8")
    with pytest.raises(ConfigError, match="no rows of BEAM"):
        load_beam(data)


def test_a_mixed_user_has_all_sets_and_their_answerable_questions(data: Path) -> None:
    (user,) = load_mixed(data).corpora
    assert {one.doc_id.partition(":")[0] for one in user.documents} == {
        "locomo",
        "beam",
        "heq",
        "advice",
    }
    there = {one.doc_id for one in user.documents}
    assert [one.category for one in user.questions] == ["locomo", "beam", "heq"]
    assert all(one.gold and there.issuperset(one.gold) for one in user.questions)
