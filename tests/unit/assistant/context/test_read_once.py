"""One question of a prefetch is read once, by whichever reader comes first."""

import pytest

from rayapp.assistant.records import ContextRequest
from rayapp.memory.scope import ReadScope
from rayapp.text import normalize
from rayapp.text.utterance import reading
from tests.support.harness import Harness

QUESTIONS = (
    "What did Dana say about the boiler?",
    "מה דנה אמרה על הדוד — ומתי בדיוק?",
    "Tell me what Dana said of the boiler, please, " * 8,
    "ספרי לי בבקשה מה דנה אמרה על הדוד של השכנים, " * 8,
)


@pytest.mark.parametrize("question", QUESTIONS, ids=["en", "he", "long en", "long he"])
async def test_a_question_is_normalised_once(
    question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await Harness.open()
    for number in range(12):
        await service.store(f"דנה אמרה שהדוד {number} חם", memory_id=f"d-{number}")
    await service.drain()
    begins, inner = question[:30], normalize.normal_form
    read: list[str] = []

    def counted(text: str) -> str:
        if text.startswith(begins):
            read.append(text)
        return inner(text)

    monkeypatch.setattr(normalize, "normal_form", counted)
    monkeypatch.setattr(normalize, "_kept_form", reading(counted))
    request = ContextRequest(query=question, conversation_id="c", message_id="m")
    found = await service.services.context.prefetch(ReadScope("dana"), request)
    assert found.search is not None
    assert read == [question]
