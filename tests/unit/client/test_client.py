"""The client against a real socket."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from rayapp.client import BacklogView, Memory, MemoryClient, RetryPolicy
from rayapp.client.calls import asked, listed
from rayapp.client.discovery import read_key, service_url
from rayapp.client.progress import LINE_INTERVAL_S, Progress
from rayapp.client.retry import may_retry
from rayapp.core.errors import ConfigError, DeadlineExceeded, DependencyDown, InvalidInput
from tests.support.ports import free_port
from tests.unit.fake_service import FakeService, serving

FAST = RetryPolicy(attempts=3, base_s=0.001)


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serving(FakeService()) as started:
        yield started


async def test_store_search_and_users_apart(service: FakeService) -> None:
    async with MemoryClient(service.url, user_id="dana") as client:
        first = await client.store(Memory(text="דנה גרה בחיפה", tier="history", memory_id="a:1"))
        again = await client.store(Memory(text="דנה גרה בחיפה"))
        assert (first.memory_id, first.status) == ("a:1", "stored")
        assert (again.memory_id, again.status) == ("a:1", "duplicate")
        mine = await client.search("איפה דנה גרה בחיפה", limit=5)
        assert mine.ids == ("a:1",)
        assert mine.stage_timings_ms == {"dense_ms": 0.5, "hydrate_ms": 0.25}
        assert mine.elapsed_ms > 0
        assert (await client.search("דנה", user_id="someone")).ids == ()
    assert service.searches[0] == {"query": "איפה דנה גרה בחיפה", "limit": 5, "user": "dana"}


async def test_what_a_service_says_of_the_key_is_logged_once(
    service: FakeService, caplog: pytest.LogCaptureFixture
) -> None:
    async with MemoryClient(service.url, api_key="rk_x") as client:
        await client.search("a")
        assert caplog.messages == []
        service.notice = "local mode checks no key"
        await client.search("a")
        await client.search("b")
    assert caplog.messages == [f"{service.url}: local mode checks no key"]


def test_a_filter_without_a_value_asks_for_nothing() -> None:
    """Left out it would ask for everything."""
    assert asked("/x", tags=[], tier=None, ids=["a", "b"]) == "/x?tags=&ids=a&ids=b"


async def test_batch_keeps_order_and_names_the_rejected(service: FakeService) -> None:
    service.reject_text = "bad"
    async with MemoryClient(service.url) as client:
        replies = await client.store_batch([Memory(text=t) for t in ("one", "bad", "two", "one")])
    assert [reply.status for reply in replies] == ["stored", "rejected", "stored", "duplicate"]
    assert replies[1].code == "invalid_input"


async def test_503_is_retried_with_the_same_idempotency_key(service: FakeService) -> None:
    service.shed["/api/memory/store"] = 2
    async with MemoryClient(service.url, retry=FAST) as client:
        assert (await client.store(Memory(text="x"))).status == "stored"
    keys = service.keys["/api/memory/store"]
    assert len(keys) == 3
    assert len(set(keys)) == 1


async def test_retries_end_with_the_server_s_sentence(service: FakeService) -> None:
    service.shed["/api/memory/search"] = 3
    async with MemoryClient(service.url, retry=FAST) as client:
        with pytest.raises(DependencyDown, match=r"The queue is full\.") as caught:
            await client.search("x")
    assert caught.value.code == "overloaded"


async def test_bad_input_is_not_retried(service: FakeService) -> None:
    service.reject_text = "bad"
    async with MemoryClient(service.url, retry=FAST) as client:
        with pytest.raises(InvalidInput, match="no"):
            await client.store(Memory(text="bad"))
    assert len(service.keys["/api/memory/store"]) == 1


@pytest.mark.parametrize("user_id", ["", "two words", "a\r\nX-Other: 1", "נועה", "x" * 129])
async def test_a_user_id_that_no_service_accepts_is_not_sent(user_id: str) -> None:
    with pytest.raises(InvalidInput, match="A user id is"):
        MemoryClient("http://127.0.0.1:1", user_id=user_id)
    async with MemoryClient("http://127.0.0.1:1") as client:
        with pytest.raises(InvalidInput, match="A user id is"):
            await client.search("x", user_id=user_id)


@pytest.mark.parametrize("key", ["מפתח", "rk_x\r\nX-Other: 1", "rk_\x00"])
def test_a_key_that_no_header_holds_is_not_sent(key: str) -> None:
    with pytest.raises(InvalidInput, match="The API key has characters"):
        MemoryClient("http://127.0.0.1:1", api_key=key)


async def test_a_key_is_as_its_file_was_read(service: FakeService) -> None:
    async with MemoryClient(service.url, api_key="rk_x\n") as client:
        assert client._http.headers["Authorization"] == "Bearer rk_x"
        await client.search("a")


async def test_what_is_no_json_is_not_sent() -> None:
    async with MemoryClient("http://127.0.0.1:1") as client:
        with pytest.raises(InvalidInput, match=r"is no JSON: .*surrogates"):
            await client.store(Memory(text="half a \ud83d smile"))
        with pytest.raises(InvalidInput, match=r"is no JSON: .*set"):
            await client.search("a", filters={"tags": {"a"}})


async def test_one_name_is_not_read_letter_by_letter(service: FakeService) -> None:
    async with MemoryClient(service.url) as client:
        await client.search("a", tiers="all")
        await client.search("a", tiers=("history", "books"))
    assert [one["tiers"] for one in service.searches] == [["all"], ["history", "books"]]
    assert listed("memories") == ["memories"]


def test_the_key_comes_from_a_file_that_holds_one(tmp_path: Path) -> None:
    path = tmp_path / "key"
    with pytest.raises(ConfigError, match=r"There is no key file .*key: name the file .*create"):
        read_key(path)
    for unreadable in (tmp_path, tmp_path / "bytes"):
        (tmp_path / "bytes").write_bytes(b"\xff")
        with pytest.raises(ConfigError, match="cannot be read") as caught:
            read_key(unreadable)
        assert "[Errno" not in caught.value.message
        assert "\n" not in caught.value.message
    path.write_text(" \n")
    with pytest.raises(ConfigError, match="is empty"):
        read_key(path)
    path.write_text("rk_x\n")
    assert read_key(path) == "rk_x"
    assert read_key(None) is None


async def test_nobody_listens() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    async with MemoryClient(url, retry=FAST) as client:
        with pytest.raises(DependencyDown, match="start it with `rayapp up`"):
            await client.backlog()
        with pytest.raises(DependencyDown, match="No service answers"):
            await client.ready()


async def test_another_service_is_recognised(service: FakeService) -> None:
    async with MemoryClient(f"{service.url}/nowhere", retry=FAST) as client:
        with pytest.raises(DependencyDown, match="without a JSON object"):
            await client.ready()


async def test_ready_reads_the_reasons_of_a_503(service: FakeService) -> None:
    async with MemoryClient(service.url) as client:
        ready = await client.ready()
    assert (ready.ready, ready.reasons) == (False, ("warming",))


async def test_wait_indexed_reports_until_nothing_is_pending(service: FakeService) -> None:
    seen: list[BacklogView] = []
    async with MemoryClient(service.url) as client:
        await client.store_batch([Memory(text=f"text {i}") for i in range(5)])
        last = await client.wait_indexed(poll_s=0.001, on_progress=seen.append)
    assert [backlog.pending for backlog in seen] == [2, 1, 0]
    assert last.synced == 5


async def test_wait_indexed_waits_for_the_encoder_where_it_is_asked_to(
    service: FakeService,
) -> None:
    async with MemoryClient(service.url) as client:
        service.unencoded = [3, 2]
        assert (await client.wait_indexed(poll_s=0.001)).unencoded == 3
        service.unencoded = [3, None, 1, 0]
        assert (await client.wait_indexed(poll_s=0.001, encoded=True)).unencoded == 0
        assert service.unencoded == []
        service.unencoded = [4] * 1_000
        with pytest.raises(DeadlineExceeded, match="4 memories are still waiting"):
            await client.wait_indexed(stall_s=0.05, poll_s=0.01, encoded=True)


async def test_a_stuck_backlog_is_an_error(service: FakeService) -> None:
    service.stuck = True
    async with MemoryClient(service.url) as client:
        with pytest.raises(DeadlineExceeded, match="7 memories are still waiting"):
            await client.wait_indexed(stall_s=0.05, poll_s=0.01)


@pytest.mark.parametrize(
    ("attempt", "jitter", "retry_after_s", "expected"),
    [
        (1, 1.0, None, 0.1),
        (3, 1.0, None, 0.4),
        (3, 0.5, None, 0.2),
        (20, 1.0, None, 5.0),
        (1, 0.0, 2.0, 2.0),
        (1, 1.0, 2.0, 2.1),
        (1, 0.0, 3600.0, 5.0),
        (1, 0.0, -1.0, 0.0),
    ],
)
def test_wait_is_bounded_and_respects_the_server(
    attempt: int, jitter: float, retry_after_s: float | None, expected: float
) -> None:
    assert RetryPolicy().wait_s(attempt, jitter, retry_after_s) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("status", "code", "retry_after_s", "expected"),
    [
        (429, None, None, True),
        (503, "store_down", 1.0, True),
        (409, "idempotency_conflict", 1.0, True),
        (409, "idempotency_conflict", None, False),
        (409, "duplicate_memory", 1.0, False),
        (500, None, None, False),
        (404, None, None, False),
    ],
)
def test_what_is_worth_a_retry(
    status: int, code: str | None, retry_after_s: float | None, expected: bool
) -> None:
    assert may_retry(status, code, retry_after_s) is expected


def test_url_comes_from_the_argument_then_the_state_then_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAYAPP_DATA__DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    assert service_url("http://h:1/", tmp_path) == "http://h:1"
    assert service_url(None, None) == "http://127.0.0.1:8000"
    (tmp_path / "run").mkdir()
    state = tmp_path / "run" / "state.json"
    state.write_text(json.dumps({"http_url": "http://127.0.0.1:9123"}))
    assert service_url(None, tmp_path) == "http://127.0.0.1:9123"
    state.write_text("{")
    with pytest.raises(ConfigError, match="run `rayapp up` again"):
        service_url(None, tmp_path)


def test_a_directory_that_was_named_and_has_no_stack_is_no_other_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = f"No stack runs for {tmp_path}: start it with `rayapp up --data-dir {tmp_path}`"
    with pytest.raises(ConfigError, match=f"{said}, or name --url"):
        service_url(None, tmp_path)
    state = tmp_path / "run" / "state.json"
    state.parent.mkdir()
    state.write_text(json.dumps({"http_url": "http://127.0.0.1:8000", "phase": "failed"}))
    with pytest.raises(ConfigError, match=said):
        service_url(None, tmp_path)
    monkeypatch.setenv("RAYAPP_DATA__DIR", str(tmp_path))  # as `rayapp job` names it
    with pytest.raises(ConfigError, match=said):
        service_url(None, None)


def test_progress_off_a_terminal_is_one_json_line_per_interval() -> None:
    out, clock = io.StringIO(), [0.0]
    with (
        Progress(Console(file=out), now=lambda: clock[0]) as progress,
        progress.step("store", 10) as bar,
    ):
        bar.advance(2)
        clock[0] = LINE_INTERVAL_S
        bar.advance()
        clock[0] += 1.0
        bar.at(10)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert lines == [
        {"step": "store", "done": 3, "total": 10, "elapsed_s": 5.0},
        {"step": "store", "done": 10, "total": 10, "elapsed_s": 6.0},
    ]


def test_the_last_line_is_printed_once() -> None:
    out, clock = io.StringIO(), [0.0]
    with (
        Progress(Console(file=out), now=lambda: clock[0]) as progress,
        progress.step("index", 3) as bar,
    ):
        clock[0] = LINE_INTERVAL_S
        bar.at(3)
    assert len(out.getvalue().splitlines()) == 1


def test_progress_on_a_terminal_draws_a_bar() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100)
    with Progress(console) as progress, progress.step("index", 4) as bar:
        bar.at(4)
    assert "index" in out.getvalue()
    assert "4/4" in out.getvalue()
