"""The demo against a service that ranks by plain BM25, and the rules of its material."""

import io
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from rayapp.core.ids import MEMORY_ID_PATTERN
from rayapp.local.demo.material import DemoQuestion, load_material
from rayapp.local.demo.runner import next_commands, run
from rayapp.local.demo.table import (
    DemoAnswer,
    answer_table,
    closing_line,
    hit_table,
    preview,
    recent_table,
)
from rayapp.memory.tiers import parse_tier
from tests.support.ports import free_port
from tests.support.replies import a_hit, a_recent_memory, a_reply
from tests.unit.fake_service import FakeService, serving

HEBREW = re.compile(r"[א-ת]")


@pytest.fixture
def service() -> Iterator[FakeService]:
    with serving(FakeService()) as started:
        yield started


def console() -> Console:
    return Console(file=io.StringIO(), width=160)


def text_of(made: Console) -> str:
    assert isinstance(made.file, io.StringIO)
    return made.file.getvalue()


def test_the_conversation_is_bilingual_and_long_enough() -> None:
    turns = [memory for memory in load_material().memories if memory.tier == "history"]
    sessions = {memory.source and memory.source.conversation_id for memory in turns}
    hebrew = sum(bool(HEBREW.search(memory.text.split(": ", 1)[1])) for memory in turns)
    assert len(turns) >= 160
    assert len(sessions) == 20
    assert 0.4 < hebrew / len(turns) < 0.6


def test_ids_are_unique_and_accepted_and_every_evidence_is_stored(tmp_path: Path) -> None:
    material = load_material()
    ids = [str(memory.memory_id) for memory in material.memories]
    assert len(set(ids)) == len(ids)
    assert all(MEMORY_ID_PATTERN.match(name) for name in ids)
    assert all(parse_tier(memory.tier) is not None for memory in material.memories)
    assert {name for q in material.questions for name in q.evidence} <= set(ids)
    languages = {bool(HEBREW.search(q.text)) for q in material.questions}
    assert languages == {True, False}
    assert len(material.questions) >= 12


def test_texts_are_distinct_so_that_no_turn_is_a_duplicate() -> None:
    texts = [memory.text for memory in load_material().memories]
    assert len(set(texts)) == len(texts)


def test_every_hebrew_text_has_a_translation_and_no_other() -> None:
    material = load_material()
    hebrew = {m.memory_id for m in material.memories if HEBREW.search(m.text.split(": ", 1)[-1])}
    assert set(material.translations) == hebrew
    texts = [*material.translations.values(), *(q.translation for q in material.questions)]
    assert not [text for text in texts if HEBREW.search(text)]
    assert all(bool(q.translation) == bool(HEBREW.search(q.text)) for q in material.questions)


def test_nothing_is_stored_or_asked_about_the_project() -> None:
    material = load_material()
    assert {memory.tier for memory in material.memories} == {"history", "memory_bank"}
    for text in (*(m.text for m in material.memories), *(q.text for q in material.questions)):
        assert not re.search(r"rayapp|qdrant|mongo|README|ARCHITECTURE", text, re.IGNORECASE)


def test_the_next_commands_survive_a_shell() -> None:
    search, add, recent = next_commands(load_material(), "'my tools/rayapp'", "--data-dir 'a b'")
    words = ["my tools/rayapp", "search", load_material().next_question, "--user", "demo"]
    assert shlex.split(search) == [*words, "--data-dir", "a b"]
    assert shlex.split(add)[1:3] == ["add", "Dana moved to Haifa in May"]
    assert shlex.split(recent)[1:] == ["recent", "--user", "demo", "--data-dir", "a b"]


async def test_the_demo_answers_and_a_second_run_stores_duplicates_only(
    service: FakeService,
) -> None:
    first, second = console(), console()
    assert await run(service.url, load_material(), first) == 0
    count = len(load_material().memories)
    assert "the first evidence came in place n, ✓ means top 3" in text_of(first)
    assert f"{count} memories stored, 0 were there already, 0 rejected." in text_of(first)
    assert "questions have their evidence in the top 3" in text_of(first)
    assert await run(service.url, load_material(), second) == 0
    assert f"0 memories stored, {count} were there already" in text_of(second)
    assert {search["user"] for search in service.searches} == {"demo"}
    assert "איפה נועה גרה היום?" in text_of(second)


async def test_rejected_memories_are_exit_three(service: FakeService) -> None:
    service.reject_text = "Schnitzel"
    assert await run(service.url, load_material(), console()) == 3


