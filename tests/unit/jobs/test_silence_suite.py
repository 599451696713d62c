"""The silence suite on small sets of the forms of the real ones, against the service on fakes."""

import io
import json
from pathlib import Path

from rich.console import Console

from jobs.suites import silence_report
from jobs.suites.runner import RunOptions
from jobs.suites.silence import DAILY, FOREIGN, NEAR, OWN, SilenceRun, SilenceSuite, asked_of
from jobs.suites.silence import load_silence as load
from rayapp.client.progress import Progress
from tests.support.harness import Harness
from tests.unit.jobs.report_data import PARAGRAPHS, write_heq
from tests.unit.jobs.test_beam import CHAT, DIALOGUE
from tests.unit.jobs.test_precision_suite import InProcess

SHOOT = {"id": "p-1", "context": "הים התיכון הוא ים.", "question": "איזה ים הוא התיכון?"}


def written(data: Path) -> Path:
    write_heq(data)
    for path, rows in (
        ("locomo/locomo-open5.json", [DIALOGUE]),
        ("beam/beam-100k-1to8.json", [CHAT]),
        ("parashoot/dev.json", {"data": [SHOOT]}),
    ):
        (data / path).parent.mkdir(exist_ok=True)
        (data / path).write_text(json.dumps(rows), encoding="utf-8")
    return data


async def run(data: Path) -> SilenceRun:
    client = InProcess(await Harness.open())
    async with client:
        with Progress(Console(file=io.StringIO())) as progress:
            return await SilenceSuite(client, load(data), RunOptions(run_id="t"), progress).run()


def test_no_question_is_foreign_to_the_store_that_it_is_of(tmp_path: Path) -> None:
    loaded = load(written(tmp_path))
    assert {store.source for store in loaded.stores} == {"locomo", "beam", "heq"}
    asked = list(asked_of(loaded))
    assert {one.kind for one in asked} == {OWN, FOREIGN, DAILY, NEAR}
    for one in asked:
        own = {question.question_id for question in one.store.corpus.questions}
        assert (one.question.question_id in own) is (one.kind == OWN)
    assert [one.question.text for one in asked] == [one.question.text for one in asked_of(loaded)]


async def test_every_question_is_told_of_and_no_text_is_reported(tmp_path: Path) -> None:
    done = await run(written(tmp_path))
    loaded = load(tmp_path)
    assert done.failures == 0
    assert len(done.told) == len(list(asked_of(loaded)))
    own = [one for one in done.told if one.asked.store.source == "heq" and one.asked.kind == OWN]
    assert len(own) == PARAGRAPHS
    assert all(one.shown == 1.0 and one.lines and one.chars for one in own)
    said = json.dumps(silence_report.report(done)) + silence_report.markdown(done)
    assert all(one.asked.question.text not in said for one in own)
    (table,) = silence_report.tables(done)
    assert table.row_count == len({(one.asked.store.source, one.asked.kind) for one in done.told})
    rows = silence_report.rows(done)
    assert {name for row in rows for name in row.values} == {"evidence", "silent"}
    assert len({row.key for row in rows}) == len(rows)
