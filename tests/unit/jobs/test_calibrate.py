"""The fit of confidence: it finds what is there, by folds that share no paragraph."""

from pathlib import Path

import numpy as np
import pytest

from jobs.calibrate import NAMES, Example, auc, fit, folds, held_out, load_pairs, logistic, matrix
from rayapp.container import bootstrap
from rayapp.core.errors import ConfigError
from rayapp.core.settings.load import CONFIG_DIR
from rayapp.search.rules.confidence import (
    Calibration,
    Features,
    calibrated,
    features_of,
    file_name,
    parse_calibration,
    relevance,
)
from rayapp.search.rules.recipes import ConfidenceModel, Recipe
from rayapp.storage.files import load_calibration


def examples(count: int = 400) -> list[Example]:
    """Answers follow the passage and nothing else; 4 questions per paragraph."""
    drawn = np.random.default_rng(7)
    made = []
    for number in range(count):
        passage = float(drawn.random())
        answers = bool(drawn.random() < 1.0 / (1.0 + np.exp(-(8.0 * passage - 4.0))))
        features = Features(float(drawn.random()), float(drawn.random()), passage, 1.0)
        made.append(Example(features, answers, answers, f"p{number // 4}", "own"))
    return made


def test_the_fit_finds_what_decides() -> None:
    fitted = fit(examples())
    assert fitted.weights["passage"] > 4.0
    assert abs(fitted.weights["cosine"]) < 1.0
    assert fitted.measured["auc"] > 0.85
    assert fitted.measured["refused"] <= 0.09
    assert fitted.medium < fitted.high


def test_questions_of_a_paragraph_share_a_fold() -> None:
    made = examples()
    by_group: dict[str, set[int]] = {}
    for one, fold in zip(made, folds(made), strict=True):
        by_group.setdefault(one.group, set()).add(int(fold))
    assert all(len(found) == 1 for found in by_group.values())
    assert len(set(folds(made).tolist())) == 10


def test_held_out_predictions_do_not_see_their_own_answers() -> None:
    """Labels without a pattern stay unpredictable; a leak would predict them."""
    made = examples()
    x, _ = matrix(made)
    noise = np.random.default_rng(3).integers(0, 2, len(made)).astype(float)
    assert abs(auc(held_out(x, noise, folds(made)), noise) - 0.5) < 0.08


def test_a_weight_never_has_the_wrong_sign() -> None:
    x, y = matrix(examples())
    x[:, NAMES.index("coverage")] = 1.0 - x[:, NAMES.index("passage")]
    raw = logistic(x, y)
    assert raw[1 + NAMES.index("coverage")] >= 0.0
    assert raw[1 + NAMES.index("passage")] > 0.0


def test_auc_counts_pairs() -> None:
    held, y = np.array([0.1, 0.4, 0.4, 0.9]), np.array([0.0, 0.0, 1.0, 1.0])
    assert auc(held, y) == pytest.approx(3.5 / 4)


def test_our_own_pairs_hold_both_languages_and_both_kinds() -> None:
    own = load_pairs()
    texts = [question.text for question in own.questions]
    hebrew = sum("א" <= letter <= "ת" for text in texts for letter in text[:1])
    assert 0.3 < hebrew / len(texts) < 0.7
    assert sum(bool(q.gold) for q in own.questions) == len(texts) / 2
    assert len(set(texts)) == len(texts)


def test_pairs_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    bad = tmp_path / "pairs.yaml"
    bad.write_text("- nothing: here", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"pairs\.yaml"):
        load_pairs(bad)


@pytest.mark.parametrize("model", ["potion-base-8m-int8", "bilingual-static-1"])
def test_the_bundled_embedders_are_calibrated_for_every_recipe(model: str) -> None:
    found = load_calibration(CONFIG_DIR / "calibration", model)
    assert found is not None
    made = calibrated(bootstrap.load_texts().recipes, found, model)
    assert made.notice is None
    for recipe in made.recipes.values():
        model_of = recipe.confidence
        weak, strong = Features(0.1, 0.0, 0.0, 1.8), Features(0.8, 1.0, 1.0, 1.8)
        assert relevance(weak, model_of) < model_of.medium < model_of.high
        assert relevance(strong, model_of) >= model_of.medium