async def test_the_demo_says_what_degraded_means_and_what_to_type_next(
    service: FakeService,
) -> None:
    service.degraded = ["priors", "embedder"]
    made = console()
    assert await run(service.url, load_material(), made, program="r", options="--data-dir d") == 0
    text = text_of(made)
    assert text.count("degraded: priors: the learned graphs came too late") == 1
    assert "degraded: embedder: the embedder is away, so words were compared" in text
    last = text.splitlines()[-3:]
    assert [line.split()[:2] for line in last] == [["r", "search"], ["r", "add"], ["r", "recent"]]
    assert all(line.endswith("--user demo --data-dir d") for line in last)


async def test_a_translation_stands_below_a_hebrew_question_and_its_hit(
    service: FakeService,
) -> None:
    made = console()
    assert await run(service.url, load_material(), made) == 0
    lines = [line.strip() for line in text_of(made).splitlines()]
    at = next(i for i, line in enumerate(lines) if line.startswith("לאיזה אוכל קינמון אלרגי?"))
    assert lines[at + 1] == "= What food is Kinamon allergic to?"
    assert lines[at + 3].startswith("= ")


async def test_a_running_service_that_asks_for_a_key_is_exit_two(service: FakeService) -> None:
    service.needs_key = True
    made = console()
    assert await run(service.url, load_material(), made) == 2
    said = text_of(made).strip()
    assert "\n" not in said
    assert "`rayapp keys create demo --user demo --scope admin > my.key`" in said
    assert await run(service.url, load_material(), console(), api_key="rk_x") == 0


async def test_an_absent_service_is_one_sentence_and_exit_four() -> None:
    made = console()
    assert await run(f"http://127.0.0.1:{free_port()}", load_material(), made) == 4
    assert "start it with `rayapp up`" in text_of(made)


def answer(ids: list[str], evidence: set[str], elapsed_ms: float) -> DemoAnswer:
    hits = [a_hit(position=i, memory_id=name) for i, name in enumerate(ids, 1)]
    reply = a_reply(hits, elapsed_ms=elapsed_ms)
    return DemoAnswer(DemoQuestion("q", frozenset(evidence)), reply)


def test_only_the_top_three_count_as_found() -> None:
    answers = [
        answer(["a", "b"], {"b", "z"}, 4.0),
        answer(["a", "b", "c", "d"], {"d"}, 8.0),
        answer([], {"a"}, 6.0),
        answer(["a"], {"a"}, 2.0),
    ]
    assert [one.evidence_at for one in answers] == [2, 4, None, 1]
    assert closing_line(answers) == (
        "2 of 4 questions have their evidence in the top 3, 1 in first place; "
        "p50 4.0 ms, p95 8.0 ms."
    )


@pytest.mark.parametrize(
    ("asked", "hit"),
    [
        ("Which day does Daniel have to finish moving the payments?", "We have to move " * 9),
        ("באיזה יום דניאל חייב לסיים את העברת התשלומים לספר החדש?", "צריך להעביר כל תשלום " * 9),
    ],
)
def test_a_terminal_of_80_columns_shows_numbers_whole_and_texts_in_few_lines(
    asked: str, hit: str
) -> None:
    top = a_hit(memory_id="a", tier="memory_bank", content=hit, score=0.987)
    reply = a_reply([top], elapsed_ms=123.4)
    made = Console(file=io.StringIO(), width=80)
    made.print(answer_table([DemoAnswer(DemoQuestion(asked, frozenset({"a"})), reply)]))
    _, head, _, *rows = [line for line in text_of(made).splitlines() if line.strip()]
    assert head.split()[-4:] == ["tier", "score", "evidence", "ms"]
    assert rows[0].split()[-5:] == ["memory_bank", "0.987", "✓", "1", "123.4"]
    assert len(rows) <= 3
    assert all(len(row) <= 80 for row in rows)
    assert rows[-1].strip().startswith(hit[:30])


def test_preview_is_one_short_line() -> None:
    assert preview("a\n b") == "a b"
    assert len(preview("x" * 500)) == 60


@pytest.mark.parametrize(
    ("value", "low", "high", "said"),
    [(0.5, 0.0, 1.0, ""), (0.6033, 0.2065, 1.0, "helps 60% (21% to 100%)")],
)
def test_tables_say_how_often_a_judged_memory_helps(
    value: float, low: float, high: float, said: str
) -> None:
    estimate = {"value": value, "low": low, "high": high}
    hit = a_hit(success_estimate=estimate)
    recent = a_recent_memory(success_estimate=estimate)
    for table in (hit_table([hit]), recent_table([recent])):
        out = io.StringIO()
        Console(file=out, width=100).print(table)
        assert ("helps" in out.getvalue()) == bool(said)
        assert said in out.getvalue()
