"""Outcome events as documents, and the pipeline that moves the counters of an item. Pure.

The pipeline is `learning.rules.outcomes.apply_outcome` in the server's language; a property test
holds both to the same numbers.
"""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from rayapp.core.ids import SYSTEM_USER
from rayapp.learning.records import AppliedOutcome, OutcomeEvent, Signal, Withdrawn
from rayapp.learning.rules.outcomes import MIN_TTL, SCORE_DELTA, TTL_SHIFT, Target
from rayapp.learning.rules.verdicts import counts
from rayapp.memory.item import SCORE_DECIMALS, IndexOp, Outcome, Status, SyncState
from rayapp.memory.rules.lifecycle import SUCCESS_VALUE, WILSON_Z
from rayapp.memory.tiers import SURVIVES_EXPIRY_SCORE, Tier
from rayapp.storage.mongo.rows import from_row, may_lack, to_row

Document = dict[str, Any]
Expression = Any

# What `targets_of` and `applied_of` read of an item: texts stay on the server.
TARGET_FIELDS = (
    *("memory_id", "point_id", "tier", "status", "merged_into", "dedup_scope"),
    *("source.doc_id", "user_id", "stored_by"),
)
NOTHING: Document = {"points": [], "documents": []}
may_lack(Signal)
may_lack(AppliedOutcome)
may_lack(Withdrawn, "tools")
may_lack(OutcomeEvent, "request_hash", "takeaway_id", "replaces", "withdrawn", "counted", "tools")
_ACTIVE = {"$eq": ["$status", Status.ACTIVE.value]}


def event_document(event: OutcomeEvent, token: str) -> Document:
    """`token` names the call that wrote it, so that a repeated try knows its own row."""
    return {
        **to_row(event),
        **withdrawal_document(event),
        "effects": {"graph": counts(event), "promotion": bool(event.applied)},
        "token": token,
    }


def event_from_document(doc: Document) -> OutcomeEvent:
    return from_row(OutcomeEvent, doc | {"withdrawn": doc.get("withdrawn") or NOTHING})


def withdrawal_document(event: OutcomeEvent) -> Document:
    """`withdrawn` is null while it is empty, as it is in rows of older versions."""
    empty = event.withdrawn == Withdrawn()
    return {
        "withdrawn": None if empty else to_row(event.withdrawn),
        "counted": None if event.counted is None else to_row(event.counted),
    }


def targets_of(names: Collection[str], docs: Iterable[Document]) -> dict[str, Target]:
    """The living item behind each name. `docs`: the user's own, their winners, shared ones.

    An own item comes before a shared one with its id, as in every read.
    """
    own: dict[str, Document] = {}
    shared: dict[str, Document] = {}
    for doc in docs:
        if doc["status"] != Status.DELETED.value:
            (shared if doc["user_id"] == SYSTEM_USER else own)[doc["memory_id"]] = doc
    found = {}
    for name in names:
        named = own.get(name) or shared.get(name)
        winner = named["merged_into"] if named else None
        living = named if winner is None else own.get(winner)
        if living is not None:
            found[name] = _target(living)
    return found


def outcome_pipeline(outcome: Outcome, at: datetime) -> list[Document]:
    """Stages that apply one outcome to an item and queue its payload for the index."""
    counter = f"stats.{outcome.value}_count"
    value = SUCCESS_VALUE[outcome]
    newest = {"$lte": ["$stats.last_outcome_at", at]}
    score = _sum("$stats.score", SCORE_DELTA[outcome])
    counted = {
        "stats.uses": _sum("$stats.uses", 1),
        counter: _sum(f"${counter}", 1),
        "stats.success_count": _rounded(_sum("$stats.success_count", value)),
        "stats.tier_uses": _sum("$stats.tier_uses", 1),
        "stats.tier_success": _rounded(_sum("$stats.tier_success", value)),
        "stats.score": _rounded({"$min": [1.0, {"$max": [0.0, score]}]}),
        "stats.last_outcome": _if(newest, outcome.value, "$stats.last_outcome"),
        "stats.last_outcome_at": _if(newest, at, "$stats.last_outcome_at"),
        "expires_at": _if(_ACTIVE, _moved_expiry(outcome, at), "$expires_at"),
        "index": followed_index(),
    }
    rate = {"$divide": ["$stats.success_count", "$stats.uses"]}
    rated = {"stats.success_rate": _rounded(rate), "stats.wilson_score": _rounded(_wilson(rate))}
    return [{"$set": counted}, {"$set": rated}]


