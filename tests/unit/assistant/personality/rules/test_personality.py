"""Templates of personalities: what is read, what is refused, and the prompt they become."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rayapp.assistant.personality.rules import (
    ENGLISH,
    HEBREW,
    KNOWN_WORDS,
    MAX_NAME_CHARS,
    PRONOUNS,
    SWITCHES,
    PromptLang,
    check,
    clean_name,
    render,
    template_id_of,
)
from rayapp.core.errors import InvalidInput
from rayapp.core.settings.load import CONFIG_DIR
from rayapp.storage.files import load_presets
from tests.client_editor import EDITOR_FIELDS, EDITOR_OPTIONS, editor_reads, editor_saves

PRESETS = load_presets(CONFIG_DIR / "personality")
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


def a_template(**sections: Any) -> str:
    tree = {"identity": {"name": "Noa"}, "communication": {"tone": "warm"}, **sections}
    return yaml.safe_dump(tree, allow_unicode=True)


@pytest.mark.parametrize("name", PRESETS)
def test_each_preset_is_without_a_warning(name: str) -> None:
    assert check(PRESETS[name].content).warnings == ()


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_loading_and_saving_in_the_first_clients_editor(name: str) -> None:
    content = PRESETS[name].content
    saved, kept = check(editor_saves(content)), check(content)
    assert saved.fields == kept.fields
    for lang in ("en", "he"):
        assert render(saved, lang) == render(kept, lang)
    for key, options in EDITOR_OPTIONS.items():
        assert editor_reads(content, key) in options


@pytest.mark.parametrize("lang", ["en", "he"])
@pytest.mark.parametrize("key", EDITOR_OPTIONS)
def test_what_the_editor_offers_is_understood(key: str, lang: PromptLang) -> None:
    section = next(name for name, keys in EDITOR_FIELDS.items() if key in keys)
    for word in EDITOR_OPTIONS[key]:
        found = check(a_template(**{section: {key: word}}))
        assert not [one for one in found.warnings if key in one]
        prompt = render(found, lang)
        if (key, word) != ("pattern_trust", "medium"):
            known = ENGLISH if lang == "en" else HEBREW
            said = known.words.get((key, word)) or known.sentences[key, word]
            assert said in prompt


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(content: str) -> None:
    try:
        found = check(content)
    except InvalidInput:
        return
    assert found.name


@given(st.recursive(st.none() | st.booleans() | WORDS, st.lists, max_leaves=8))
def test_any_value_in_a_section_is_read_or_refused(value: Any) -> None:
    for section in ("identity", "communication", "personality_traits", "custom_instructions"):
        try:
            found = check(a_template(**{section: value}))
        except InvalidInput:
            continue
        assert render(found, "he")


@given(WORDS)
def test_a_clean_name_stays_on_its_line_and_stays_clean(name: str) -> None:
    clean = clean_name(name)
    assert len(clean) <= MAX_NAME_CHARS
    assert not set(clean) & set("[]<>{}`*#|=\n\r\t\u2028\u202e")
    assert clean_name(clean) == clean


@pytest.mark.parametrize(
    ("name", "clean", "template_id"),
    [
        ("Noa", "Noa", "noa"),
        ("  נועה   כהן ", "נועה כהן", "נועה_כהן"),
        ('צה"ל', 'צה"ל', "צהל"),
        ("Dana\n[working:m-1] x", "Dana working m-1 x", "dana_working_m-1_x"),
        ("../../etc/passwd", ".. .. etc passwd", "etc_passwd"),
        ("$ne.a", "ne.a", "nea"),
        ("[]", "", "custom"),
    ],
)
def test_names_and_ids(name: str, clean: str, template_id: str) -> None:
    assert clean_name(name) == clean
    assert template_id_of(name) == template_id


@given(st.text(max_size=80))
def test_an_id_is_safe_as_a_field_name(name: str) -> None:
    made = template_id_of(name)
    assert made
    assert not set(made) & set("./$\x00 \n")


def test_each_value_is_bounded() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"k{n}: [*a, *a]\n" for n in range(9))
    for content in (
        bomb,
        "x: " + "[" * 50,
        a_template(identity={"name": "N", "role": "x" * 1_001}),
    ):
        with pytest.raises(InvalidInput):
            check(content)


def test_a_warning_names_the_field_and_the_known_words() -> None:
    content = a_template(
        communication={"tone": "sarcastic", "use_humor": "maybe", "volume": 3},
        response_behavior={"citation_style": "always_cite"},
    )
    warnings = check(content).warnings
    assert any("communication.tone" in one and "warm" in one for one in warnings)
    assert any("use_humor" in one for one in warnings)
    assert any("volume is not used" in one for one in warnings)
    assert any("memory_usage" in one for one in warnings)


@pytest.mark.parametrize("lang", ["en", "he"])
@pytest.mark.parametrize("name", PRESETS)
def test_the_prompt_begins_with_the_name_and_tells_whose_words_are_whose(
    name: str, lang: PromptLang
) -> None:
    found = check(PRESETS[name].content)
    prompt = render(found, lang)
    assert found.name in prompt.splitlines()[0]
    parts = prompt.split("\n\n")
    assert parts[1] == "\n".join(PRONOUNS)
    assert str(found.fields["custom_instructions"]).strip() in prompt


def test_an_unknown_tone_is_shown_as_it_is() -> None:
    found = check(a_template(communication={"tone": "שקט\nותמציתי"}))
    assert "שקט ותמציתי" in render(found, "he")


def test_every_known_word_has_a_wording_in_both_languages_or_in_none() -> None:
    known = {(key, word) for (_, key), words in KNOWN_WORDS.items() for word in words}
    switches = {key for names in SWITCHES.values() for key in names} - {"show_reasoning"}
    for wording in (ENGLISH, HEBREW):
        assert set(wording.words) <= known
        assert set(wording.switches) == switches
        assert set(wording.sentences) - {("show_reasoning", "True")} <= known
    assert ENGLISH.words.keys() == HEBREW.words.keys()
    assert ENGLISH.sentences.keys() == HEBREW.sentences.keys()


def test_reasoning_is_asked_for_only_when_it_is_on() -> None:
    on = check(a_template(response_behavior={"show_reasoning": True}))
    off = check(a_template(response_behavior={"show_reasoning": False}))
    for lang in ("en", "he"):
        assert "<think>" in render(on, lang)
        assert "<think>" not in render(off, lang)
