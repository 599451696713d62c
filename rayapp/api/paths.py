"""Parts of a path that vary: how they match and what the API document says of them."""

from __future__ import annotations

import re
from typing import Any

from starlette.routing import compile_path

from rayapp.memory.requests import ClearTarget
from rayapp.wire.bases import MAX_CONCEPT_CHARS

ID_PATTERN = "^[A-Za-z0-9._:@-]{1,128}$"

PATH_PARAMETERS: dict[str, dict[str, Any]] = {
    "memory_id": {
        "description": "Id of the memory.",
        "schema": {"type": "string", "pattern": ID_PATTERN},
        "example": "mem-1",
    },
    "tool_name": {
        "description": "Name of the tool, as the list of tools shows it.",
        "schema": {"type": "string"},
        "example": "search_memory",
    },
    "target": {
        "description": "What to delete: memory_bank, working, history, patterns, documents, "
        "sessions or knowledge-graph.",
        "schema": {
            "type": "string",
            "enum": [*ClearTarget],
        },
        "example": "working",
    },
    "book_id": {
        "description": "Id of the book.",
        "schema": {"type": "string"},
        "example": "book-1",
    },
    "document_id": {
        "description": "Id of the document.",
        "schema": {"type": "string"},
        "example": "document-1",
    },
    "task_id": {
        "description": "Id of the upload.",
        "schema": {"type": "string"},
        "example": "task-1",
    },
    "job_id": {
        "description": "Id of the job.",
        "schema": {"type": "string", "pattern": ID_PATTERN},
        "example": "job-1",
    },
    "concept_id": {
        "description": "Id of a node of `GET /api/memory/graph`, or a concept without its prefix; "
        "percent-encoded, slashes too.",
        "schema": {"type": "string", "minLength": 1, "maxLength": MAX_CONCEPT_CHARS},
        "example": "content_dana",
    },
}


def path_pattern(path: str) -> re.Pattern[str]:
    """What a whole path must match. A concept may hold slashes: servers decode before routing."""
    found = compile_path(path.replace("{concept_id}", "{concept_id:path}"))[0]
    # Starlette ends its pattern with `$`, which lets a line break follow.
    return re.compile(found.pattern.removesuffix("$") + r"\Z")
