"""The features backend behind the gateway: the contract of `Reranker`, with the shipped weights."""

import asyncio
import json
from pathlib import Path

import pytest

from rayapp.container import bootstrap
from rayapp.core.errors import ConfigError
from rayapp.core.metrics import InMemoryMetrics
from rayapp.core.settings.model import RerankerSettings, Settings
from rayapp.inference.ports import Reranker
from rayapp.inference.reranking import RerankService
from rayapp.search import feature_reranker as features_rerank
from rayapp.search.feature_reranker import BUNDLED, FeaturesRerankBackend

NOTES = {
    "en": [
        "The spare key is with Mrs. Okafor at number 12.",
        "I water the plants of the neighbours in August.",
        "Our key account is a bakery.",
        "My daughter Lia is afraid of balloons.",
    ],
    "he": [
        "המפתח הרזרבי נמצא אצל גברת כהן במספר 12.",
        "אני משקה את העציצים של השכנים באוגוסט.",
        "הלקוח הכי גדול שלנו הוא מאפייה.",
        "הבת שלי ליה מפחדת מבלונים.",
    ],
}
ASKED = [
    ("en", "Who has the spare key?", 0),
    ("en", "What is my daughter scared of?", 3),
    ("he", "אצל מי המפתח הרזרבי?", 0),
    ("he", "ממה הבת שלי מפחדת?", 3),
]


def service(**reranker: object) -> RerankService:
    settings = Settings().model_copy(
        update={"reranker": RerankerSettings.model_validate({"backend": "features", **reranker})}
    )
    return bootstrap.rerank_service(settings, InMemoryMetrics())


@pytest.fixture(scope="module")
def reranker() -> RerankService:
    return service()


@pytest.mark.parametrize(("lang", "question", "answer"), ASKED)
async def test_the_answer_is_the_most_probable(
    reranker: Reranker, lang: str, question: str, answer: int
) -> None:
    scores = await reranker.rerank(question, NOTES[lang], timeout_s=2.0)
    assert scores is not None
    assert len(scores) == len(NOTES[lang])
    assert all(0.0 < score < 1.0 for score in scores)
    assert max(range(len(scores)), key=scores.__getitem__) == answer


async def test_equal_calls_get_equal_answers(reranker: Reranker) -> None:
    first = await reranker.rerank("spare key", NOTES["en"], timeout_s=2.0)
    await reranker.rerank("מפתח", NOTES["he"], timeout_s=2.0)
    assert await reranker.rerank("spare key", NOTES["en"], timeout_s=2.0) == first


async def test_all_candidates_are_compared_in_one_call() -> None:
    """Cut into batches a candidate would be compared with others."""
    texts = [f"note {number} about the spare key" for number in range(60)]
    texts[7] = "The spare key hangs behind the door."
    wide = service(max_candidates=60, batch={"max_size": 4})
    whole = await wide.rerank("Where is the spare key?", texts, timeout_s=2.0)
    alone = await FeaturesRerankBackend().logits("Where is the spare key?", texts)
    assert whole is not None
    order = sorted(range(60), key=lambda at: (-alone[at], at))
    assert sorted(range(60), key=lambda at: (-whole[at], at)) == order


async def test_texts_without_words_are_no_error(reranker: Reranker) -> None:
    assert await reranker.rerank("?", ["", "...", "🙂"], timeout_s=2.0) is not None
    assert await reranker.rerank("key", [], timeout_s=2.0) == []


async def test_long_texts_leave_the_loop_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features_rerank, "INLINE_CHARS", 10)
    backend = FeaturesRerankBackend()
    texts = ["the spare key is here " * 20] * 5
    first, second = await asyncio.gather(
        backend.logits("spare key", texts), backend.logits("spare key", texts)
    )
    assert first == second
    await backend.close()


async def test_health_names_the_model(reranker: RerankService) -> None:
    assert (await reranker.health())["backend"] == json.loads(BUNDLED.read_text())["name"]


@pytest.mark.parametrize("content", ["not json", "{}", None])
def test_weights_that_cannot_be_read(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "weights.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=r"jobs\.build\.reranker"):
        FeaturesRerankBackend(weights=path)
