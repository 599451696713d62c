"""Committed results, comparisons, ablations and the picture, on values alone."""

import itertools
import json
import random
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.suites import outcomes_report, report
from jobs.suites.ablation import ablation_line, ablation_markdown, compare_variants, idle, variants
from jobs.suites.compare import TOLERANCE, beyond_chance, compare
from jobs.suites.gate import gate, gate_line, gate_markdown, gate_report, read_committed
from jobs.suites.golden import Golden, data_hashes, read_golden, replace_texts, write_golden
from jobs.suites.locomo import session_of
from jobs.suites.outcomes import JUDGED_LEVEL, FormRun, OutcomesRun, Sabotage, ScenarioRanks
from jobs.suites.picture import picture
from jobs.suites.rows import SHOWN, Headline, Ranks, Row, headlines, measures
from jobs.suites.runner import Answered, RunOptions, SuiteRun
from jobs.suites.searched import Searched
from jobs.suites.suite import Corpus, Question, Suite, spread
from rayapp.core.errors import ConfigError
from rayapp.search.rules.evaluation import METRICS, Estimate, Judged

KNOWN: dict[str, Any] = {"searched": Searched(10), "hashes": {"f": "1"}}
SERVICE = {"model": "m", "analyser": "a", "recipe": "default"}
RANKS = st.lists(st.one_of(st.none(), st.integers(1, 60)), min_size=1, max_size=4).filter(
    lambda ranks: len({r for r in ranks if r}) == sum(r is not None for r in ranks)
)


def row(number: int | str, *ranks: int | None, part: str = "all", lang: str = "he") -> Row:
    return Row(
        part=part,
        question_id=str(number),
        category="c",
        lang=lang,
        ranks=ranks,
        values=measures(ranks),
        floor=measures((None,)),
    )


def judged_row(number: int, value: float) -> Row:
    return Row(
        part="kept", question_id=str(number), category="c", lang="en", values={"right": value}
    )


def golden(rows: list[Row]) -> Golden:
    return Golden(suite="s", data={"f": "1"}, service=SERVICE, rows=replace_texts(rows))


@given(RANKS)
def test_ranks_alone_give_every_metric(ranks: list[int | None]) -> None:
    gold = tuple(f"g{number}" for number in range(len(ranks)))
    ranked = [f"x{number}" for number in range(60)]
    for name, rank in zip(gold, ranks, strict=True):
        if rank is not None:
            ranked[rank - 1] = name
    whole = Judged(question_id="q", gold=gold, ranked=tuple(ranked))
    assert measures(tuple(ranks)) == {name: metric(whole) for name, metric in METRICS.items()}


@settings(deadline=None)  # every example writes a file
@given(st.lists(RANKS.map(tuple), max_size=6), st.lists(st.sampled_from([0.0, 1.0]), max_size=3))
def test_what_is_committed_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, ranks: list[Ranks], values: list[float]
) -> None:
    rows = [row(number, *one, part='ה"כל') for number, one in enumerate(ranks)]
    rows += [judged_row(number, value) for number, value in enumerate(values)]
    folder = tmp_path_factory.mktemp("golden")
    write_golden(folder, golden(rows))
    read = read_golden(folder, "s")
    assert read.data == {"f": "1"}
    assert read.service == SERVICE
    plain = {replace(one, floor={}).key: replace(one, floor={}) for one in rows}
    assert {one.key: one for one in read.rows} == plain


def test_a_file_holds_one_question_per_line_and_no_sentence(tmp_path: Path) -> None:
    sentence = "Who adopted a beagle?"
    path = write_golden(tmp_path, golden([row(sentence, 1), row("q-1", 2)]))
    text = path.read_text(encoding="utf-8")
    assert "beagle" not in text
    assert '"q-1": [2],' in text.splitlines()
    assert json.loads(text)["means"]["all"]["R@1"] == 0.5
    assert replace_texts([row(sentence, 1)]) == replace_texts(replace_texts([row(sentence, 1)]))


