"""What every receipt, event, lease, API key and idempotency store must do."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rayapp.admin.ports import ApiKey, AuditEntry, AuditQuestion, IdempotencyRow
from rayapp.core.errors import Conflict
from rayapp.memory.ports import Event
from rayapp.memory.scope import ReadScope
from rayapp.memory.tiers import Tier
from rayapp.search.ports import Receipt, Shown
from tests.support.builders import STORED_AT
from tests.support.store_contract import DANA, Stores

NOA = ReadScope("noa")
FUTURE = datetime(2100, 1, 1, tzinfo=UTC)


def a_receipt(receipt_id: str = "r-1", expires_at: datetime = FUTURE, **changes: Any) -> Receipt:
    made = Receipt(
        receipt_id=receipt_id,
        user_id="dana",
        query="שאלה",
        recipe="default",
        shown=(
            Shown(position=1, memory_id="a", tier=Tier.WORKING, final=0.5, ranks={"dense": 2}),
            Shown(position=2, memory_id="b", tier=Tier.BOOKS, final=0.25),
        ),
        at=STORED_AT,
        expires_at=expires_at,
        conversation_id="c",
        concepts=("x",),
        timings={"dense": 1.5},
        degraded=("cache",),
    )
    return replace(made, **changes)


class ReceiptContract:
    async def test_a_receipt_comes_back_to_its_user_only(self, stores: Stores) -> None:
        await stores.receipts.put_many([a_receipt()])
        assert await stores.receipts.get(DANA, "r-1") == a_receipt()
        assert await stores.receipts.get(NOA, "r-1") is None
        assert await stores.receipts.get(DANA, "r-2") is None

    async def test_an_expired_receipt_is_gone_at_once(self, stores: Stores) -> None:
        await stores.receipts.put_many([a_receipt(expires_at=STORED_AT)])
        assert await stores.receipts.get(DANA, "r-1") is None

    async def test_a_receipt_is_written_once(self, stores: Stores) -> None:
        await stores.receipts.put_many([a_receipt()])
        with pytest.raises(Conflict):
            await stores.receipts.put_many([a_receipt()])

    async def test_the_last_receipts_of_a_conversation_come_newest_first(
        self, stores: Stores
    ) -> None:
        for n in range(4):
            await stores.receipts.put_many(
                [
                    a_receipt(
                        receipt_id=f"r-{n}",
                        conversation_id="c-2" if n == 3 else "c-1",
                        turn_id="turn-2" if n == 2 else None,
                        query=f"question {n}",
                        concepts=("docker", str(n)),
                        at=STORED_AT + timedelta(minutes=n),
                        scored_at=STORED_AT if n == 2 else None,
                    )
                ]
            )
        await stores.receipts.put_many([a_receipt(receipt_id="r-noa", user_id="noa")])
        found = await stores.receipts.latest(DANA, "c-1", 2)
        assert [one.receipt_id for one in found] == ["r-2", "r-1"]
        unscored = await stores.receipts.latest(DANA, "c-1", 9, unscored=True)
        assert [one.receipt_id for one in unscored] == ["r-1", "r-0"]
        assert await stores.receipts.questions(DANA, "c-1", 2) == [
            ("question 2", ("docker", "2"), STORED_AT + timedelta(minutes=2)),
            ("question 1", ("docker", "1"), STORED_AT + timedelta(minutes=1)),
        ]
        assert await stores.receipts.questions(DANA, "c-1", 0) == []
        others = await stores.receipts.questions(DANA, "c-1", 2, besides_turn="turn-2")
        assert [query for query, _, _ in others] == ["question 1", "question 0"]
        assert await stores.receipts.latest(DANA, "c-9", 5) == []

    async def test_the_last_receipts_of_all_users_come_newest_first(self, stores: Stores) -> None:
        for n, user in enumerate(("dana", "noa", "dana", "noa")):
            at = STORED_AT + timedelta(minutes=n)
            expires_at = STORED_AT if n == 2 else FUTURE
            receipt = a_receipt(f"r-{n}", expires_at, user_id=user, at=at, query="מה? why?")
            await stores.receipts.put_many([receipt])
        found = await stores.receipts.recent(2)
        assert [(one.receipt_id, one.user_id) for one in found] == [("r-3", "noa"), ("r-1", "noa")]
        assert [one.receipt_id for one in await stores.receipts.recent(9)] == ["r-3", "r-1", "r-0"]
        assert await stores.receipts.recent(0) == []


class EventContract:
    async def test_recent_is_mine_newest_first_by_kind(self, stores: Stores) -> None:
        now = datetime.now(UTC).replace(microsecond=0)
        events = [
            Event(
                event_id=f"e-{n}",
                user_id="noa" if n == 3 else "dana",
                kind="promote" if n % 2 else "archive",
                at=now - timedelta(days=2, minutes=n),
                memory_id=f"m-{n}",
                data={"from": "working", "n": n},
            )
            for n in (2, 0, 1, 3)
        ]
        for event in events:
            await stores.events.add(event)
        by_id = {event.event_id: event for event in events}
        everything = [by_id["e-0"], by_id["e-1"], by_id["e-2"]]
        assert await stores.events.recent(DANA, None, 10) == everything
        assert await stores.events.recent(DANA, "promote", 10) == [by_id["e-1"]]
        assert await stores.events.recent(DANA, None, 1) == [by_id["e-0"]]
        assert await stores.events.recent(DANA, None, 0) == []

    async def test_those_of_a_conversation_are_mine_of_one_kind_newest_first(
        self, stores: Stores
    ) -> None:
        now = datetime.now(UTC).replace(microsecond=0)
        events = [
            Event(
                event_id=f"e-{n}",
                user_id="noa" if n == 3 else "dana",
                kind="archive" if n == 4 else "ordered",
                at=now - timedelta(minutes=n),
                data={} if n == 5 else {"conversation_id": "c-2" if n == 2 else "c-1", "n": n},
            )
            for n in (2, 1, 0, 3, 4, 5)
        ]
        for event in events:
            await stores.events.add(event)
        by_id = {event.event_id: event for event in events}
        found = await stores.events.of_conversation(DANA, "c-1", "ordered")
        assert found == [by_id["e-0"], by_id["e-1"]]
        assert await stores.events.of_conversation(DANA, "c-3", "ordered") == []


class LeaseContract:
    async def test_one_holder_until_release_and_the_fence_grows(self, stores: Stores) -> None:
        first = await stores.leases.acquire("promotion", "a", 60)
        assert first is not None
        assert await stores.leases.acquire("promotion", "b", 60) is None
        assert await stores.leases.current("promotion") == first
        await stores.leases.release(first)
        assert await stores.leases.current("promotion") is None
        second = await stores.leases.acquire("promotion", "b", 60)
        assert second is not None
        assert second.fence > first.fence
        assert second.holder == "b"

    async def test_renewing_keeps_the_fence_and_moves_the_end(self, stores: Stores) -> None:
        first = await stores.leases.acquire("x", "a", 60)
        renewed = await stores.leases.acquire("x", "a", 120)
        assert first is not None
        assert renewed is not None
        assert renewed.fence == first.fence
        assert renewed.expires_at > first.expires_at

    async def test_an_expired_lease_is_taken_and_its_holder_fenced(self, stores: Stores) -> None:
        first = await stores.leases.acquire("x", "a", 0.05)
        assert first is not None
        await stores.elapse(0.1)
        assert await stores.leases.current("x") is None
        second = await stores.leases.acquire("x", "b", 60)
        assert second is not None
        assert second.fence > first.fence
        await stores.leases.release(first)
        assert await stores.leases.current("x") == second

    async def test_its_own_expired_lease_gets_a_new_fence(self, stores: Stores) -> None:
        first = await stores.leases.acquire("x", "a", 0.05)
        await stores.elapse(0.1)
        second = await stores.leases.acquire("x", "a", 60)
        assert first is not None
        assert second is not None
        assert second.fence > first.fence

    async def test_of_many_at_once_one_gets_it(self, stores: Stores) -> None:
        got = await asyncio.gather(*(stores.leases.acquire("x", f"h{n}", 60) for n in range(20)))
        assert sum(lease is not None for lease in got) == 1


class ApiKeyContract:
    async def test_keys_are_found_by_hash_and_revoked_by_principal(self, stores: Stores) -> None:
        key = ApiKey(
            key_hash="h1",
            principal="chat",
            user_id=None,
            scopes=frozenset({"read", "admin"}),
            created_at=STORED_AT,
        )
        other = replace(key, key_hash="h2", created_at=STORED_AT + timedelta(days=1))
        third = replace(other, key_hash="h3", principal="batch", user_id="dana")
        for each in (other, key, third):
            await stores.api_keys.add(each)
        with pytest.raises(Conflict):
            await stores.api_keys.add(key)
        assert await stores.api_keys.find("h1") == key
        assert await stores.api_keys.find("none") is None
        at = STORED_AT + timedelta(days=2)
        assert await stores.api_keys.revoke("chat", at, org_id=None) == 2
        assert await stores.api_keys.revoke("chat", at, org_id=None) == 0
        revoked = [replace(key, revoked_at=at), replace(other, revoked_at=at)]
        assert await stores.api_keys.all() == [*revoked, third]

    async def test_one_key_is_used_expires_and_ends(self, stores: Stores) -> None:
        at = STORED_AT + timedelta(days=1)
        key = ApiKey(
            key_hash="e1",
            principal="chat",
            user_id="dana",
            scopes=frozenset({"read"}),
            created_at=STORED_AT,
            name="Garden",
        )
        other = replace(key, key_hash="e2", expires_at=at)
        for each in (key, other):
            await stores.api_keys.add(each)
        for hours in (2, 1):
            await stores.api_keys.used("e1", at + timedelta(hours=hours))
            await stores.api_keys.expire("e1", at + timedelta(hours=hours))
            await stores.api_keys.expire("e2", at + timedelta(hours=hours))
            await stores.api_keys.end("e1", at + timedelta(hours=hours))
        assert await stores.api_keys.find("e1") == replace(
            key,
            last_used_at=at + timedelta(hours=2),
            expires_at=at + timedelta(hours=1),
            revoked_at=at + timedelta(hours=2),
        )
        assert await stores.api_keys.find("e2") == other

    async def test_a_token_is_ended_once_and_for_all(self, stores: Stores) -> None:
        at = datetime.now(UTC) + timedelta(hours=1)
        assert not await stores.api_keys.token_ended("t-1")
        for _ in range(2):
            await stores.api_keys.end_token("t-1", at)
        assert await stores.api_keys.token_ended("t-1")
        assert not await stores.api_keys.token_ended("t-2")

    async def test_a_tenant_has_its_own_keys_of_a_principal(self, stores: Stores) -> None:
        key = ApiKey(
            key_hash="a1",
            principal="chat",
            user_id="dana",
            scopes=frozenset({"read"}),
            created_at=STORED_AT,
            org_id="acme",
        )
        rows = [
            key,
            replace(key, key_hash="a2", principal="batch"),
            replace(key, key_hash="a3", org_id="beta"),
            replace(key, key_hash="a4", org_id=None),
        ]
        for row in rows:
            await stores.api_keys.add(row)
        at = STORED_AT + timedelta(days=2)
        assert await stores.api_keys.revoke("chat", at, org_id="acme") == 1
        assert await stores.api_keys.revoke(None, at, org_id="acme") == 1
        assert await stores.api_keys.find("a3") == rows[2]
        assert await stores.api_keys.revoke(None, at, org_id=None) == 1
        assert await stores.api_keys.find("a2") == replace(rows[1], revoked_at=at)


class AuditContract:
    async def test_the_latest_first_page_by_page_under_conditions(self, stores: Stores) -> None:
        now = datetime.now(UTC).replace(microsecond=0)
        rows = [
            AuditEntry(
                entry_id=f"{number:04}",
                at=now + timedelta(minutes=number),
                principal=("ops", "app")[number % 2],
                key_id=None,
                user_id="dana",
                source="203.0.113.7",
                method="DELETE",
                route="/api/memory/user",
                ids={"memory_id": "m", "a.b": "c"},
                memory_ids=("m-1", "m-2")[:number],
                status=200,
                request_id="r",
                expires_at=now + timedelta(days=number),
            )
            for number in range(6)
        ]
        for row in rows:
            await stores.audit_log.append(row)

        async def shown(**asked: Any) -> list[AuditEntry]:
            return await stores.audit_log.page(AuditQuestion(**asked), now)

        kept = rows[:0:-1]
        assert await shown() == kept
        assert await shown(limit=2) == kept[:2]
        assert await shown(before="0004", limit=2) == kept[2:4]
        assert await shown(principal="ops") == [rows[4], rows[2]]
        assert await shown(user_id="noa") == []
        assert await shown(route="/api/memory/user", since=rows[3].at) == rows[:2:-1]
        assert await shown(since=rows[2].at, until=rows[4].at) == [rows[3], rows[2]]


class IdempotencyContract:
    ROW = IdempotencyRow(
        user_id="dana", route="store", key="k", body_sha256="b", state="running", at=STORED_AT
    )

    @pytest.fixture
    def row(self) -> IdempotencyRow:
        """A row of now: the server removes rows older than a day."""
        return replace(self.ROW, at=datetime.now(UTC).replace(microsecond=0))

    async def test_the_first_row_wins_until_it_is_dropped(
        self, stores: Stores, row: IdempotencyRow
    ) -> None:
        assert await stores.idempotency.begin(row) is None
        assert await stores.idempotency.begin(replace(row, body_sha256="other")) == row
        assert await stores.idempotency.begin(replace(row, user_id="noa")) is None
        assert await stores.idempotency.begin(replace(row, route="edit")) is None
        await stores.idempotency.drop(row)
        assert await stores.idempotency.begin(row) is None

    async def test_a_finished_row_gives_its_answer_and_stays(
        self, stores: Stores, row: IdempotencyRow
    ) -> None:
        done = replace(row, state="done", status=200, response=b'{"ok": true}')
        await stores.idempotency.begin(row)
        await stores.idempotency.finish(done)
        await stores.idempotency.drop(row)
        assert await stores.idempotency.begin(row) == done

    async def test_a_row_of_yesterday_is_forgotten(
        self, stores: Stores, row: IdempotencyRow
    ) -> None:
        await stores.idempotency.begin(row)
        tomorrow = replace(row, at=row.at + timedelta(hours=24))
        assert await stores.idempotency.begin(tomorrow) is None

    async def test_of_many_at_once_one_runs(self, stores: Stores, row: IdempotencyRow) -> None:
        answers = await asyncio.gather(*(stores.idempotency.begin(row) for _ in range(20)))
        assert answers.count(None) == 1


class SideStoreContract(
    ReceiptContract,
    EventContract,
    LeaseContract,
    ApiKeyContract,
    AuditContract,
    IdempotencyContract,
):
    """All side stores."""
