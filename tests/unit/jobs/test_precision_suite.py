"""The precision suite on a small set of its own form, against the whole service on fakes."""

import io
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from rich.console import Console

from jobs.suites import precision_report
from jobs.suites.precision import WAYS, CaseResult, Context, PrecisionRun, PrecisionSuite, verdict
from jobs.suites.precision_set import BELIEFS, CASES, Prelude, Wanted, load_precision
from jobs.suites.runner import RunOptions
from rayapp.api.app import create_api
from rayapp.client import BacklogView, MemoryClient
from rayapp.client.progress import Progress
from tests.support.harness import Harness

CODE = ["domain:code"]


def belief(name: str, content: str, *aliases: str, **fields: Any) -> dict[str, Any]:
    return {
        "_id": name,
        "user_id": "test-user",
        "type": "entity",
        "canonical_name": name,
        "aliases": list(aliases),
        "content": content,
        "scope": CODE,
        "confidence": 0.9,
        "pinned": False,
        "resolved_at": None,
        "superseded_by": None,
        "created_at": "2024-01-01T00:00:00Z",
        **fields,
    }


def case(name: str, query: str, only: list[str] | None = None, **fields: Any) -> dict[str, Any]:
    expect = {} if only is None else {"relevantBeliefs": {"shouldOnlyInclude": only}}
    row = {"caseId": name, "category": "c", "scope": CODE, "query": query}
    return row | {"expect": expect | fields.pop("expect", {}), **fields}


SEED = [
    belief("helm_charts", "Deploys with charts", "helm"),
    belief("redis_cache", "Caches sessions", "Redis"),
    belief("auth_needs_redis", "Logins depend on Redis", "logins", type="relation"),
    belief("redis_person", "A pianist", "Redis", scope=["domain:writing"]),
    belief("tslint", "Checked with it before", "TSLint", superseded_by="biome"),
    belief("biome", "Formats with Biome", pinned=True, created_at="2024-02-01T00:00:00Z"),
    belief("which_cloud", "Undecided", "cloud", type="open_question", pinned=True),
    belief("direct", "Likes direct answers", scope=["user:universal"], pinned=True),
    belief("other", "Writes Haskell", user_id="other-user", pinned=True),
    belief("hosting", "Was debated", "hosting", resolved_at="2024-03-01T00:00:00Z"),
]
ASKED = [
    case("alias", "is helm any good?", ["helm_charts"]),
    case("scope", "what is Redis for?", ["redis_cache"]),
    case("relation", "who logins?", ["auth_needs_redis", "redis_cache"]),
    case("superseded", "TSLint rules", [], expect={"pinnedFacts": {"mustInclude": ["biome"]}}),
    case("resolved", "hosting of the site", []),
    case(
        "question", "which cloud?", [], expect={"openQuestions": {"mustInclude": ["which_cloud"]}}
    ),
    case("prelude", "", [], expect={"personaPrelude": {"nonEmpty": True, "contains": ["direct"]}}),
    case("nobody", "helm", [], userId="new", expect={"personaPrelude": {"isNull": True}}),
    case("budget", "helm", [], budget={"maxBeliefs": 1}),
    case("isolated", "Haskell", expect={"pinnedFacts": {"mustExclude": ["other"]}}),
]


class InProcess(MemoryClient):
    """The client without a socket; waiting for the index runs the indexer."""

    def __init__(self, service: Harness) -> None:
        super().__init__("http://127.0.0.1:8000")
        transport = httpx.ASGITransport(app=create_api(service.services))
        self._http = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000")
        self.service = service

    async def wait_indexed(self, **options: Any) -> BacklogView:
        await self.service.drain()
        return await self.backlog()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for path, rows in ((BELIEFS, SEED), (CASES, ASKED)):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(json.dumps(rows), encoding="utf-8")
    return tmp_path


