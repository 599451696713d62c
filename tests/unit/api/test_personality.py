"""Personalities: presets, templates of the user, the one in use and its prompt."""

from typing import Any

import httpx
import pytest

from rayapp.assistant.personality.rules import MAX_CHARS, MAX_TEMPLATES, PRONOUNS
from tests.unit.api.test_ghost import NOA

PERSONALITY = "/api/memory/personality"
PRESETS = f"{PERSONALITY}/presets"
YAML = """identity:
  name: נועה
  role: עוזרת מטבח
communication:
  tone: warm
"""


async def saved(api: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    response = await api.post(PERSONALITY, json={"content": YAML, **body})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def in_use(api: httpx.AsyncClient, **headers: str) -> dict[str, Any]:
    response = await api.get(PERSONALITY, headers=headers)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def test_who_never_chose_has_the_default_in_both_forms(api: httpx.AsyncClient) -> None:
    found = await in_use(api)
    assert (found["template_id"], found["personality"]["isDefault"]) == ("default", True)
    assert found["content"] == found["personality"]["content"]
    assert found["personality"]["name"] == found["name"]
    assert found["warnings"] == []


async def test_the_presets_are_an_array_and_each_can_be_read(api: httpx.AsyncClient) -> None:
    rows = (await api.get(PRESETS)).json()["presets"]
    assert [row["id"] for row in rows] == ["creative", "default", "friendly", "technical"]
    assert all(row["name"] and row["description"] and row["type"] == "preset" for row in rows)
    assert [row["id"] for row in rows if row["active"]] == ["default"]
    for row in rows:
        one = (await api.get(PRESETS, params={"id": row["id"]})).json()
        assert one["content"].startswith("#")
        assert one["id"] == row["id"]


@pytest.mark.parametrize("field", ["content", "yaml_content"])
async def test_a_saved_template_is_in_use_at_the_next_request(
    api: httpx.AsyncClient, field: str
) -> None:
    body = {field: YAML, "name": "custom"}
    answer = (await api.post(PERSONALITY, json=body)).json()
    assert (answer["success"], answer["template_id"]) == (True, "custom")
    assert (answer["assistant_name"], answer["overwrite"]) == ("נועה", False)
    found = await in_use(api)
    assert (found["template_id"], found["content"]) == ("custom", YAML)
    assert found["personality"]["isDefault"] is False


async def test_names_of_the_first_client_are_taken(api: httpx.AsyncClient) -> None:
    body = {"yaml_content": YAML, "preset_name": "המטבח שלי", "preset_description": "לבישול"}
    assert (await api.post(PERSONALITY, json=body)).json()["template_id"] == "המטבח_שלי"
    row = (await api.get(PRESETS)).json()["presets"][-1]
    assert (row["id"], row["name"], row["description"], row["type"], row["active"]) == (
        "המטבח_שלי",
        "המטבח שלי",
        "לבישול",
        "custom",
        True,
    )
    assert (await api.get(PRESETS, params={"id": "המטבח שלי"})).json()["content"] == YAML


async def test_a_template_without_a_name_is_custom(api: httpx.AsyncClient) -> None:
    assert (await saved(api))["template_id"] == "custom"
    assert (await saved(api))["overwrite"] is True


async def test_the_text_of_a_preset_is_that_preset(api: httpx.AsyncClient) -> None:
    content = (await api.get(PRESETS, params={"id": "friendly"})).json()["content"]
    answer = await saved(api, content=f"\n{content}", name="custom")
    assert (answer["template_id"], answer["preset"]) == ("friendly", True)
    assert len((await api.get(PRESETS)).json()["presets"]) == 4


@pytest.mark.parametrize("body", [{"template_id": "technical"}, {"name": "technical"}])
async def test_a_preset_is_used_by_its_name(api: httpx.AsyncClient, body: dict[str, str]) -> None:
    assert (await api.post(PERSONALITY, json=body)).status_code == 200
    assert (await in_use(api))["template_id"] == "technical"


async def test_saving_need_not_activate(api: httpx.AsyncClient) -> None:
    assert (await saved(api, name="later", activate=False))["activated"] is False
    assert (await in_use(api))["template_id"] == "default"


async def test_a_preset_is_read_only(api: httpx.AsyncClient) -> None:
    for name in ("friendly", "Friendly!"):
        refused = await api.post(PERSONALITY, json={"content": YAML, "name": name})
        assert (refused.status_code, refused.json()["code"]) == (409, "preset")
    refused = await api.delete(PERSONALITY, params={"id": "friendly"})
    assert (refused.status_code, refused.json()["code"]) == (409, "preset")


async def test_the_template_in_use_cannot_be_deleted(api: httpx.AsyncClient) -> None:
    await saved(api, name="mine")
    refused = await api.delete(PERSONALITY, params={"id": "mine"})
    assert (refused.status_code, refused.json()["code"]) == (409, "template_in_use")
    await api.post(PERSONALITY, json={"template_id": "default"})
    assert (await api.delete(PERSONALITY, params={"id": "mine"})).status_code == 200
    assert (await api.delete(PERSONALITY, params={"id": "mine"})).status_code == 404
    assert (await api.get(PRESETS, params={"id": "mine"})).status_code == 404


async def test_templates_are_those_of_the_user(api: httpx.AsyncClient) -> None:
    await saved(api, name="mine")
    assert (await in_use(api, **NOA))["template_id"] == "default"
    assert (await api.get(PRESETS, params={"id": "mine"}, headers=NOA)).status_code == 404
    gone = await api.delete(PERSONALITY, params={"id": "mine"}, headers=NOA)
    assert gone.status_code == 404


@pytest.mark.parametrize(
    "content",
    [
        "",
        "just words",
        "- a\n- b",
        "identity: {name: Noa}",
        "communication: {tone: warm}",
        "identity: {role: x}\ncommunication: {tone: warm}",
        "identity: {name: '][!'}\ncommunication: {tone: warm}",
        "identity: Noa\ncommunication: {tone: warm}",
        f"{YAML}plugins: [x]",
        f"{YAML}identity:\n  name: Twice\n",
        f"{YAML}personality_traits: brave",
        "a: &a [x]\nb: [*a, *a]",
        "!!python/object/apply:os.system [ls]",
        "identity: [",
        f"{YAML}---\n{YAML}",
        "[" * 2_000,
    ],
)
async def test_a_template_that_cannot_be_used_is_400(api: httpx.AsyncClient, content: str) -> None:
    refused = await api.post(PERSONALITY, json={"name": "custom", "content": content})
    body = refused.json()
    assert (refused.status_code, body["code"], body["success"]) == (400, "bad_template", False)
    assert body["error"] == body["message"]
    assert (await in_use(api))["template_id"] == "default"


async def test_a_template_that_is_too_long_is_413(api: httpx.AsyncClient) -> None:
    content = f"{YAML}custom_instructions: {'x' * MAX_CHARS}"
    refused = await api.post(PERSONALITY, json={"content": content})
    assert refused.status_code == 413


@pytest.mark.parametrize(
    "body", [{}, {"activate": False, "name": "x"}, {"content": 5}, {"content": YAML, "name": ""}]
)
async def test_bad_fields_are_422(api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    assert (await api.post(PERSONALITY, json=body)).status_code == 422


async def test_an_unknown_template_is_404(api: httpx.AsyncClient) -> None:
    assert (await api.post(PERSONALITY, json={"template_id": "nobody"})).status_code == 404


async def test_a_user_keeps_only_so_many(api: httpx.AsyncClient) -> None:
    for n in range(MAX_TEMPLATES):
        await saved(api, name=f"t {n}")
    refused = await api.post(PERSONALITY, json={"content": YAML, "name": "one more"})
    assert (refused.status_code, refused.json()["code"]) == (409, "personality_full")


@pytest.mark.parametrize(("lang", "words"), [("en", "You are נועה"), ("he", "אתה נועה")])
async def test_the_prompt_names_the_assistant_and_keeps_whose_words_are_whose(
    api: httpx.AsyncClient, lang: str, words: str
) -> None:
    await saved(api)
    answer = (await api.get(f"{PERSONALITY}/prompt", params={"lang": lang})).json()
    assert answer["prompt"].startswith(words)
    assert all(line in answer["prompt"] for line in PRONOUNS)
    assert (answer["chars"], answer["template_id"]) == (len(answer["prompt"]), "custom")


async def test_an_unknown_language_is_422(api: httpx.AsyncClient) -> None:
    refused = await api.get(f"{PERSONALITY}/prompt", params={"lang": "fr"})
    assert refused.status_code == 422