def test_the_same_results_are_the_same_file(tmp_path: Path) -> None:
    rows = [row(number, number % 5 + 1) for number in range(20)]
    first = write_golden(tmp_path / "a", golden(rows)).read_bytes()
    assert write_golden(tmp_path / "b", golden(rows[::-1])).read_bytes() == first


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"format": 9, "suite": "s"}', '{"format": 1, "suite": "other"}', "{}"]
)
def test_a_file_that_is_no_result_says_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(ConfigError, match=r"--golden|cannot be read as JSON"):
        read_golden(tmp_path, "s")


def test_missing_results_say_how_to_write_them(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="write them with --golden"):
        read_golden(tmp_path, "s")


def test_other_data_is_no_failure_of_ranking(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"one")
    hashes = data_hashes({"The set": (Path("f"),)}, tmp_path)
    write_golden(tmp_path, Golden(suite="s", data=hashes, service=SERVICE, rows=(row(1, 1),)))
    assert read_committed(tmp_path, "s", hashes).rows
    (tmp_path / "f").write_bytes(b"two")
    with pytest.raises(ConfigError, match="f is not the file that the committed results of s"):
        read_committed(tmp_path, "s", data_hashes({"The set": (Path("f"),)}, tmp_path))
    with pytest.raises(ConfigError, match="f is not the file"):
        read_committed(tmp_path, "s", {"g": "1"})


def test_results_older_than_a_hash_are_compared_with_a_note(tmp_path: Path) -> None:
    ours = tmp_path / "ours.yaml"
    ours.write_text("one")
    hashes = data_hashes({}, tmp_path, (ours,))
    assert list(hashes) == ["jobs/suites/ours.yaml"]
    write_golden(tmp_path, golden([row(1, 1)]))
    later = {"f": "1", **hashes}
    before = read_committed(tmp_path, "s", later)
    known = {**KNOWN, "hashes": later}
    found = gate(before, [row(1, 1)], SERVICE, tolerance=0.0, whole=True, **known)
    assert not found.closed
    assert "do not say which jobs/suites/ours.yaml they are of" in gate_line(found)
    write_golden(tmp_path, replace(before, data=later))
    committed = read_committed(tmp_path, "s", later)
    found = gate(committed, [row(1, 1)], SERVICE, tolerance=0.0, whole=True, **known)
    assert found.notes == ()
    ours.write_text("two")
    with pytest.raises(ConfigError, match=r"ours\.yaml is not the file"):
        read_committed(tmp_path, "s", {"f": "1", **data_hashes({}, tmp_path, (ours,))})


def test_a_change_is_paired_and_names_who_lost() -> None:
    before = [row(number, 1) for number in range(10)]
    after = [row(0, None), row(1, 3), *(row(number, 1) for number in range(2, 10))]
    found = compare(before, after)
    change = {one.metric: one for one in found.differences}
    assert tuple(change) == SHOWN
    assert change["R@1"].change.mean == pytest.approx(-0.2)
    assert change["hit@10"].change.mean == pytest.approx(-0.1)
    assert change["R@1"].change.low <= -0.2 <= change["R@1"].change.high
    assert [str(worse) for worse in found.worse] == [
        "all 0: rank 1 -> not found",
        "all 1: rank 1 -> rank 3",
    ]
    assert (found.better, found.missing) == (0, 0)
    assert compare(after, before).better == 2


@settings(deadline=None)  # every example draws its intervals
@given(st.lists(RANKS.map(tuple), min_size=1, max_size=8))
def test_a_run_equals_itself(ranks: list[Ranks]) -> None:
    rows = [row(number, *one) for number, one in enumerate(ranks)]
    found = compare(rows, rows)
    assert not found.worse
    assert {one.change for one in found.differences} == {Estimate(0.0, 0.0, 0.0, len(rows))}
    assert {one.sign for one in found.differences} == {"same"}


