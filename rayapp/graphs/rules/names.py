"""What an id of a picture, or a name as a person writes it, stands for. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from rayapp.graphs.rules.question import CONTEXT_TYPES
from rayapp.graphs.rules.views import ACTION_PREFIX, CONTENT_PREFIX, ROUTING_PREFIX
from rayapp.text.concepts import extract_concepts
from rayapp.text.expansions import Expansions

# Spellings tried for one name; the first ones are the likeliest.
MAX_KEYS = 8
# A longer name is no concept; the text is cut before it is analysed (characters).
MAX_NAME = 300


@dataclass(frozen=True, slots=True)
class NamedConcept:
    """What an id of a picture, or a name, may stand for: an action, else one of the keys."""

    action: tuple[str, str] | None
    keys: tuple[str, ...]


def named_concept(name: str, expansions: Expansions | None = None) -> NamedConcept:
    """What an id with its prefix, a key without one, or a label as a person writes it means.

    The keys are ordered: the id without its prefix, the name as it is, then its lemma form.
    """
    name = name.strip()[:MAX_NAME]
    bare = next(
        (name.removeprefix(p) for p in (ROUTING_PREFIX, CONTENT_PREFIX) if name.startswith(p)),
        name,
    )
    # A tag is one concept as a whole: a phrase gets the key of a phrase, not of its words.
    concepts = extract_concepts(bare, tags=(bare,), expansions=expansions, limit=MAX_KEYS)
    keys = dict.fromkeys([bare, name, *(concept.key for concept in concepts)])
    return NamedConcept(_action_of(name), tuple(key for key in keys if key)[:MAX_KEYS])


def _action_of(name: str) -> tuple[str, str] | None:
    """Context types hold underscores themselves, so they are matched as a whole."""
    if not name.startswith(ACTION_PREFIX):
        return None
    rest = name.removeprefix(ACTION_PREFIX)
    for context_type in sorted(CONTEXT_TYPES, key=len, reverse=True):
        action = rest.removeprefix(context_type + "_")
        if action and action != rest:
            return context_type, action
    return None
