"""The facts suite on some of its histories, against the service on fakes."""

import io
import json
from typing import Any

import pytest
from rich.console import Console

from jobs.suites import facts, facts_report
from jobs.suites.facts import FactsRun, FactsSuite, load_facts
from jobs.suites.facts_set import KINDS, LANGUAGES, histories
from jobs.suites.runner import RunOptions
from rayapp.client.progress import Progress
from rayapp.core.ids import user_of
from rayapp.memory.item import Status
from rayapp.understanding.ports import SourceText
from rayapp.wire.insights import BacklogView
from tests.support.harness import Harness
from tests.unit.jobs.test_precision_suite import InProcess


class Understanding(InProcess):
    """What is stored is understood while the index is waited for, and a deletion is heard."""

    async def wait_indexed(self, **options: Any) -> BacklogView:
        for row in self.service.items.inner._rows.values():
            item = row.item
            if item.status is Status.ACTIVE:
                said = (item.memory_id, item.text, item.created_at, None, None, None, ())
                source = SourceText(item.user_id, *said)
                await self.service.container.understander.understand([source])
        return await super().wait_indexed(**options)

    async def delete(self, memory_id: str, **who: Any) -> Any:  # type: ignore[override]
        done = await super().delete(memory_id, **who)
        await self.service.container.understander.take_back(who["user_id"], [memory_id])
        return done


@pytest.fixture
async def done(monkeypatch: pytest.MonkeyPatch) -> FactsRun:
    monkeypatch.setattr(facts, "LOOK_S", 0.0)
    client = Understanding(await Harness.open())
    async with client:
        with Progress(Console(file=io.StringIO())) as progress:
            options = RunOptions(run_id="t")
            loaded = facts.FactsSet(tuple(histories(3, 1)))
            return await FactsSuite(client, loaded, options, progress).run()


def test_the_same_seed_makes_the_same_histories() -> None:
    loaded = load_facts(None)  # type: ignore[arg-type]
    assert loaded == load_facts(None)  # type: ignore[arg-type]
    kinds = {(one.lang, each.kind) for one in loaded.histories for each in one.questions}
    assert kinds == {(lang, kind) for lang in LANGUAGES for kind in KINDS}
    ids = [one.history_id for one in loaded.histories]
    assert len(ids) == len(set(ids))
    for one in loaded.histories:
        told = {each.memory_id for each in one.told}
        assert told >= set(one.deleted)
        assert user_of(one.history_id) == one.history_id


async def test_the_graph_is_asked_and_no_text_is_reported(done: FactsRun) -> None:
    assert done.failures == 0
    assert len(done.answered) == len(KINDS) * len(LANGUAGES)
    wrong = [one.asked.question.question_id for one in done.answered if not one.right]
    assert wrong == []
    said = json.dumps(facts_report.report(done)) + facts_report.markdown(done)
    texts = {told.text for one in done.answered for told in one.asked.history.told}
    assert not any(text in said for text in texts)
    assert {row.values["right"] for row in facts_report.rows(done)} == {1.0}
    (table,) = facts_report.tables(done)
    assert table.row_count == len(KINDS)
    assert "answered rightly by the typed graph 1.000" in facts_report.line(done)
