"""Payload keys that filters and guards read: both engines index exactly these."""

from __future__ import annotations

from typing import Final

# First in every predicate and the unit of data locality: the engine's tenant index.
TENANT_FIELD: Final = "user_id"
KEYWORD_FIELDS: Final = (
    "tier",
    "status",
    "lang",
    "tags",
    "entities",
    "conversation_id",
    "source_type",
    "tool_name",
    "doc_id",
    "subject_id",
    "category",
    "format",
    "organization",
    "flags",
)
FLOAT_FIELDS: Final = ("created_at", "expires_at", "valid_from", "valid_to", "score")
BOOL_FIELDS: Final = ("superseded", "always_inject")
INTEGER_FIELDS: Final = ("rev",)
