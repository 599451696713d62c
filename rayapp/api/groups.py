"""The order in which the API document shows its operations, and a sentence for each group."""

from __future__ import annotations

from collections.abc import Mapping

FIRST = "start here"
# What a newcomer needs: keep, find, judge, prepare a turn and learn from it, and see what is there.
FIRST_CALLS = frozenset(
    {
        ("POST", "/api/memory/store"),
        ("POST", "/api/memory/search"),
        ("POST", "/api/memory/outcomes"),
        ("POST", "/api/memory/context"),
        ("POST", "/api/hooks/exchange"),
        ("GET", "/api/memory/stats"),
    }
)
GROUPS: Mapping[str, str] = {
    FIRST: "Keep a memory, find it, say what helped; before and after each turn of an assistant.",
    "memories": "Store, read, change, archive and explain memories.",
    "search": "Find memories by meaning and by words, or list the newest.",
    "learning": "Say what worked and what failed, and let promotion run.",
    "context": "What an assistant should know before it answers.",
    "hooks": "The calls of a chat program around each turn.",
    "memory bank": "Lasting facts about a person, with goals and values.",
    "tools": "What an assistant may call by itself, over HTTP and MCP.",
    "graphs": "Which concepts, tiers and actions belong together.",
    "insights": "Counts, growth and the health of the service.",
    "events": "What changed, as it happens.",
    "personality": "How the assistant speaks.",
    "hidden memories": "Memories that a person does not want to see used.",
    "data": "Sizes of one user's data, and clearing it.",
    "models": "Checks and costs of the language model.",
    "jobs": "Bulk work: list, follow, pause, resume and cancel.",
    "operations": "Reindex, consistency, open data and breakers, for operators.",
    "upkeep": "Sizes, cleanup and moves over all users, for operators.",
    "system": "Version, short health and disk space.",
    "probes": "For load balancers: is the process up, and can it serve.",
    "not yet": "Routes of a later version: they answer 501.",
}


def tags_of(method: str, path: str, tag: str) -> list[str]:
    """The group of an operation, and the one of a newcomer where it belongs there too."""
    return [tag, FIRST] if (method, path) in FIRST_CALLS else [tag]
