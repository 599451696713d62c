"""One definition, three schemas: what each promises, and the golden file of all of them."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from rayapp.assistant.tools.rules.definitions import (
    TOOLS,
    Tool,
    json_schema,
    openai_function,
    strict_schema,
    tools_named,
)

FILE = Path(__file__).parent / "schemas.json"
HEBREW = range(0x05D0, 0x05EB)
BY_NAME = pytest.mark.parametrize("tool", TOOLS, ids=lambda one: one.name)


def shown() -> dict[str, Any]:
    """Every tool as it is listed, and search once more for callers that say `documents`."""
    found = {
        tool.name: {"openai": openai_function(tool), "json_schema": json_schema(tool)}
        for tool in TOOLS
    }
    named = {tool.name: json_schema(tool) for tool in tools_named(documents=True)}
    changed = {
        name: schema for name, schema in named.items() if schema != found[name]["json_schema"]
    }
    return found | {"documents": changed}


def test_the_schemas_are_those_of_the_golden_file() -> None:
    """A changed schema changes what models do: look at it, then run this file as a module."""
    assert json.loads(FILE.read_text(encoding="utf-8")) == shown()


def test_the_tools_are_those_of_the_contract_the_documents_and_what_is_known() -> None:
    assert [tool.name for tool in TOOLS] == [
        "get_context_insights",
        "search_memory",
        "search_books",
        "record_response",
        "add_to_memory_bank",
        "update_memory",
        "archive_memory",
        "score_memories",
        "memory_summary",
        "who_is",
        "timeline",
    ]


@BY_NAME
def test_a_description_speaks_both_languages(tool: type[Tool]) -> None:
    english, hebrew = tool.description.split("\n")
    assert english.isascii()
    assert any(ord(letter) in HEBREW for letter in hebrew)


@BY_NAME
def test_the_json_schema_is_valid(tool: type[Tool]) -> None:
    for schema in (json_schema(tool), strict_schema(tool)):
        jsonschema.Draft202012Validator.check_schema(schema)


def objects(schema: Any) -> list[dict[str, Any]]:
    """All object schemas within."""
    if isinstance(schema, list):
        return [one for inner in schema for one in objects(inner)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if "properties" in schema else []
    return own + [one for inner in schema.values() for one in objects(inner)]


@BY_NAME
def test_a_strict_schema_keeps_the_rules_of_strict_calling(tool: type[Tool]) -> None:
    schema = strict_schema(tool)
    for one in objects(schema):
        assert one["additionalProperties"] is False
        assert sorted(one["required"]) == sorted(one["properties"])
    text = json.dumps(schema)
    assert not [
        word for word in ("minLength", "maxLength", "default", "examples") if f'"{word}":' in text
    ]


@BY_NAME
def test_in_a_strict_schema_optional_arguments_may_be_null(tool: type[Tool]) -> None:
    properties = strict_schema(tool)["properties"]
    for name, field in tool.model_fields.items():
        if not field.is_required():
            jsonschema.validate(None, properties[name])
        else:
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(None, properties[name])


if __name__ == "__main__":
    FILE.write_text(json.dumps(shown(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
