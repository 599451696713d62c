"""When memory says that it knows nothing, and when it does not although all of it is far."""

from __future__ import annotations

import pytest

from rayapp.core.errors import ConfigError
from rayapp.core.settings.load import CONFIG_DIR
from rayapp.search.rules.candidates import Reach
from rayapp.search.rules.knowledge import (
    CROSSED_SIGNALS,
    ENCODED_SIGNALS,
    KINDS,
    REASONS,
    SIGNALS,
    Form,
    Forms,
    KnowledgeModel,
    KnowledgeRule,
    assess_knowledge,
    parse_knowledge,
    signals_of,
)
from rayapp.storage.files import load_forms, load_knowledge

MODEL = KnowledgeModel(
    weights=dict.fromkeys(SIGNALS, 0.0) | {"nearest": 10.0, "covered": 10.0},
    bias=-5.0,
    least=0.3,
    sure=0.8,
)
FAR = Reach(memories=100, nearest=0.1, covered=0.5, mass=20.0, unknown=15.0, holders={})
BETWEEN = Reach(memories=100, nearest=0.3, covered=4.0, mass=20.0, unknown=5.0, holders={})
NEAR = Reach(memories=100, nearest=0.6, covered=10.0, mass=20.0, unknown=0.0, holders={})
WORDS = Form(words=((1,), (2,), (3,)))


@pytest.fixture(scope="module")
def forms() -> Forms:
    return load_forms(CONFIG_DIR / "knowledge")


@pytest.mark.parametrize(
    ("reach", "known", "reason"),
    [(FAR, "no", "far"), (BETWEEN, "unsure", "between"), (NEAR, "yes", "near")],
)
def test_by_how_far_all_of_it_is(reach: Reach, known: str, reason: str) -> None:
    found = assess_knowledge(reach, WORDS, MODEL, None)
    assert (found.known, found.reason) == (known, reason)
    assert found.reason in REASONS


def test_nothing_is_far_with_a_bound_of_0() -> None:
    assert assess_knowledge(FAR, WORDS, MODEL, 0.0).known == "unsure"


def test_a_caller_may_ask_for_more_than_the_model() -> None:
    assert assess_knowledge(NEAR, WORDS, MODEL, 1.0).known == "no"


def test_few_memories_are_all_told() -> None:
    few = FAR._replace(memories=9)
    assert assess_knowledge(few, WORDS, MODEL, None).reason == "few_memories"


def test_who_asks_memory_itself_is_answered() -> None:
    found = assess_knowledge(FAR, Form(of_memory=True), MODEL, None)
    assert (found.known, found.reason) == ("unsure", "of_memory")


@pytest.mark.parametrize(
    "asked",
    [
        "What did I say about the flat?",
        "what did we talk about last week",
        "Do you remember my shoe size?",
        "who am I?",
        "מה אמרתי על הדירה?",
        "על מה דיברנו בשבוע שעבר",
        "אתה זוכר את מידת הנעליים שלי?",
        "תזכיר לי מה החלטנו",
    ],
)
def test_a_message_that_asks_memory(forms: Forms, asked: str) -> None:
    assert forms.read(asked).of_memory


@pytest.mark.parametrize(
    ("asked", "talk", "order", "words"),
    [
        ("thanks!", True, False, 1),
        ("Write a poem about the sea", False, True, 3),
        ("Where is the spare key?", False, False, 2),
        ("Good morning! Where do I live?", False, False, 3),
        ("בוקר טוב! איפה אני גרה?", False, False, 3),
        ("תודה רבה", True, False, 2),
        ("תכתוב שיר על הים", False, True, 3),
        ("איפה המפתח הרזרבי?", False, False, 2),
        ("", False, False, 0),
    ],
)
def test_what_kind_of_message_it_is(
    forms: Forms, asked: str, talk: bool, order: bool, words: int
) -> None:
    form = forms.read(asked)
    assert (form.small_talk, form.order, len(form.words)) == (talk, order, words)


