"""What a text is about, as a value. It needs no dictionaries."""

from dataclasses import dataclass
from typing import Literal

# The last three are of the open-data catalogue, in the graph of the shared tenant.
NodeType = Literal[
    "entity", "acronym", "tag", "phrase", "concept", "catalogue", "category", "dataset"
]


@dataclass(frozen=True, slots=True)
class Concept:
    """`key` is the lemma form under which spellings meet, `label` the text as it was written."""

    key: str
    label: str
    type: NodeType = "concept"
