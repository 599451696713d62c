"""The sync client makes the same calls as the async one: same requests, retries and errors."""

import inspect
from collections.abc import Iterator

import pytest

from rayapp.client import BacklogView, Memory, MemoryClient, RetryPolicy, SyncMemoryClient
from rayapp.client.calls import asked, at, call
from rayapp.client.http import AsyncOps, SyncOps
from rayapp.core.errors import DeadlineExceeded, DependencyDown, InvalidInput
from tests.support.ports import free_port
from tests.unit.fake_service import FakeService, serving

FAST = RetryPolicy(attempts=3, base_s=0.001)


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serving(FakeService()) as started:
        yield started


def test_store_search_and_users_apart(service: FakeService) -> None:
    with SyncMemoryClient(service.url, user_id="dana") as client:
        first = client.store(Memory(text="דנה גרה בחיפה", tier="history", memory_id="a:1"))
        again = client.store(Memory(text="דנה גרה בחיפה"))
        assert [(one.memory_id, one.status) for one in (first, again)] == [
            ("a:1", "stored"),
            ("a:1", "duplicate"),
        ]
        found = client.search("איפה דנה גרה בחיפה", limit=5)
        assert found.ids == ("a:1",)
        assert found.elapsed_ms > 0
        assert client.search("דנה", user_id="someone").ids == ()


def test_503_is_retried_with_the_same_idempotency_key(service: FakeService) -> None:
    service.shed["/api/memory/store"] = 2
    with SyncMemoryClient(service.url, retry=FAST) as client:
        assert client.store(Memory(text="x")).status == "stored"
    keys = service.keys["/api/memory/store"]
    assert (len(keys), len(set(keys))) == (3, 1)


def test_two_calls_have_two_keys_and_a_given_key_is_sent(service: FakeService) -> None:
    with SyncMemoryClient(service.url) as client:
        client.store(Memory(text="x"))
        client.store(Memory(text="y"))
        client.store(Memory(text="z"), idempotency_key="mine")
    first, second, given = service.keys["/api/memory/store"]
    assert first != second
    assert given == "mine"


def test_errors_are_those_of_the_server(service: FakeService) -> None:
    service.reject_text = "bad"
    service.shed["/api/memory/search"] = 3
    with SyncMemoryClient(service.url, retry=FAST) as client:
        with pytest.raises(InvalidInput, match="no"):
            client.store(Memory(text="bad"))
        with pytest.raises(DependencyDown, match=r"The queue is full\."):
            client.search("x")
    with (
        SyncMemoryClient(f"http://127.0.0.1:{free_port()}", retry=FAST) as client,
        pytest.raises(DependencyDown, match="start it with `rayapp up`"),
    ):
        client.backlog()


def test_waiting_reports_and_ends(service: FakeService) -> None:
    seen: list[BacklogView] = []
    with SyncMemoryClient(service.url) as client:
        client.store_batch([Memory(text=f"text {i}") for i in range(5)])
        client.wait_indexed(poll_s=0.001, on_progress=seen.append)
        service.stuck = True
        with pytest.raises(DeadlineExceeded, match="7 memories are still waiting"):
            client.wait_indexed(stall_s=0.01, poll_s=0.005)
    assert [backlog.pending for backlog in seen] == [2, 1, 0]


def test_both_clients_have_the_same_methods_with_the_same_fields() -> None:
    def public(kind: type) -> dict[str, list[str] | None]:
        """Fields of a method that each client has of its own; None for a shared call."""
        found = {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
        return {
            name: None if isinstance(one, call) else list(inspect.signature(one).parameters)
            for name, one in found.items()
        }

    ours, operators = public(MemoryClient), public(AsyncOps)
    assert ours == public(SyncMemoryClient)
    assert operators == public(SyncOps)
    shared = [sum(one is None for one in kind.values()) for kind in (ours, operators)]
    assert min(shared) >= 30, shared
    assert not ours.keys() & operators.keys() - {"reading", "writing", "asking", "headers_of"}
    assert MemoryClient.store.__doc__


@pytest.mark.parametrize(
    ("path", "fields", "expected"),
    [
        ("/p", {}, "/p"),
        ("/p", {"a": None, "b": 1}, "/p?b=1"),
        ("/p", {"a": True, "b": False}, "/p?a=true&b=false"),
        ("/p", {"tags": ["בית", "a b"]}, "/p?tags=%D7%91%D7%99%D7%AA&tags=a+b"),
    ],
)
def test_query_fields_are_written_as_the_service_reads_them(
    path: str, fields: dict[str, object], expected: str
) -> None:
    assert asked(path, **fields) == expected


def test_parts_of_a_path_cannot_leave_it() -> None:
    assert at("/items", "../a/b?c#ד", "x") == "/items/..%2Fa%2Fb%3Fc%23%D7%93/x"
