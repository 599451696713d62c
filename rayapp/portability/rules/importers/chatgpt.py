"""Exports of ChatGPT: `conversations.json` (or its numbered parts), alone or in their zip."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rayapp.portability.rules.archive import BadArchive
from rayapp.portability.rules.foreign import (
    OTHER_FORM,
    Files,
    ForeignMessage,
    Found,
    LeftOut,
    Role,
    conversation,
    key_of,
    path_to,
    text_of,
    texts_of,
    time_of,
)

# What its page shows as links to sources; nobody reads them elsewhere.
_CITED = re.compile("\ue200[^\ue200\ue201]*\ue201|[\ue200-\ue206]|【\\d+†[^】]{0,200}】")
WORDS = frozenset({"text", "multimodal_text"})
ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant"}
IMAGES = frozenset({"image_asset_pointer"})


def read(files: Files) -> Iterator[Found]:
    """Conversations as they were last shown: of a message that was changed, the newest form."""
    names = list(files.named("*.json"))
    parts = [one for one in names if _is_conversations(one)] or (names if len(names) == 1 else [])
    if not parts:
        raise BadArchive("There is no conversations.json in it; send the zip of the export.")
    for name in parts:
        for one in files.entries(name):
            yield from _conversation(one)


def _is_conversations(name: str) -> bool:
    return re.fullmatch(r"conversations([-_]\d+)?\.json", name.rpartition("/")[2]) is not None


def _conversation(row: Any) -> Iterator[Found]:
    mapping = row.get("mapping") if isinstance(row, dict) else None
    if not isinstance(mapping, dict):
        yield LeftOut(what="conversation", why="no messages can be read in it")
        return
    path = _path(mapping, row.get("current_node"))
    messages: list[ForeignMessage] = []
    images = 0
    for node in path:
        found, seen = _message(node)
        images += seen
        messages += [found] if found else []
    others = sum(_is_said(node) for node in mapping.values()) - sum(map(_is_said, path))
    if others > 0:
        yield LeftOut(what="message", why=OTHER_FORM, count=others)
    if images:
        yield LeftOut(what="image", why="memories are words", count=images)
    name = row.get("conversation_id") or row.get("id")
    yield conversation(name, row.get("title"), time_of(row.get("create_time")), messages)


def _path(mapping: Mapping[str, Any], last: Any) -> list[Any]:
    """The nodes from the first message to the one that was shown last, by their links alone."""
    nodes = {name: node for name, node in mapping.items() if isinstance(node, dict)}
    parents = {
        child: name for name, node in nodes.items() for child in texts_of(node.get("children"))
    }
    for name, node in nodes.items():
        if isinstance(parent := node.get("parent"), str):
            parents[name] = parent
    shown = last if isinstance(last, str) and last in nodes else _newest_leaf(nodes, parents)
    return [nodes[name] for name in path_to(shown, parents) if name in nodes]


def _newest_leaf(nodes: Mapping[str, Any], parents: Mapping[str, str]) -> str | None:
    """Of an export that does not say which message was shown last: of two of one time, the form
    that was made later."""
    inner = set(parents.values())
    leaves = [name for name in nodes if name not in inner]

    def at(name: str) -> float:
        message = nodes[name].get("message")
        found = time_of(message.get("create_time")) if isinstance(message, dict) else None
        return found.timestamp() if found else 0.0

    return max(reversed(leaves), key=at, default=None)


def _is_said(node: Any) -> bool:
    return _message(node)[0] is not None


def _message(node: Any) -> tuple[ForeignMessage | None, int]:
    """What a person or the model says to the other, and how many images stand in it."""
    row = node.get("message") if isinstance(node, dict) else None
    if not isinstance(row, dict):
        return None, 0
    author, content, extra = (_object(row.get(one)) for one in ("author", "content", "metadata"))
    role = ROLES.get(str(author.get("role")))
    to_all = row.get("recipient") in (None, "all")
    if role is None or not to_all or str(content.get("content_type")) not in WORDS:
        return None, 0
    if extra.get("is_visually_hidden_from_conversation"):
        return None, 0
    parts = content.get("parts")
    parts = parts if isinstance(parts, list) else []
    text = text_of(_CITED.sub("", "\n\n".join(filter(None, map(_part, parts)))))
    images = sum(isinstance(one, dict) and str(one.get("content_type")) in IMAGES for one in parts)
    if not text:
        return None, images
    at, model = time_of(row.get("create_time")), text_of(extra.get("model_slug"))[:100] or None
    key = key_of(row.get("id"), text, at)
    return ForeignMessage(key=key, role=role, text=text, at=at, model=model), images


def _part(value: Any) -> str:
    """A piece of a message: words, or what was heard."""
    if isinstance(value, dict):
        value = value.get("text")
    return value if isinstance(value, str) else ""


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