@pytest.mark.parametrize(
    ("questions", "lost", "closed"),
    [(200, 6, False), (200, 7, True), (20, 2, False), (20, 3, True), (20, 0, False)],
)
def test_the_gate_closes_below_the_floor_minus_the_tolerance(
    questions: int, lost: int, closed: bool
) -> None:
    before = golden([judged_row(number, 1.0) for number in range(questions)])
    after = [judged_row(number, float(number >= lost)) for number in range(questions)]
    found = gate(before, after, SERVICE, tolerance=TOLERANCE, whole=True, **KNOWN)
    assert found.closed is closed
    assert ("BELOW" in gate_line(found)) is closed
    assert ("| below |" in gate_markdown([found])) is closed


@pytest.mark.parametrize(
    ("right", "now", "closed"),
    [(7, 0, True), (7, 4, True), (7, 5, False), (28, 22, False), (28, 21, True)],
)
def test_a_small_rate_is_held_to_its_own_size(right: int, now: int, closed: bool) -> None:
    """Of 223 questions 7 are .031: the tolerance alone would let all but the last one go."""
    before = golden([judged_row(number, float(number < right)) for number in range(223)])
    after = [judged_row(number, float(number < now)) for number in range(223)]
    found = gate(before, after, SERVICE, tolerance=TOLERANCE, whole=True, **KNOWN)
    assert found.closed is closed


def test_degraded_answers_are_told_beside_the_verdict() -> None:
    searched = Searched.of([(), ("dense",), ("dense", "rerank")])
    known = {**KNOWN, "searched": searched}
    found = gate(golden([row(1, 1)]), [row(1, 1)], SERVICE, tolerance=0.0, whole=True, **known)
    assert "2 of 3 answers were degraded (dense 2, rerank 1)." in gate_line(found)
    assert gate_report(found)["answers"] == {
        "answers": 3,
        "degraded": 2,
        "names": {"dense": 2, "rerank": 1},
    }


@pytest.mark.parametrize(("degraded", "too"), [(0, False), (3, False), (4, True)])
def test_one_answer_in_fifty_may_be_degraded(degraded: int, too: bool) -> None:
    answers = [("dense",)] * degraded + [()] * (150 - degraded)
    assert Searched.of(answers).too_degraded is too
    assert (Searched.of(answers[:9]) + Searched.of(answers[9:])) == Searched.of(answers)


def test_a_question_that_was_not_asked_counts_only_in_a_whole_run() -> None:
    before = golden([row(number, 1) for number in range(5)])
    some = [row(number, 1) for number in range(3)]
    assert gate(before, some, SERVICE, tolerance=0.0, whole=True, **KNOWN).closed
    assert not gate(before, some, SERVICE, tolerance=0.0, whole=False, **KNOWN).closed
    with pytest.raises(ConfigError, match="about a question of this run"):
        gate(before, [row("other", 1)], SERVICE, tolerance=0.0, whole=False, **KNOWN)


def test_another_model_is_noted() -> None:
    rows = [row(1, 1)]
    other = {**SERVICE, "model": "n"}
    found = gate(golden(rows), rows, other, tolerance=0.0, whole=True, **KNOWN)
    assert "model is n, the committed results are of m" in gate_line(found)


def test_variants_differ_by_recipe_and_by_users() -> None:
    made = variants(RunOptions(run_id="r"), "default", ["dense", "turns"])
    assert [one.recipe for one in made] == [None, "default-without-dense", "default-without-turns"]
    assert len({one.run_id for one in made}) == 3


def test_an_ablation_says_what_earns_nothing() -> None:
    full = [row(number, 1) for number in range(30)]
    without = [row(number, 3) for number in range(30)]
    found = compare_variants("heq", ["dense", "rerank"], [full, without, full], [2.0, 1.5, 2.0])
    assert idle(found) == ["rerank"]
    assert "Without rerank no measure" in ablation_line(found)
    text = ablation_markdown(found)
    assert "| heq | all | R@1 | 1.000 | 0.000 | **-1.000** | -1.000 to -1.000 | 30 |" in text
    assert "search p50 2.0 ms with, 1.5 ms without" in text
    elsewhere = compare_variants("locomo", ["rerank"], [full, without], [None, None])
    assert idle([*found, *elsewhere]) == []


