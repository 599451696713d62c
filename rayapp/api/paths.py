"""Parts of a path that vary: how they match, what is accepted, what the API document says."""

import re
from functools import cache
from typing import Annotated

from fastapi import Path
from starlette.routing import compile_path

from rayapp.api.json_body import refuse_forbidden
from rayapp.core.errors import InvalidInput
from rayapp.core.ids import MEMORY_ID_PATTERN
from rayapp.memory.requests import ClearTarget
from rayapp.wire.bases import MAX_CONCEPT_CHARS, MAX_ID_CHARS, MAX_MODEL_CHARS

ID_PATTERN = "^[A-Za-z0-9._:@-]{1,128}$"
# Ids that were stored, and the code of a refusal.
ID_CODES = {"memory_id": "bad_memory_id", "job_id": "bad_job_id"}

MemoryIdPart = Annotated[str, Path(description="Id of the memory.", pattern=ID_PATTERN)]
JobIdPart = Annotated[str, Path(description="Id of the job.", pattern=ID_PATTERN)]
ToolName = Annotated[str, Path(description="Name of the tool, as the list of tools shows it.")]
MergePart = Annotated[str, Path(description="Id of the merge.", pattern=ID_PATTERN)]
NodePart = Annotated[str, Path(description="Id of the node.", pattern=ID_PATTERN)]
DerivedId = Annotated[str, Path(description="Id of the episode or thought.", pattern=ID_PATTERN)]
ReviewKind = Annotated[str, Path(description="What it is: `thought` or `episode`.")]
Target = Annotated[
    str,
    Path(
        description="What to delete: memory_bank, working, history, patterns, documents, "
        "sessions or knowledge-graph.",
        json_schema_extra={"enum": [*ClearTarget]},
    ),
]
BookId = Annotated[str, Path(description="Id of the book.")]
ChunkId = Annotated[str, Path(description="Id of the chunk: its memory, or its place from 0.")]
DocumentId = Annotated[str, Path(description="Id of the document.")]
OrgId = Annotated[str, Path(description="Id of the tenant.")]
KeyId = Annotated[str, Path(description="Id of the key, as the list of keys shows it.")]
WebhookId = Annotated[str, Path(description="Id of the webhook.")]
TaskId = Annotated[str, Path(description="Id of the upload.")]
ConversationId = Annotated[
    str,
    Path(
        description="Id of the conversation; percent-encoded, slashes too.",
        min_length=1,
        max_length=MAX_ID_CHARS,
    ),
]
ModelPart = Annotated[
    str,
    Path(
        description="Name of the model; percent-encoded, slashes too.",
        min_length=1,
        max_length=MAX_MODEL_CHARS,
    ),
]
ConceptId = Annotated[
    str,
    Path(
        description="Id of a node of `GET /api/memory/graph`, or a concept without its prefix; "
        "percent-encoded, slashes too.",
        min_length=1,
        max_length=MAX_CONCEPT_CHARS,
    ),
]


# Parts that are no ids of ours: their longest form, characters, and where to take one from.
NAMES = {
    "concept_id": (MAX_CONCEPT_CHARS, "take the id of a node"),
    "model_name": (MAX_MODEL_CHARS, "send the model's name as its server calls it"),
    "conversation_id": (MAX_ID_CHARS, "take an id of GET /api/memory/conversations"),
}


@cache
def path_pattern(path: str) -> re.Pattern[str]:
    """What a whole path must match. What people and programs name may hold slashes: servers decode
    before routing."""
    for name in NAMES:
        path = path.replace(f"{{{name}}}", f"{{{name}:path}}")
    found = compile_path(path)[0]
    # Starlette ends its pattern with `$`, which lets a line break follow.
    return re.compile(found.pattern.removesuffix("$") + r"\Z")


def read_path(name: str, value: str) -> str:
    """A decoded part of a path.

    Raises InvalidInput: an id of no form that was ever stored; a name that is blank, too long, or
    has control characters. Other parts are looked up as they are.
    """
    if name in ID_CODES and not MEMORY_ID_PATTERN.fullmatch(value):
        raise InvalidInput(
            f"{name} must be 1 to 128 characters of letters, digits and . _ : @ -.",
            code=ID_CODES[name],
            details={"field": name},
        )
    if name in NAMES:
        most, advice = NAMES[name]
        refuse_forbidden({name: value})
        if not value.strip() or len(value) > most:
            raise InvalidInput(
                f"{name}: must be 1 to {most} characters; {advice}.", details={"field": name}
            )
        if name == "model_name" and not {"", ".", ".."}.isdisjoint(value.split("/")):
            raise InvalidInput(f"{name}: names no model; {advice}.", details={"field": name})
    return value
