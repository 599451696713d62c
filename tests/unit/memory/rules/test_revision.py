"""What a stored item becomes when an edit meets it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rayapp.memory.item import REWRITTEN, IndexOp, IndexState, Quality, Stats, SyncState
from rayapp.memory.rules.revision import combined_op, queued, requeued, revised, revived
from tests.support.builders import STORED_AT, a_version, an_item

LATER = STORED_AT + timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("op", "state", "asked", "expected"),
    [
        ("vector", "synced", "payload", "payload"),
        ("vector", "pending", "payload", "vector"),
        ("vector", "failed", "payload", "vector"),
        ("payload", "synced", "payload", "payload"),
        ("payload", "pending", "payload", "payload"),
        ("payload", "failed", "payload", "payload"),
        ("delete", "pending", "payload", "vector"),
        ("delete", "synced", "payload", "vector"),
        ("payload", "pending", "vector", "vector"),
        ("delete", "pending", "vector", "vector"),
        ("vector", "pending", "delete", "delete"),
        ("payload", "synced", "delete", "delete"),
    ],
)
def test_combined_op(op: str, state: str, asked: str, expected: str) -> None:
    held = IndexState(op=IndexOp(op), sync_state=SyncState(state))
    assert combined_op(held, IndexOp(asked)) is IndexOp(expected)


def test_requeued_starts_afresh_under_the_next_rev() -> None:
    held = IndexState(rev=4, attempts=3, claim="t", last_error="e", sync_state=SyncState.FAILED)
    state = requeued(held, IndexOp.VECTOR, LATER)
    assert state == IndexState(rev=5, next_attempt_at=LATER)


def test_queued_sets_a_due_time_once() -> None:
    item = queued(an_item())
    assert item.index.next_attempt_at == STORED_AT
    given = an_item(index=IndexState(next_attempt_at=LATER))
    assert queued(given) == given


def test_revised_keeps_what_others_counted_meanwhile() -> None:
    read = an_item(stats=Stats(uses=1, tier_uses=1), quality=Quality(mentioned_count=1))
    stored = replace(read, stats=Stats(uses=2, tier_uses=2), quality=Quality(mentioned_count=5))
    wanted = replace(
        read, stats=replace(read.stats, tier_uses=0), quality=replace(read.quality, importance=0.9)
    )
    new = revised(stored, wanted, a_version(read))
    assert (new.stats.uses, new.stats.tier_uses) == (2, 0)
    assert (new.quality.mentioned_count, new.quality.importance) == (5, 0.9)
    assert new.version == stored.version + 1


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ({"summary": "s"}, 3),
        ({"tier_entered_at": LATER, "expires_at": STORED_AT + 7 * DAY}, 7),
        ({"instruction": "always", "expires_at": None}, None),
    ],
)
def test_revised_keeps_the_lifetime_that_an_outcome_gave_meanwhile(
    edit: dict[str, Any], expected: int | None
) -> None:
    read = an_item(expires_at=STORED_AT + DAY)
    stored = replace(read, stats=Stats(uses=1), expires_at=STORED_AT + 3 * DAY)
    new = revised(stored, replace(read, **edit), a_version(read))
    assert new.expires_at == (None if expected is None else STORED_AT + expected * DAY)


def test_revised_takes_the_lifetime_of_a_merge() -> None:
    """No outcome came between: the later of two is the winner's."""
    stored = an_item(expires_at=STORED_AT + DAY)
    wanted = replace(stored, expires_at=STORED_AT + 3 * DAY)
    assert revised(stored, wanted, a_version(stored)).expires_at == STORED_AT + 3 * DAY


def test_revised_leaves_the_index_state_alone_unless_asked() -> None:
    read = an_item(index=IndexState(sync_state=SyncState.SYNCED, rev=2))
    stored = replace(read, index=IndexState(op=IndexOp.PAYLOAD, rev=3, claim="t"))
    assert revised(stored, replace(read, summary="s"), a_version(read)).index == stored.index
    asked = replace(read, updated_at=LATER, index=IndexState(rev=9))
    new = revised(stored, asked, a_version(read)).index
    assert (new.rev, new.claim, new.next_attempt_at) == (9, None, LATER)


def test_revised_holds_no_vectors_for_those_of_another_text() -> None:
    stored = an_item(text="tea", index=IndexState(sync_state=SyncState.SYNCED, vector_hash="h"))
    wanted = replace(stored, text="Tea", index=IndexState())
    assert revised(stored, wanted, a_version(stored)).index.vector_hash == REWRITTEN
    kept = replace(stored, tags=("hot",), index=IndexState(op=IndexOp.PAYLOAD))
    assert revised(stored, kept, a_version(stored)).index.vector_hash == "h"


def test_revised_never_changes_identity() -> None:
    stored = an_item(memory_id="a")
    new = revised(stored, an_item(memory_id="b", user_id="noa"), a_version(stored))
    assert (new.memory_id, new.user_id, new.point_id) == ("a", "dana", stored.point_id)


def test_revived_goes_on_counting() -> None:
    tombstone = an_item(memory_id="a", version=3, index=IndexState(rev=7))
    new = revived(tombstone, an_item(memory_id="a"))
    assert (new.version, new.index.rev, new.index.next_attempt_at) == (4, 8, STORED_AT)
