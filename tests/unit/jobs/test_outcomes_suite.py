"""The outcomes suite against a client that keeps what it is told, and refuses what a test names."""

import io
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from jobs.suites import outcomes_report
from jobs.suites.locomo import FILE as LOCOMO
from jobs.suites.outcomes import FLOOD, OutcomesRun, OutcomesSuite, load_outcomes
from jobs.suites.runner import RunOptions
from jobs.suites.scenarios import ADVERSARIAL, load_contradictions
from rayapp.client import BacklogView, BatchResult, Memory, MemoryClient, SearchReply
from rayapp.client.progress import Progress
from rayapp.core.errors import NotFound
from tests.support.replies import a_hit, a_reply

ADVICE = [
    {
        "id": 1,
        "good_advice": "turn it slowly",
        "bad_advice": "hit it hard",
        "query": "hit it hard?",
    },
    {"id": 2, "good_advice": "לחכות מעט", "bad_advice": "למשוך חזק", "query": "למשוך חזק?"},
]
TURNS = [{"speaker": "Noa", "dia_id": "D1:1", "text": "I adopted a beagle."}]
DIALOGUE = {
    "sample_id": "c",
    "conversation": {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": TURNS},
    "qa": [{"question": "Who adopted a beagle?", "evidence": ["D1:1"], "category": 4}],
}


@dataclass
class Learner:
    """Ranks a user's memories by what their outcomes add up to; the bad one is first at first."""

    refused: frozenset[str] = frozenset()  # ids that are never stored
    lacking: tuple[str, ...] = ()
    gullible: bool = False  # takes any user's outcome, and says that there is no such memory
    users: dict[str, dict[str, int]] = field(default_factory=dict)

    async def store_batch(self, memories: Sequence[Memory], *, user_id: str) -> list[BatchResult]:
        return [self._store(str(memory.memory_id), user_id) for memory in memories]

    def _store(self, name: str, user_id: str) -> BatchResult:
        if name in self.refused:
            return BatchResult(memory_id=None, status="rejected", code="invalid_input")
        mine = self.users.setdefault(user_id, {})
        status = "duplicate" if name in mine else "stored"
        mine.setdefault(name, 0)
        return BatchResult.model_validate({"memory_id": name, "status": status})

    async def search(self, query: str, *, user_id: str, **_: Any) -> SearchReply:
        mine = self.users.get(user_id, {})
        ids = sorted(mine, key=lambda name: (-mine[name], name.endswith("-good"), name))
        hits = [a_hit(position=place, memory_id=name) for place, name in enumerate(ids, 1)]
        return a_reply(hits, receipt_id="r", degraded=self.lacking)

    async def record_outcome(
        self, outcome: str, *, memory_ids: Sequence[str], user_id: str, **_: Any
    ) -> None:
        (name,) = memory_ids
        if self.gullible and user_id not in self.users:
            for mine in self.users.values():
                if name in mine:
                    mine[name] -= 10
        if name not in self.users.get(user_id, {}):
            raise NotFound("There is no such memory.")
        self.users[user_id][name] += 1 if outcome == "worked" else -1

    async def item(self, memory_id: str, *, user_id: str) -> SimpleNamespace:
        if memory_id not in self.users.get(user_id, {}):
            raise NotFound("There is no such memory.")
        return SimpleNamespace(status="active")

    async def wait_indexed(self, **_: Any) -> BacklogView:
        return BacklogView(pending=0, synced=1, failed=0, oldest_pending_s=0.0, unencoded=0)


async def run(data: Path, client: Learner) -> OutcomesRun:
    with Progress(Console(file=io.StringIO())) as progress:
        return await OutcomesSuite(
            cast(MemoryClient, client), load_outcomes(data), RunOptions(run_id="t"), progress
        ).run()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for path, rows in ((ADVERSARIAL, ADVICE), (LOCOMO, [DIALOGUE])):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(json.dumps(rows), encoding="utf-8")
    return tmp_path


async def test_a_service_that_learns_has_no_failures(data: Path) -> None:
    done = await run(data, Learner())
    assert done.failures == 0
    pooled = next(form for form in done.forms if form.form == "pooled")
    assert [pooled.share(level)[0] for level in (0, 3)] == [0.0, 1.0]
    assert done.sabotage.tried == done.sabotage.refused == FLOOD * len(ADVICE)
    assert done.searched.answers > done.asked.answers > 0


async def test_a_refused_memory_is_a_failure_in_every_form_it_is_in(data: Path) -> None:
    done = await run(data, Learner(refused=frozenset({"adv-1-good"})))
    users = Counter(line.split("-")[2] for line in done.rejected)
    assert users == {"pair": 1, "pooled": 1, "c": 1}  # the last one is a user of LoCoMo
    assert done.failures == 3
    assert outcomes_report.report(done)["rejected"] == done.rejected
    assert "3 were refused" in outcomes_report.line(done)


async def test_an_order_that_sabotage_turned_is_a_failure(data: Path) -> None:
    done = await run(data, Learner(gullible=True))
    assert done.sabotage.refused == done.sabotage.tried
    assert done.failures == done.sabotage.flipped == len(ADVICE)


async def test_answers_in_part_are_counted_in_all_forms(data: Path) -> None:
    done = await run(data, Learner(lacking=("dense",)))
    assert done.searched.degraded == done.searched.answers
    scenarios = len(ADVICE) + len(load_contradictions())
    assert done.searched.answers > 5 * scenarios