def noise(measures: int, questions: int, seed: int) -> tuple[list[Row], list[Row]]:
    """Two runs that differ in no question but by chance, looked at by many measures."""
    draw = random.Random(seed)
    before, after = [], []
    for measure in range(measures):
        for number in range(questions):
            old, new = draw.choice([(1.0, 0.0), (0.0, 1.0), (1.0, 1.0)])
            one = judged_row(number, old)
            before.append(replace(one, part=f"part {measure}"))
            after.append(replace(one, part=f"part {measure}", values={"right": new}))
    return before, after


def test_chance_among_many_measures_is_no_worth() -> None:
    """A feature that changes nothing but by chance is idle, though single intervals say lower."""
    looked = [
        compare_variants("s", ["dense"], noise(40, 60, seed), [None, None]) for seed in range(10)
    ]
    alone = [any(one.sign == "lower" for one in found[0].differences) for found in looked]
    assert sum(alone) >= 5, "else the intervals alone would do"
    assert [idle(found) for found in looked] == [["dense"]] * 10
    assert "all 40 measures of a feature together" in ablation_line(looked[0])


def test_a_real_loss_is_seen_among_many_measures() -> None:
    before, after = noise(39, 60, 1)
    before += [row(number, 1) for number in range(60)]
    after += [row(number, 1 if number < 40 else 2) for number in range(60)]
    assert idle(compare_variants("s", ["dense"], [before, after], [None, None])) == []


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.5]), max_size=9), st.sampled_from([0.5, 0.05]))
def test_chance_is_that_of_all_signs(changes: list[float], least: float) -> None:
    sizes = [abs(change) for change in changes if change]
    every = list(itertools.product((-1, 1), repeat=len(sizes)))
    sums = [sum(s * v for s, v in zip(signs, sizes, strict=True)) for signs in every]
    exact = sum(one <= sum(changes) + 1e-9 for one in sums) / len(every)
    if abs(exact - least) > 0.3 * least:  # what so many draws tell apart
        assert beyond_chance(changes, least) is (sum(changes) < 0 and exact < least)


@given(st.lists(st.integers(), max_size=30), st.integers(1, 40))
def test_a_sample_is_spread_over_the_whole(items: list[int], limit: int) -> None:
    taken = spread(range(len(items)), limit)
    assert len(taken) == min(limit, len(items))
    assert list(taken) == sorted(set(taken))
    gaps = [later - earlier for earlier, later in itertools.pairwise([*taken, len(items)])]
    assert not gaps or max(gaps) - min(gaps) <= 1


def test_what_outcomes_must_not_do_are_failures() -> None:
    assert OutcomesRun().failures == 0
    assert OutcomesRun(rejected=["u adv-1-good: overloaded"]).failures == 1
    assert OutcomesRun(sabotage=Sabotage(tried=3, refused=3, flipped=2)).failures == 2
    assert OutcomesRun(sabotage=Sabotage(tried=3, refused=2)).failures == 1
    assert OutcomesRun(forms=[FormRun("pair", stored=2, kept=1)]).failures == 1
    asked = Answered(
        question=Question("q", "q", ("d",), "1", "he"),
        corpus="c",
        ranked=(),
        floor=(),
        error="invalid_input",
    )
    after = SuiteRun(Suite(name="s", corpora=()), rejected=["d: no"], answered=[asked])
    assert OutcomesRun(after=after).failures == 2


def test_headlines_are_by_part_with_the_floor_beside() -> None:
    rows = [row(1, 1), row(2, 2), judged_row(1, 1.0)]
    found = headlines(rows)
    assert [(one.part, one.metric) for one in found] == [
        *(("all", metric) for metric in SHOWN),
        ("kept", "right"),
    ]
    assert (found[0].service.mean, found[0].service.n) == (0.5, 2)
    assert found[0].floor is not None
    assert found[0].floor.mean == 0.0
    assert found[-1].floor is None