def test_names_are_capitals_inside_the_text(forms: Forms) -> None:
    assert len(forms.read("When did Caroline meet Mel's aunt?").names) == 2
    assert forms.read("Where am I going? caroline").names == ()


def test_what_is_asked_in_another_language_is_told_unless_it_is_talk_or_an_order() -> None:
    own = Form(of_self=True, order=True)
    for form in (own, WORDS):
        assert assess_knowledge(FAR, form, MODEL, None, crosses=True).reason == "other_language"
        assert assess_knowledge(FAR, form, MODEL, None, crosses=False).known == "no"
    for general in (Form(small_talk=True), Form(order=True)):
        assert assess_knowledge(FAR, general, MODEL, None, crosses=True).known == "no"


def test_signals_of_a_question_without_words() -> None:
    empty = Reach(memories=0, nearest=0.0, covered=0.0, mass=0.0, unknown=0.0, holders={})
    assert set(signals_of(empty, Form())) == set(SIGNALS)


def test_the_shipped_weights_are_whole_and_say_where_they_are_from() -> None:
    rule = load_knowledge(CONFIG_DIR / "knowledge", "bilingual-static-1")
    assert rule is not None
    assert 0.0 < rule.model.least < rule.model.sure < 1.0
    assert "CC BY 4.0" in rule.model.source
    weights = rule.model.weights
    assert weights["nearest"] > 0 > weights["small_talk"]


def test_an_embedder_without_weights_is_never_silent() -> None:
    assert load_knowledge(CONFIG_DIR / "knowledge", "another-model") is None


def test_weights_of_other_signals_are_refused() -> None:
    with pytest.raises(ConfigError, match="nearest"):
        parse_knowledge("x", {"weights": {"covered": 1.0}, "bias": 0.0})


READ = FAR._replace(
    encoder_nearest=0.7, encoder_gap=0.02, kinds=dict.fromkeys(KINDS, 0.1) | {"goal": 0.6}
)


def test_what_the_encoder_says_is_a_signal_where_it_took_part() -> None:
    assert set(signals_of(FAR, WORDS)) == set(SIGNALS)
    assert set(signals_of(READ, WORDS)) == set(ENCODED_SIGNALS)
    # Without its heads it is not heard.
    assert set(signals_of(READ._replace(kinds=None), WORDS)) == set(SIGNALS)


def test_the_model_is_that_of_what_took_part(forms: Forms) -> None:
    crossed = KnowledgeModel(weights=dict.fromkeys(CROSSED_SIGNALS, 0.0), bias=0.0)
    encoded = KnowledgeModel(weights=dict.fromkeys(ENCODED_SIGNALS, 0.0), bias=0.0, crossed=crossed)
    both = KnowledgeRule(MODEL, forms, encoded)
    assert both.model_for(READ, crosses=False) is encoded
    assert both.model_for(READ, crosses=True) is crossed
    assert both.model_for(FAR, crosses=True) is MODEL
    assert KnowledgeRule(MODEL, forms).model_for(READ, crosses=False) is MODEL


def test_what_the_shipped_encoder_weighs_of_another_language() -> None:
    rule = load_knowledge(CONFIG_DIR / "knowledge", "bilingual-static-1", "e5-small-he-en-1")
    assert rule is not None
    far = READ._replace(nearest=0.2, encoder_nearest=0.76, encoder_gap=0.01)
    near = READ._replace(nearest=0.6, encoder_nearest=0.88, encoder_gap=0.06)
    model = rule.model_for(far, crosses=True)
    assert assess_knowledge(far, WORDS, model, None).known == "no"
    assert assess_knowledge(near, WORDS, model, None).known == "yes"


def test_weights_of_another_language_are_of_its_own_signals() -> None:
    tree = {"weights": dict.fromkeys(ENCODED_SIGNALS, 1.0), "bias": 0.0}
    tree["crossed"] = {"weights": {"words": 1.0}, "bias": 0.0}
    with pytest.raises(ConfigError, match="words"):
        parse_knowledge("x", tree, ENCODED_SIGNALS, CROSSED_SIGNALS)