def _target(doc: Document) -> Target:
    tier = Tier(doc["tier"])
    return Target(
        memory_id=doc["memory_id"],
        point_id=doc["point_id"],
        tier=tier,
        # The scope of a book's texts is the book (`memory.rules.creation.dedup_scope`).
        doc_id=doc["dedup_scope"] if tier is Tier.BOOKS else doc["source"]["doc_id"],
        stored_by=doc.get("stored_by", ""),
    )


def _requeued() -> Document:
    """`memory.rules.revision.requeued` for a payload write."""
    payload, vector = IndexOp.PAYLOAD.value, IndexOp.VECTOR.value
    written = {
        "$and": [
            {"$eq": ["$index.op", vector]},
            {"$eq": ["$index.sync_state", SyncState.SYNCED.value]},
        ]
    }
    waiting = {"$eq": ["$index.sync_state", SyncState.PENDING.value]}
    return {
        "op": _if({"$or": [{"$eq": ["$index.op", payload]}, written]}, payload, vector),
        "rev": _sum("$index.rev", 1),
        "sync_state": SyncState.PENDING.value,
        "pending_since": _if(waiting, "$index.pending_since", "$$NOW"),
        "attempts": 0,
        "next_attempt_at": "$$NOW",
        "claim": None,
        "last_error": None,
    }


def followed_index() -> Expression:
    """`index` of an item whose payload the index is to follow."""
    return _if(_ACTIVE, {"$mergeObjects": ["$index", _requeued()]}, "$index")


def _moved_expiry(outcome: Outcome, at: datetime) -> Expression:
    """`learning.rules.outcomes.moved_expiry`; null stays null through every step."""
    shift_ms = round(TTL_SHIFT[outcome].total_seconds() * 1000)
    moved = _sum("$expires_at", shift_ms)
    floor = at + MIN_TTL
    # null sorts before every date: an item without expiry takes the first branch.
    kept = _if({"$lte": ["$expires_at", floor]}, "$expires_at", {"$max": [moved, floor]})
    survived = {
        "$and": [
            {"$gt": ["$expires_at", None]},
            {"$lte": ["$expires_at", at]},
            {"$gte": ["$stats.score", SURVIVES_EXPIRY_SCORE]},
        ]
    }
    return _if(survived, {"$max": [moved, floor]}, moved if shift_ms >= 0 else kept)


def _wilson(rate: Expression) -> Expression:
    """The operations of `wilson_lower_bound`, in its order."""
    square = WILSON_Z * WILSON_Z
    bound = {
        "$divide": [
            {"$subtract": [_sum("$$share", {"$divide": [square, _double("$$n")]}), "$$spread"]},
            _sum(1, {"$divide": [square, "$$n"]}),
        ]
    }
    variance = {"$multiply": ["$$share", {"$subtract": [1, "$$share"]}]}
    width = {"$divide": [square, {"$multiply": [4, "$$n"]}]}
    root = {"$sqrt": {"$divide": [_sum(variance, width), "$$n"]}}
    outer = {"share": {"$min": [1.0, {"$max": [0.0, rate]}]}, "n": "$stats.uses"}
    spread = {"spread": {"$multiply": [WILSON_Z, root]}}
    inner = {"$let": {"vars": spread, "in": {"$max": [0.0, bound]}}}
    return {"$let": {"vars": outer, "in": inner}}


def _double(value: Expression) -> Expression:
    return {"$multiply": [2, value]}


def _sum(first: Expression, second: Expression) -> Expression:
    return {"$add": [first, second]}


def _rounded(value: Expression) -> Expression:
    return {"$round": [value, SCORE_DECIMALS]}


def _if(test: Expression, then: Expression, otherwise: Expression) -> Expression:
    return {"$cond": [test, then, otherwise]}