def test_outcomes_are_judged_after_a_few_of_them() -> None:
    placed = [
        ScenarioRanks(scenario_id="he-1", lang="he", level=level, good=rank, bad=2)
        for level, rank in ((0, 3), (JUDGED_LEVEL, 1))
    ]
    run = OutcomesRun(forms=[FormRun("pooled", placed)])
    (one,) = outcomes_report.rows(run)
    assert (one.part, one.question_id, one.lang) == ("pooled", "he-1", "he")
    assert list(one.shown.values()) == [1.0]


def test_sessions_and_confidence_are_parts_of_their_own() -> None:
    asked = Question("c:0", "q", ("D1:1", "D2:1"), "1", "en")
    adversarial = Question("c:1", "q", ("D1:1",), "5", "en")
    nothing = Question("c:2", "q", (), "6", "he")
    corpus = Corpus("c", (), (asked, adversarial, nothing))
    suite = Suite(
        name="s",
        corpora=(corpus,),
        headline=frozenset({"1", "4"}),
        group_of=session_of,
        group_name="sessions",
    )
    answered = [
        Answered(question=question, corpus="c", ranked=("D1:7", "D2:1"), floor=(), confidence=label)
        for question, label in ((asked, "high"), (adversarial, "medium"), (nothing, "medium"))
    ]
    rows = {one.key: one for one in report.rows(SuiteRun(suite, answered=answered))}
    assert rows["categories 1-4", "c:0"].ranks == (None, 2)
    assert rows["category 5", "c:1"].ranks == (None,)
    assert rows["sessions", "c:0"].values == {"R@10": 1.0}
    assert rows["sessions", "c:0"].floor == {"R@10": 0.0}
    assert rows["answerable", "c:0"].values == {"kept at medium": 1.0, "kept at high": 1.0}
    assert rows["answerable", "c:1"].values == {"kept at medium": 1.0, "kept at high": 0.0}
    assert rows["unanswerable", "c:2"].values == {
        "abstains at medium": 0.0,
        "abstains at high": 1.0,
    }
    assert ("sessions", "c:2") not in rows


def test_the_picture_is_the_same_on_any_page() -> None:
    half = Estimate(0.5, 0.4, 0.6, 12)
    rows = [
        Headline(part="שאלות <בעברית> & more", metric="R@1", service=half, floor=half),
        Headline(part="kept", metric="right", service=half, floor=None),
    ]
    text = picture({"heq": rows, "empty": []}, 'a "caption" <x>')
    root = ElementTree.fromstring(text)
    assert root.attrib["direction"] == "ltr"
    space = "{http://www.w3.org/2000/svg}"
    texts = list(root.iter(f"{space}text"))
    assert {one.attrib["direction"] for one in texts} == {"ltr"}
    assert "background" not in text
    assert any("\u2068שאלות <בעברית> & more\u2069 R@1" in (one.text or "") for one in texts)
    assert "empty" not in text
    bars = [one for one in root.iter(f"{space}rect") if one.find(f"{space}title") is not None]
    assert len(bars) == 3  # two services and one floor
    assert {one.attrib["width"] for one in bars} == {bars[0].attrib["width"]}


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_every_colour_reads_on_light_and_on_dark() -> None:
    half = Estimate(0.5, 0.4, 0.6, 12)
    root = ElementTree.fromstring(
        picture({"s": [Headline(part="p", metric="m", service=half, floor=half)]}, "c")
    )
    for one in root.iter():
        least = 4.5 if one.tag.endswith("text") else 3.0
        for colour in filter(None, (one.get("fill"), one.get("stroke"))):
            assert 1.05 / (luminance(colour) + 0.05) >= least, colour
            assert (luminance(colour) + 0.05) / 0.05 >= least, colour
