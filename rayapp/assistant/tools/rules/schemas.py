"""The schemas of a tool: JSON Schema as MCP and HTTP show it, and the OpenAI function."""

from __future__ import annotations

from typing import Any

from rayapp.assistant.tools.records import ToolDefinition
from rayapp.assistant.tools.rules.parameters import Parameter, Schema

# Keywords that strict function calling does not know; what they say is checked when read.
NOT_STRICT = frozenset({"minLength", "maxLength", "examples", "default"})


def json_schema(tool: ToolDefinition) -> Schema:
    """The arguments as a JSON Schema object."""
    properties = {one.name: _described(one) for one in tool.parameters}
    schema: Schema = {"type": "object", "properties": properties}
    required = [one.name for one in tool.parameters if one.required]
    if required:
        schema["required"] = required
    return schema | {"additionalProperties": False}


def openai_function(tool: ToolDefinition, *, strict: bool = True) -> dict[str, Any]:
    """The tool as an entry of `tools` of a chat completion.

    Strict: every argument is required and an optional one may be null, as strict decoding asks.
    """
    parameters = strict_schema(tool) if strict else json_schema(tool)
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": parameters,
            "strict": strict,
        },
    }


def strict_schema(tool: ToolDefinition) -> Schema:
    """The arguments for models whose decoder follows the schema to the letter."""
    properties = {}
    for one in tool.parameters:
        described = _plain(_described(one))
        properties[one.name] = described if one.required else _nullable(described)
    return {
        "type": "object",
        "properties": properties,
        "required": [one.name for one in tool.parameters],
        "additionalProperties": False,
    }


def _described(parameter: Parameter) -> Schema:
    schema = parameter.kind.schema() | {"description": parameter.text}
    if parameter.default is not None:
        schema["default"] = parameter.default
    return schema


def _plain(schema: Any) -> Any:
    if isinstance(schema, dict):
        # Names of arguments stand under `properties`; only keywords are left out.
        return {
            key: {name: _plain(one) for name, one in value.items()}
            if key == "properties"
            else _plain(value)
            for key, value in schema.items()
            if key not in NOT_STRICT
        }
    return [_plain(one) for one in schema] if isinstance(schema, list) else schema


def _nullable(schema: Schema) -> Schema:
    if "anyOf" in schema:
        return schema | {"anyOf": [*schema["anyOf"], {"type": "null"}]}
    wider = schema | {"type": [schema["type"], "null"]}
    return wider | {"enum": [*schema["enum"], None]} if "enum" in schema else wider
