"""What the names in `degraded` of an answer mean, for people."""

from __future__ import annotations

from collections.abc import Iterable

SKIPPED = {
    "embedder": "the embedder is away, so words were compared but not meanings",
    "index": "the vector index is away, so MongoDB's own text search answered",
    "index_rebuilding": "the vector index is being filled again, so MongoDB's own text search "
    "answered",
    "index_refused": "the vector index was built for another model, so MongoDB's own text search "
    "answered until `rayapp job reindex` has run",
    "reranker": "the reranker is away, so the first ranking was kept",
    "priors": "the learned graphs came too late, so nothing was boosted by them",
    "pending": "memories that wait for the index came too late and were left out",
    "text": "MongoDB's text search came too late and was left out",
    "recent": "the newest memories came too late and were left out",
    "receipt": "the receipt could not be stored, so outcomes cannot name this answer",
    "insights": "the insights came too late and were left out",
    "standing": "the facts that always hold came too late and were left out",
    "search": "the search came too late and was left out",
    "session": "what the assistant was shown could not be noted, so it may be learned again",
}


def explained(names: Iterable[str]) -> list[str]:
    """One sentence per skipped stage: its name, and what the answer does without."""
    return [
        f"degraded: {name}: {SKIPPED.get(name, 'a stage was skipped')}."
        for name in dict.fromkeys(names)
    ]