async def run(data: Path, limit: int | None = None) -> PrecisionRun:
    client = InProcess(await Harness.open())
    console = Console(file=io.StringIO())
    async with client:
        with Progress(console) as progress:
            options = RunOptions(run_id="t")
            return await PrecisionSuite(
                client, load_precision(data), options, progress, limit_questions=limit
            ).run()


async def test_every_kind_of_case_is_judged(data: Path) -> None:
    done = await run(data)
    assert (done.stored, done.failures) == (len(SEED), 0)
    assert len(done.results) == len(ASKED) * len(WAYS)
    assert {one.case_id: one.reason for one in done.results if one.way == "named"} == dict.fromkeys(
        [row["caseId"] for row in ASKED]
    )
    assert done.share("named", active=True) == (4, 4)
    passed, asked = done.share("plain")
    assert passed < asked, "the best hits alone are not precise"


async def test_the_report_tells_ids_and_reasons_and_no_text(data: Path) -> None:
    done = await run(data)
    done.results.append(
        CaseResult(
            case_id="bad", category="c", way="named", active=True, reason="relevant lacks redis"
        )
    )
    report = (
        json.dumps(precision_report.report(done))
        + precision_report.markdown(done)
        + precision_report.line(done)
    )
    assert "relevant lacks redis" in report
    assert "4 of 5 cases" in report
    for row in (*SEED, *ASKED):
        text = row.get("content") or row.get("query")
        assert not text or " " not in text or text not in report
    assert len(precision_report.tables(done)) == 2
    assert {row.part for row in precision_report.rows(done)} >= {"named active", "named empty"}


async def test_a_limit_takes_cases_from_the_whole_set(data: Path) -> None:
    done = await run(data, 3)
    asked = [one.case_id for one in done.results if one.way == "named"]
    assert asked == ["alias", "superseded", "prelude"]
    # A case without a query asks for nothing; the others ask at least once in each way.
    assert done.searched.answers >= 2 * len(WAYS)
    assert done.searched.degraded == 0


def test_the_older_belief_is_stored_before_the_one_that_replaces_it(data: Path) -> None:
    mine = [memory.memory_id for memory in load_precision(data).beliefs["test-user"]]
    assert mine.index("tslint") < mine.index("biome")
    newer = next(m for m in load_precision(data).beliefs["test-user"] if m.memory_id == "biome")
    assert newer.supersedes == "tslint"


@pytest.mark.parametrize(
    ("wanted", "got", "problem"),
    [
        (Wanted(only=frozenset({"a"})), ("a",), None),
        (Wanted(only=frozenset({"a"})), (), "x lacks a"),
        (Wanted(only=frozenset({"a"})), ("a", "b"), "x holds b as well"),
        (Wanted(only=frozenset()), ("b",), "x holds b as well"),
        (Wanted(must=frozenset({"a"})), ("a", "b"), None),
        (Wanted(never=frozenset({"b"})), ("a", "b"), "x holds b as well"),
    ],
)
def test_what_a_part_must_hold(wanted: Wanted, got: tuple[str, ...], problem: str | None) -> None:
    assert wanted.problem("x", got) == problem


@pytest.mark.parametrize(
    ("prelude", "text", "problem"),
    [
        (Prelude(present=True), "", "prelude is empty"),
        (Prelude(present=False), "a", "prelude is not empty"),
        (Prelude(contains=("b",)), "a", "prelude lacks b"),
        (Prelude(never=("a",)), "a", "prelude holds a"),
        (Prelude(present=True, contains=("a",)), "a", None),
    ],
)
def test_what_the_prelude_must_say(prelude: Prelude, text: str, problem: str | None) -> None:
    assert prelude.problem(text) == problem


def test_the_first_problem_is_the_reason(data: Path) -> None:
    first = load_precision(data).cases[0]
    assert verdict(first, Context(relevant=("helm_charts",))) is None
    assert verdict(first, Context()) == "relevant lacks helm_charts"