def test_a_missing_calibration_says_what_to_run() -> None:
    recipes = {"default": Recipe(name="default"), "mine": Recipe(name="mine")}
    none = calibrated(recipes, None, "org/model")
    assert none.recipes == recipes
    assert "embedder org/model" in str(none.notice)
    assert "python -m jobs.calibrate --data DIR`" in str(none.notice)
    fitted = ConfidenceModel(bias=1.0)
    some = calibrated(recipes, Calibration(recipes={"default": fitted}), "m")
    assert some.recipes["mine"].confidence == fitted
    assert "python -m jobs.calibrate --data DIR --recipe mine`" in str(some.notice)


def test_a_recipe_that_sets_its_confidence_keeps_it() -> None:
    own = ConfidenceModel(bias=3.0)
    recipes = {"mine": Recipe(name="mine", confidence=own)}
    made = calibrated(recipes, Calibration(recipes={"mine": ConfidenceModel()}), "m")
    assert made.recipes["mine"].confidence == own


def test_files_of_calibrations(tmp_path: Path) -> None:
    assert file_name("/models/bge m3") == "models_bge_m3.yaml"
    assert load_calibration(tmp_path, "m") is None
    (tmp_path / "m.yaml").write_text("recipes: {default: {bias: x}}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"Calibration m: recipes\.default\.bias"):
        load_calibration(tmp_path, "m")
    with pytest.raises(ConfigError, match="recipes"):
        parse_calibration("m", {"recipes": {}})


@pytest.mark.parametrize(
    ("question", "text", "missing"),
    [
        ("how many eggs are in the cake?", "The cake needs three eggs.", 0.0),
        ("how many eggs are in the cake?", "The cake needs eggs and sugar.", 1.0),
        ("what is in the cake?", "The cake needs eggs and sugar.", 0.0),
        ("how many of the 7 eggs are left?", "Some of the 7 eggs are left.", 1.0),
        ("כמה ביצים יש בעוגה?", "בעוגה יש שלוש ביצים.", 0.0),
        ("כמה ביצים יש בעוגה?", "בעוגה יש ביצים וסוכר.", 1.0),
        ("מתי הפגישה עם דנה?", "הפגישה עם דנה במרץ.", 0.0),
        ("מתי הפגישה עם דנה?", "הפגישה עם דנה במשרד.", 1.0),
    ],
)
def test_a_number_that_is_asked_for_must_be_there(question: str, text: str, missing: float) -> None:
    assert features_of(question, text, 0.5).number_missing == missing


@pytest.mark.parametrize(
    ("question", "near", "far"),
    [
        (
            "where does Dana keep the passport",
            "Dana keeps the passport in a drawer. It rained.",
            "Dana is here today. The passport office opens at nine. People keep waiting.",
        ),
        (
            "איפה דנה שומרת את הדרכון",
            "דנה שומרת את הדרכון במגירה. ירד גשם.",
            "דנה נמצאת כאן היום. משרד הדרכונים נפתח בתשע. אנשים שומרים על התור.",
        ),
    ],
)
def test_words_of_one_sentence_say_more_than_scattered_ones(
    question: str, near: str, far: str
) -> None:
    close, scattered = features_of(question, near, None), features_of(question, far, None)
    assert close.cosine == 0.0
    assert close.passage > scattered.passage


@pytest.mark.parametrize(
    ("question", "text"), [("", "text"), ("the", ""), ("???", "!"), ("a", "b")]
)
def test_empty_questions_and_texts_have_features(question: str, text: str) -> None:
    features = features_of(question, text, None)
    assert features.coverage == features.passage == 0.0
