"""`/mcp` as a client of the official SDK meets it, over a real socket."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp import Client, ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, Implementation

from rayapp.admin.api_keys import ApiKeyService
from rayapp.admin.ports import Scope
from rayapp.api.app import create_api
from rayapp.api.hebrew_errors import SENTENCES
from rayapp.api.mcp import NO_MESSAGE, STRANGER
from rayapp.assistant.tools.rules.definitions import TOOLS, json_schema, tools_named
from rayapp.documents.service import CLAIM_S
from rayapp.memory.item import Status
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import Tier
from tests.support.builders import an_item
from tests.support.example_world import garden
from tests.support.harness import Harness
from tests.support.socket_server import listening

# The handshake of the older revisions, the newest revision, and a client that finds out itself.
MODES = ["legacy", "2026-07-28", "auto"]
# The setting that a service begins with.
NAMED = tools_named(documents=True)
README = Path(__file__).resolve().parents[2] / "README.md"
READING = {
    *("get_context_insights", "search_memory", "search_books"),
    *("memory_summary", "who_is", "timeline"),
}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}

# What the newest revision wants with every request.
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass
class Site:
    """The service on a socket, and a key for each kind of caller."""

    harness: Harness
    url: str
    keys: Mapping[str, str]

    def headers(self, key: str | None, **more: str) -> dict[str, str]:
        own = {"Authorization": f"Bearer {self.keys[key]}"} if key else {}
        return own | {name.replace("_", "-"): value for name, value in more.items()}

    @asynccontextmanager
    async def client(
        self, key: str | None = "dana", mode: str = "legacy", **headers: str
    ) -> AsyncIterator[Client]:
        async with httpx2.AsyncClient(headers=self.headers(key, **headers)) as http:
            transport = streamable_http_client(f"{self.url}/mcp", http_client=http)
            async with Client(transport, mode=mode) as client:
                yield client

    async def post(self, body: Any, key: str | None = "dana", **headers: str) -> httpx.Response:
        async with httpx.AsyncClient(headers=self.headers(key, **headers)) as http:
            return await http.post(f"{self.url}/mcp", json=body)


async def opened(**settings: Any) -> tuple[Harness, dict[str, str]]:
    harness = await Harness.open(**settings)
    service = ApiKeyService(harness.services.api_keys, clock=harness.clock, cache_s=0)
    wanted: dict[str, tuple[str, list[Scope]]] = {
        "dana": ("dana", ["read", "write"]),
        "reader": ("dana", ["read"]),
        "noa": ("noa", ["read", "write"]),
        "admin": ("", ["admin"]),
    }
    keys = {}
    for name, (user, scopes) in wanted.items():
        keys[name], _ = await service.create(user or name, user_id=user or None, scopes=scopes)
    for memory_id, text in (("m-1", "Dana lives in Haifa"), ("m-2", "דנה אוהבת תה ירוק")):
        item = an_item(
            user_id="dana", memory_id=memory_id, text=text, tier=Tier.MEMORY_BANK, tags=("fact",)
        )
        await harness.items.insert(item)
    await harness.drain()
    return harness, keys


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    harness, keys = await opened(auth={"mode": "keys"})
    async with listening(create_api(harness.services)) as url:
        yield Site(harness, url, keys)


@pytest.fixture
async def keyless() -> AsyncIterator[Site]:
    harness, keys = await opened()
    async with listening(create_api(harness.services)) as url:
        yield Site(harness, url, keys)


def text_of(result: CallToolResult) -> str:
    [content] = result.content
    assert content.type == "text"
    return content.text


async def test_a_session_begins_with_who_serves_it(site: Site) -> None:
    async with (
        httpx2.AsyncClient(headers=site.headers("dana")) as http,
        streamable_http_client(f"{site.url}/mcp", http_client=http) as (read, write),
        ClientSession(read, write, client_info=Implementation(name="t", version="1")) as session,
    ):
        found = await session.initialize()
        assert found.server_info.name == "rayapp"
        assert found.capabilities.tools is not None
        assert "search_memory" in (found.instructions or "")
        assert "זיכרון" in (found.instructions or "")
        assert len((await session.list_tools()).tools) == len(TOOLS)


@pytest.mark.parametrize("mode", MODES)
async def test_tools_are_listed_as_they_are_defined(site: Site, mode: str) -> None:
    async with site.client(mode=mode) as client:
        listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == [tool.name for tool in TOOLS]
    for shown, tool in zip(listed, NAMED, strict=True):
        assert shown.input_schema == json_schema(tool)
        assert shown.description == tool.description
        assert shown.annotations is not None
        assert shown.annotations.read_only_hint is not tool.writes
        assert shown.annotations.open_world_hint is False


@pytest.mark.parametrize("mode", MODES)
async def test_every_tool_is_called(site: Site, mode: str) -> None:
    async with site.client(mode=mode, X_Conversation_Id="conv-1") as client:
        found = await client.call_tool(
            "search_memory", {"q": "Where does Dana live?", "limit": "1"}
        )
        assert not found.is_error
        assert "[1] [memory_bank:m-1] Dana lives in Haifa" in text_of(found)
        assert found.structured_content["results"][0]["memory_id"] == "m-1"
        response = await client.call_tool(
            "record_response", {"key_takeaway": "Asked for home", "outcome": "worked", "related": 1}
        )
        assert [row["memory_id"] for row in response.structured_content["updated"]] == ["m-1"]
        scored = await client.call_tool("score_memories", {"scores": {"m-2": "failed"}})
        assert len(scored.structured_content["updated"]) == 1
        kept = await client.call_tool(
            "add_to_memory_bank", {"text": "דנה גרה בחיפה", "tags": "home"}
        )
        memory_id = kept.structured_content["memory_id"]
        changed = await client.call_tool(
            "update_memory", {"memory_id": memory_id, "content": "דנה גרה בעכו"}
        )
        assert changed.structured_content["before"] == "דנה גרה בחיפה"
        gone = await client.call_tool("archive_memory", {"match_query": "דנה גרה בעכו"})
        assert gone.structured_content["memory_id"] == memory_id
        insights = await client.call_tool("get_context_insights", {"query": "איפה דנה גרה?"})
        assert not insights.is_error
    item = await site.harness.services.memories.get(ReadScope("dana"), memory_id)
    assert (item.text, item.status) == ("דנה גרה בעכו", Status.ARCHIVED)


async def test_hebrew_comes_back_as_it_was_stored(site: Site) -> None:
    async with site.client() as client:
        found = await client.call_tool("search_memory", {"query": "איזה תה דנה אוהבת?"})
    assert "[1] [memory_bank:m-2] דנה אוהבת תה ירוק" in text_of(found)


async def test_the_client_in_the_readme_works(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    [code] = [block for block in blocks if "streamable_http_client" in block]
    for shown, real in (("http://127.0.0.1:8000", site.url), ("rk_...", site.keys["dana"])):
        assert shown in code
        code = code.replace(shown, real)
    begun: list[Any] = []
    monkeypatch.setattr(asyncio, "run", begun.append)  # this test has a loop already
    exec(compile(code, str(README), "exec"), {})
    await begun[0]
    assert "[memory_bank:m-2] דנה אוהבת תה ירוק" in capsys.readouterr().out


async def test_one_search_per_turn_as_headers_or_meta_name_it(site: Site) -> None:
    async with site.client(X_Conversation_Id="conv-1", X_Turn_Id="turn-1") as client:
        first = await client.call_tool("search_memory", {"query": "Haifa"})
        again = await client.call_tool("search_memory", {"query": "tea"})
        meta: Any = {"turn_id": "turn-2"}
        next_turn = await client.call_tool("search_memory", {"query": "tea"}, meta=meta)
    limited = [one.structured_content["limited"] for one in (first, again, next_turn)]
    assert limited == [False, True, False]


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("search_memory", {}, "query: is missing"),
        ("search_memory", {"query": 5}, "query: must be text."),
        ("add_to_memory_bank", {"content": "a\x00b"}, "content: holds"),
        ("archive_memory", {"memory_id": "nobody"}, "no such memory"),
        ("record_response", {"key_takeaway": "x", "outcome": "perhaps"}, "outcome: must be one of"),
        ("drop_all", {}, "No tool 'drop_all'"),
    ],
)
async def test_what_cannot_be_done_is_said_to_the_model(
    site: Site, name: str, arguments: dict[str, Any], says: str
) -> None:
    async with site.client() as client:
        found = await client.call_tool(name, arguments)
    assert found.is_error
    assert says in text_of(found)
    assert "\n" not in text_of(found)
    assert found.structured_content["code"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"query": "tea", "mood": 1}, "mood: is no argument of search_memory; it was left out."),
        ({"query": "תה", "מצב": "טוב"}, "מצב: is no argument of search_memory; it was left out."),
        ({"query": "tea", "limit": "many"}, "limit: could not be read; 5 was used."),
        ({"query": "tea", "tiers": []}, "tiers: could not be read; all tiers were searched."),
    ],
)
async def test_a_search_is_not_lost_to_what_a_model_gets_wrong(
    site: Site, arguments: dict[str, Any], says: str
) -> None:
    async with site.client() as client:
        found = await client.call_tool("search_memory", arguments)
    assert not found.is_error
    assert text_of(found).startswith(f"Note: {says}\n")
    assert found.structured_content["repaired"] == [says]


async def test_a_key_that_reads_is_offered_and_allowed_only_that(site: Site) -> None:
    async with site.client("reader") as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        found = await client.call_tool("search_memory", {"query": "Haifa"})
        refused = await client.call_tool("archive_memory", {"memory_id": "m-1"})
    assert listed == READING
    assert not found.is_error
    assert refused.is_error
    assert "scope write" in text_of(refused)
    item = await site.harness.services.memories.get(ReadScope("dana"), "m-1")
    assert item.status is Status.ACTIVE


async def test_documents_are_resources(site: Site) -> None:
    books, scope = site.harness.services.books, WriteScope("dana")
    await books.upload(scope, b"# Garden", "garden.md")
    work = site.harness.reading(garden)
    await work.run_once()
    await site.harness.indexed()
    await site.harness.clock.elapse(CLAIM_S)
    await work.run_once()
    async with site.client("reader") as client:
        first, book = (await client.list_resources()).resources
        listed = await client.read_resource(first.uri)
        shown = await client.read_resource(book.uri)
        with pytest.raises(MCPError, match="no such document"):
            await client.read_resource("rayapp://books/x")
    assert (str(first.uri), book.name) == ("rayapp://books", "Garden")
    (row,) = json.loads(listed.contents[0].text)
    assert str(book.uri) == f"rayapp://books/{row['id']}"
    assert "את הגינה משקים" in shown.contents[0].text
    async with site.client("noa") as client:
        assert len((await client.list_resources()).resources) == 1
        with pytest.raises(MCPError):
            await client.read_resource(book.uri)


@pytest.mark.parametrize("question", ["Where does Dana live?", "איפה Dana גרה?"])
async def test_prompts_bring_what_memory_knows(site: Site, question: str) -> None:
    async with site.client("reader") as client:
        answer, introduce = (await client.list_prompts()).prompts
        asked = await client.get_prompt(answer.name, {"question": question})
        await client.get_prompt(introduce.name)
        with pytest.raises(MCPError, match="query"):
            await client.get_prompt(answer.name, {"question": " "})
        with pytest.raises(MCPError, match="answer_with_memory, introduce_me"):
            await client.get_prompt("nothing")
    (message,) = asked.messages
    assert message.role == "user"
    assert "Dana lives in Haifa" in message.content.text
    assert message.content.text.endswith(question)
    async with site.client("noa") as client:
        other = await client.get_prompt(answer.name, {"question": question})
        unknown = await client.get_prompt(introduce.name)
    assert "Haifa" not in other.messages[0].content.text
    assert unknown.messages[0].content.text == STRANGER


async def test_what_went_wrong_is_said_in_hebrew_to_who_asks(site: Site) -> None:
    async def broken(*_args: Any, **_more: Any) -> None:
        raise ZeroDivisionError

    site.harness.services.search.search = broken  # type: ignore[method-assign]
    async with site.client(Accept_Language="he-IL,he") as client:
        refused = await client.call_tool("search_memory", {})
        defect = await client.call_tool("search_memory", {"query": "Haifa"})
        with pytest.raises(MCPError) as unknown:
            await client.get_prompt("nothing")
        with pytest.raises(MCPError) as absent:
            await client.read_resource("rayapp://books/x")
    hebrew, exact = text_of(refused).split("\n")
    assert hebrew == f"query: {SENTENCES['invalid_input']}"
    assert exact == refused.structured_content["message_en"]
    assert "query: is missing" in exact
    hebrew, exact = text_of(defect).split("\n")
    assert hebrew == SENTENCES["internal"]
    assert exact == defect.structured_content["message_en"]
    assert exact.startswith("Internal error, request id ")
    for refusal, code in ((unknown, "not_found"), (absent, "book_not_found")):
        told = refusal.value.error
        assert told.message == f"{SENTENCES[code]}\n{told.data['message_en']}"
    assert "introduce_me" in unknown.value.error.message
    wrong = await site.post({"jsonrpc": "2.0"}, Accept_Language="he")
    assert wrong.json()["error"]["message"] == f"{SENTENCES['http_error']}\n{NO_MESSAGE}"


async def test_another_user_sees_and_changes_nothing(site: Site) -> None:
    async with site.client("noa") as client:
        found = await client.call_tool("search_memory", {"query": "Where does Dana live?"})
        assert found.structured_content["results"] == []
        for name, arguments in (
            ("archive_memory", {"memory_id": "m-1"}),
            ("update_memory", {"memory_id": "m-1", "new_content": "x"}),
            ("score_memories", {"scores": {"m-1": "failed"}}),
        ):
            refused = await client.call_tool(name, arguments)
            assert refused.is_error
            assert refused.structured_content["code"] != "invalid_input"
    item = await site.harness.services.memories.get(ReadScope("dana"), "m-1")
    assert (item.text, item.status, item.stats.uses) == ("Dana lives in Haifa", Status.ACTIVE, 0)


async def test_an_admin_acts_for_the_user_of_the_header(site: Site) -> None:
    async with site.client("admin", X_User_Id="dana") as client:
        found = await client.call_tool("search_memory", {"query": "Where does Dana live?"})
    assert found.structured_content["results"][0]["memory_id"] == "m-1"


@pytest.mark.parametrize("mode", MODES)
async def test_without_a_key_there_is_no_session(site: Site, mode: str) -> None:
    with pytest.raises(BaseException, match=r"."):  # the SDK wraps what it raises in groups
        async with site.client(None, mode=mode) as client:
            await client.list_tools()
    assert (await site.post(INITIALIZE, None)).status_code == 401


async def test_the_guard_is_that_of_the_other_routes(site: Site) -> None:
    wrong = await site.post(INITIALIZE, None, Authorization="Bearer rk_wrong")
    other = await site.post(INITIALIZE, "noa", X_User_Id="dana")
    assert (wrong.status_code, wrong.json()["code"]) == (401, "unauthorized")
    assert (other.status_code, other.json()["code"]) == (403, "other_user")
    known = await site.post(INITIALIZE, X_Request_Id="req-7")
    assert (known.status_code, known.headers["X-Request-Id"]) == (200, "req-7")
    assert known.headers["Content-Type"].startswith("application/json")
    assert "mcp-session-id" not in known.headers
    large = await site.post(INITIALIZE | {"junk": "x" * 1_100_000})
    assert (large.status_code, large.json()["code"]) == (413, "too_large")


async def test_without_keys_foreign_hosts_are_refused(keyless: Site) -> None:
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        refused = await keyless.post(INITIALIZE, None, **headers)
        assert (refused.status_code, refused.json()["code"]) == (403, "host_not_allowed")
    async with keyless.client(None, X_User_Id="dana") as client:
        found = await client.call_tool("search_memory", {"query": "Where does Dana live?"})
    assert found.structured_content["results"][0]["memory_id"] == "m-1"


async def test_a_flood_is_told_to_wait() -> None:
    limits = {"per_second": 0.001, "burst": 2}
    harness, keys = await opened(auth={"mode": "keys"}, rate_limit=limits)
    async with listening(create_api(harness.services)) as url:
        site = Site(harness, url, keys)
        answers = [await site.post(INITIALIZE) for _ in range(3)]
    assert [one.status_code for one in answers] == [200, 200, 429]
    assert int(answers[-1].headers["Retry-After"]) >= 1


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_there_are_no_streams_and_no_sessions(site: Site, method: str) -> None:
    async with httpx.AsyncClient(headers=site.headers("dana")) as http:
        answer = await http.request(method, f"{site.url}/mcp")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer.headers["Allow"] == "POST"


async def test_a_notification_is_accepted_without_an_answer(site: Site) -> None:
    sent = await site.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (sent.status_code, sent.content) == (202, b"")


@pytest.mark.parametrize(
    "body",
    [
        [],
        [INITIALIZE],
        {},
        {"jsonrpc": "2.0", "id": 1.5, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 7}},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search_memory",
         "arguments": "junk"}},
        {"jsonrpc": "2.0", "id": 1, "method": "nothing/here"},
        {"jsonrpc": "1.0", "id": 1, "method": "tools/list"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28", "nonsense"])
async def test_junk_is_an_error_of_the_protocol(site: Site, body: Any, version: str) -> None:
    answer = await site.post(body, MCP_Protocol_Version=version)
    assert answer.status_code < 500
    assert "error" in answer.json(), answer.text


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"null", b'"\\ud800"', b"[" * 3_000, b"NaN",
                b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "tools/list"}']
)  # fmt: skip
async def test_bytes_that_are_no_message_are_refused(site: Site, content: bytes) -> None:
    headers = site.headers("dana") | {"Content-Type": "application/json"}
    async with httpx.AsyncClient(headers=headers) as http:
        answer = await http.post(f"{site.url}/mcp", content=content)
    assert 400 <= answer.status_code < 500
    assert json.loads(answer.content)


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28"])
async def test_a_call_ends_at_the_time_limit(version: str) -> None:
    limits = {"serve": {"request_timeout_s": 0.2}, "search": {"timeout_s": 0.1}}
    harness, keys = await opened(auth={"mode": "keys"}, **limits)
    ended = asyncio.Event()

    async def hangs(*_args: Any, **_more: Any) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    harness.services.insights.insights = hangs  # type: ignore[method-assign, assignment]
    params = {"name": "get_context_insights", "arguments": {"query": "x"}, "_meta": META}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    named = {"Mcp_Method": "tools/call", "Mcp_Name": "get_context_insights"}
    async with listening(create_api(harness.services)) as url:
        site = Site(harness, url, keys)
        answer = await site.post(call, MCP_Protocol_Version=version, **named)
        assert (answer.status_code, answer.json()["code"]) == (504, "deadline_exceeded")
        await ended.wait()
        assert (await site.post(INITIALIZE)).status_code == 200


async def test_a_defect_of_a_tool_is_told_without_its_trace(site: Site) -> None:
    async def broken(*_args: Any, **_more: Any) -> None:
        raise ZeroDivisionError("secret detail")

    site.harness.services.search.search = broken  # type: ignore[method-assign]
    async with site.client() as client:
        found = await client.call_tool("search_memory", {"query": "Haifa"})
    assert found.is_error
    assert text_of(found).startswith("Internal error, request id ")
    assert "secret" not in text_of(found)


@pytest.mark.parametrize("body", [[], [INITIALIZE]])
async def test_a_list_of_messages_is_refused_in_words_of_our_own(site: Site, body: Any) -> None:
    response = await site.post(body)
    assert (response.status_code, response.json()["code"]) == (400, "malformed_json")
    assert response.json()["error"].startswith("Send one JSON-RPC message as a JSON object")


@pytest.mark.parametrize(
    "body",
    [
        {},
        7,
        {"jsonrpc": "2.0"},
        {"method": "tools/list", "id": 1},
        {"jsonrpc": "1.0", "id": 1, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": 7},
    ],
)
async def test_what_is_no_message_is_one_sentence(site: Site, body: Any) -> None:
    response = await site.post(body)
    told = response.json()
    assert (response.status_code, told["jsonrpc"], told["id"]) == (400, "2.0", None)
    assert told["error"]["code"] == -32600
    assert told["error"]["message"].startswith("Invalid Request: ")
    assert "validation error" not in told["error"]["message"]
    assert "\n" not in told["error"]["message"]
