"""Loaded by schemathesis: its two checks of what is accepted, less the rules that no schema tells.

Each exception is a part of the service's own sentence, or an operation, with its reason.
"""

from collections.abc import Mapping
from typing import Any

import schemathesis
from schemathesis.specs.openapi.checks import (
    negative_data_rejection,
    positive_data_acceptance,
    unsupported_method,
)

# Refused although the schema allows it: the sentence says which rule it is.
REFUSED: Mapping[str, str] = {
    "holds a control character": "it holds for every string and every field name at any depth",
    "holds a lone surrogate": "the same",
    "changes nothing": "at least one of several fields",
    "not both": "one of two fields",
    "send `enabled`": "a field that another field asks for",
    "content is missing": "one of two fields",
    "text is empty": "blank is not only the empty string, and tools write texts too",
    "no visible character": "the same, for what nobody sees",
    "is blank": "the same, for questions",
    "must not be blank": "the same, for labels",
    "needs importance and confidence": "fields that a tier asks for",
    "needs a tag": "a field that a tier asks for",
    "always_inject is for memory_bank": "a field that a tier forbids",
    "filled by their job only": "a tier that is read only",
    "is no tier of the hooks": "tiers are one list in the whole document",
    "No job kind": "the sentence lists the kinds, which jobs bring along",
    "No recipe": "the sentence lists the recipes, which are files",
    "cursor cannot be read": "a cursor is what an answer gave, and else opaque",
    "is neither a position nor a memory id": "names of fields that mean something",
    "unknown argument": "each tool has a schema of its own, in GET /api/memory/tools",
    "output: Field required": "one result or a list of them",
    "characters; send at most": "the limits of texts are settings",
    "name a core tier": "tiers are one list in the whole document",
    "is no DataGov category": "each category has many names, in two languages",
    "holds no message of the user": "a list of messages, one of them with a question",
    "tags_all: must hold at least one": "an empty value in a query is the empty list",
    "text is missing": "one of two fields",
    "not whole exchanges": "what a text says",
    '"code":"conversation_active"': "the conversation that is open at that moment",
    "query fields; send fewer": "a limit over all fields of a query together",
    "Input should be a valid integer": "to a schema 1.0 is an integer, to us a mistake",
    "positions need a receipt": "a field that another field asks for",
    "name what was judged": "one of three fields",
    "Nothing to score": "the last search of the named conversation",
    "is missing; ": "an argument of one tool",
    "memory_id: is missing": "one of two arguments of one tool",
    "the fields of one result, or several": "one result or a list of them, not both",
    "valid_from is after valid_to": "two times compared",
    "send it, or the text as": "one of two fields",
    "save it as one of": "a file has a name with an ending",
    "needs 1 to": "a title of which something is seen",
    "is no file of": "what a file holds agrees with its name",
    "The file is": "what a file holds",
    "send it as a file": "a part of a form with the name of a file",
    "payload: send an export": "one of two fields",
    "payload is no export": "what an archive holds has rules of its own",
    "in the archive": "the same",
    "of the archive": "the same",
    "The archive": "the same",
    '"code":"bad_archive"': "what a file of another system holds",
    "no dry run": "a field of the import that a restore lacks",
    "is no kind; the kinds": "names in a text, separated by commas",
    "is no tier; the tiers": "the same",
    "if you mean it": "the word that is typed",
    '"code":"bad_template"': "a template is a document of its own within a string",
    "the nearest one is": "the registry of types and relations is a file",
    "; the vectors of": "how many numbers a vector has is the embedder's",
    "vector: must have a length": "not all of its numbers are 0",
    '"field":"url"': "where a name leads",
    "Name the principal": "blank is not only the empty string",
    "without the admin scope needs a user": "a field that another field asks for",
    "and not 'system'": "one user is of the service",
    "still to come": "a time that is over",
    "merged with itself": "two fields compared",
    "names no kind of things": "a label is a word or two, and none that gives orders",
    "or the raw_data_id of": "one of two fields",
    "or a larger window": "what must stand in a prompt fits into half of a window, or not",
}
# Accepted although the schema forbids it.
ACCEPTED: Mapping[str, str] = {
    "POST /v1/chat/completions": "parts of a message belong to the protocol, and go to the model",
    "POST /api/memory/raw-data/batch": "a text that breaks a rule is refused alone",
    "POST /mcp": "the messages are read by the SDK of the protocol, which takes odd ids",
    "POST /api/memory/context": "one name of a tool, or its whole definition, for the name",
    "POST /api/memory/prefetch": "one name of a tool, or its whole definition, for the name",
    "POST /api/memory/prompt": "one name of a tool, or its whole definition, for the name",
    "GET /api/memory/tools/table": "in a query one value is a list of one, and each value a string",
}
# Ids of conversations hold slashes: another method takes the end of the path for a part of the id.
WIDE = frozenset(
    f"/api/memory/conversations/{{conversation_id}}/{part}" for part in ("export", "messages")
)


@schemathesis.check
def valid_data_is_accepted(ctx: Any, response: Any, case: Any) -> None:
    text = response.content.decode(errors="replace")  # an archive is no text
    if not any(part in text for part in REFUSED):
        positive_data_acceptance(ctx, response, case)


@schemathesis.check
def invalid_data_is_refused(ctx: Any, response: Any, case: Any) -> None:
    if f"{case.operation.method.upper()} {case.operation.path}" not in ACCEPTED:
        negative_data_rejection(ctx, response, case)


@schemathesis.check
def other_methods_are_refused(ctx: Any, response: Any, case: Any) -> None:
    if case.operation.path not in WIDE:
        unsupported_method(ctx, response, case)
