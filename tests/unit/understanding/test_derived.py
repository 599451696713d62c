"""Episodes, thoughts and hints: by rules alone, in both languages, and how they fall."""

from datetime import timedelta

import pytest

from rayapp.core.errors import Conflict, NotFound
from rayapp.core.scope import ReadScope
from rayapp.understanding.derived.records import DerivedKind, State, Trend
from rayapp.understanding.derived.requests import Decided, Decision, HintKind, HintsRequest
from rayapp.understanding.derived.rules.support import trend_of
from tests.support.derived_contract import a_row
from tests.support.derived_world import READS, WRITES, DerivedWorld
from tests.support.knowledge_world import NOW

ANXIOUS = {
    "en": (
        "I felt anxious about the exam at school.",
        "I was so anxious about the exam again.",
        "I am anxious about the exam tomorrow.",
    ),
    "he": ("הייתי לחוצה לפני המבחן.", "הרגשתי לחוצה מאוד לפני המבחן.", "אני לחוצה לפני המבחן."),
}
ABOUT = {"en": "Anxiety about exam", "he": "חרדה סביב המבחן"}
HONEST = {
    "en": ("I value honesty.", "I really value honesty.", "Honesty matters most to me."),
    "he": ("יושר חשוב לי.", "אני מעריכה יושר.", "הכי חשוב לי יושר."),
}
FELL = {
    "en": (
        "Yesterday my daughter Noa fell off her bike in the park and broke her arm. "
        "I was so scared, then we drove to the hospital."
    ),
    "he": (
        "אתמול הבת שלי נועה נפלה מהאופניים בפארק ושברה את היד. נבהלתי מאוד, ואז נסענו לבית החולים."
    ),
}
LATER = {
    "en": "Today the doctor took the cast off Noa's arm, and I was so happy that I cried.",
    "he": "היום הרופא הוריד לנועה את הגבס מהיד, והייתי כל כך שמחה שבכיתי שם איתה.",
}
languages = pytest.mark.parametrize("language", ["en", "he"])


@pytest.fixture
def world() -> DerivedWorld:
    return DerivedWorld()


async def anxious(world: DerivedWorld, language: str = "en") -> None:
    """On three days."""
    for number, text in enumerate(ANXIOUS[language]):
        await world.tell(f"m-{number}", text, days=9 - 3 * number)


# --- thoughts


@languages
async def test_a_feeling_of_three_days_waits_for_a_person(
    world: DerivedWorld, language: str
) -> None:
    for number, text in enumerate(ANXIOUS[language]):
        assert await world.thoughts() == []
        await world.tell(f"m-{number}", text, days=9 - 3 * number)
    assert await world.thoughts() == [(ABOUT[language], "pending")]
    assert await world.review.waiting(READS) == 1
    assert [one.kind for one in world.derived.told] == ["thought"]
    assert (await world.hints()).found[HintKind.PATTERNS] == ()


async def test_three_texts_of_one_day_are_no_thought(world: DerivedWorld) -> None:
    for number, text in enumerate(ANXIOUS["en"]):
        await world.tell(f"m-{number}", text)
    assert await world.thoughts() == []


@languages
async def test_what_was_said_outright_needs_nobody(world: DerivedWorld, language: str) -> None:
    for number, text in enumerate(HONEST[language]):
        await world.tell(f"m-{number}", text, days=9 - 3 * number)
    ((_, state),) = await world.thoughts()
    assert state == "accepted"
    assert await world.review.waiting(READS) == 0


async def test_e5_a_change_of_mind_keeps_both_in_their_order(world: DerivedWorld) -> None:
    for number, what in enumerate(("Sports", "Grades")):
        for day in range(3):
            text = f"{what} matter most for my son{'!' * day}."
            await world.tell(f"{what}-{day}", text, days=90 - 40 * number - day)
    assert await world.thoughts() == [("Value: sports", "accepted"), ("Value: grades", "accepted")]
    found = await world.hints("What matters to my son?")
    assert {one.name for one in found.found[HintKind.TRAITS]} == {"sports", "grades"}


async def test_e5_two_statements_are_both_told(world: DerivedWorld) -> None:
    await world.tell("m-1", "Sports matter most for my son.", days=40)
    await world.tell("m-2", "Grades matter most for my son.", days=2)
    found = (await world.hints("What matters to my son?")).found[HintKind.TRAITS]
    assert [(one.name, one.said) for one in found] == [("grades", True), ("sports", True)]


async def test_look_alikes_with_other_values_never_meet(world: DerivedWorld) -> None:
    for day in range(3):
        await world.tell(f"a-{day}", f"My son Itay wants to learn chess{'!' * day}.", days=day)
        await world.tell(f"b-{day}", f"My daughter Noa wants to learn judo{'!' * day}.", days=day)
    texts = sorted(one.text for one in world.rows() if one.is_shown)
    assert texts == ["Itay wants to learn chess.", "Noa wants to learn judo."]


async def test_opposite_feelings_about_the_same_say_so(world: DerivedWorld) -> None:
    await anxious(world)
    for number in range(3):
        text = f"I felt calm about the exam{'!' * number}."
        await world.tell(f"n-{number}", text, days=3 - number)
    first, second = await world.reading.thoughts(READS)
    assert (first.row.title, second.row.title) == (ABOUT["en"], "Calm about exam")
    assert first.opposes == (second.row.derived_id,)
    assert second.opposes == (first.row.derived_id,)


async def test_named_topics_that_come_back_are_an_interest(world: DerivedWorld) -> None:
    for number in range(3):
        await world.tell(f"m-{number}", "I read about it.", days=number, topics=("jazz_piano",))
    assert await world.thoughts() == [("Interest: jazz piano", "pending")]


async def test_the_same_text_again_is_one_source(world: DerivedWorld) -> None:
    await anxious(world)
    before = dict(world.derived.rows)
    await world.tell("m-2", ANXIOUS["en"][2], days=3)
    assert world.derived.rows == before
    assert len(world.derived.told) == 1


# --- how they fall


async def test_a_thought_falls_with_what_it_rests_on(world: DerivedWorld) -> None:
    await anxious(world)
    await world.untell("m-1")
    assert await world.thoughts() == []
    assert not any(ANXIOUS["en"][1] in str(one) for one in world.derived.rows.values())
    for gone in ("m-0", "m-2"):
        await world.untell(gone)
    assert world.derived.rows == {}


async def test_an_edited_source_gives_what_it_says_now(world: DerivedWorld) -> None:
    await anxious(world)
    await world.tell("m-1", "I bought milk.", days=6)
    assert await world.thoughts() == []


async def test_an_accepted_one_is_in_doubt_and_then_gone(world: DerivedWorld) -> None:
    await anxious(world)
    await world.decide(Decision.ACCEPT)
    assert [one.name for one in (await world.hints()).found[HintKind.PATTERNS]] == ["anxiety"]
    await world.untell("m-1")
    assert await world.thoughts() == [(ABOUT["en"], "in_doubt")]
    assert (await world.hints()).found[HintKind.PATTERNS] == ()
    await world.tell("m-9", "I felt anxious about the exam.")
    assert await world.thoughts() == [(ABOUT["en"], "accepted")]
    for gone in ("m-0", "m-2", "m-9"):
        await world.untell(gone)
    assert await world.thoughts() == []


async def test_a_goal_that_is_given_up_is_no_hint(world: DerivedWorld) -> None:
    await world.tell("m-1", "I want to become a doctor.", days=30)
    assert [one.said for one in (await world.hints()).found[HintKind.GOALS]] == [True]
    await world.tell("m-2", "I no longer want to become a doctor.", days=2)
    assert (await world.hints()).found[HintKind.GOALS] == ()
    await world.untell("m-2")
    assert [one.said for one in (await world.hints()).found[HintKind.GOALS]] == [True]


async def test_a_node_that_is_deleted_takes_its_hints_along(world: DerivedWorld) -> None:
    await world.tell("m-1", "I value honesty.")
    (row,) = world.rows()
    await world.knowledge.delete(WRITES, row.node_ids[1])
    assert (await world.hints()).found[HintKind.TRAITS] == ()


# --- review


async def test_a_declined_one_does_not_come_back(world: DerivedWorld) -> None:
    await anxious(world)
    declined = await world.decide(Decision.DECLINE)
    assert (declined.state, declined.can_undo) == ("declined", True)
    for number in range(3):
        await world.tell(f"n-{number}", "I was anxious about the exam.", days=number)
    assert await world.thoughts() == [(ABOUT["en"], "declined")]
    assert await world.review.waiting(READS) == 0
    assert len(world.derived.told) == 1
    for name in ("m-0", "m-1", "m-2", "n-0", "n-1", "n-2"):
        await world.untell(name)
    (kept,) = world.derived.rows.values()
    assert (kept.state, kept.title, kept.text, kept.sources) == (State.DECLINED, "", "", ())
    await anxious(world)
    assert [state for _, state in await world.thoughts()] == ["declined"]


async def test_a_decision_is_undone(world: DerivedWorld) -> None:
    await anxious(world)
    await world.decide(Decision.DECLINE)
    undone = await world.decide(Decision.UNDO)
    assert (undone.state, undone.decided_by, undone.can_undo) == ("pending", None, False)
    with pytest.raises(Conflict, match="no decision"):
        await world.decide(Decision.UNDO)
    with pytest.raises(NotFound):
        await world.review.decide(WRITES, "nothing", Decided(decision=Decision.ACCEPT))


async def test_words_of_a_person_stay(world: DerivedWorld) -> None:
    await anxious(world)
    edited = await world.decide(Decision.EDIT, title="Exams", text="Exams are hard for me.")
    assert (edited.state, edited.decided_by) == ("accepted", "dana's key")
    await world.tell("m-9", "I felt anxious about the exam again.")
    (row,) = [one for one in world.rows() if one.is_shown]
    assert (row.title, row.text, row.support) == ("Exams", "Exams are hard for me.", 4)
    undone = await world.decide(Decision.UNDO)
    assert (undone.title, undone.state) == (ABOUT["en"], "pending")


async def test_ten_accepted_are_ten_stored(world: DerivedWorld) -> None:
    topics = tuple(f"topic {number}" for number in range(10))
    for day in range(3):
        await world.tell(f"m-{day}", "I read about it.", days=day, topics=topics)
    waiting = await world.review.listed(READS, None, 50)
    assert len(waiting) == 10
    for one in waiting:
        await world.review.decide(WRITES, one.id, Decided(decision=Decision.ACCEPT))
    assert [state for _, state in await world.thoughts()] == ["accepted"] * 10
    assert len((await world.hints()).found[HintKind.TOPICS]) == 5


# --- trend


@pytest.mark.parametrize(
    ("days", "trend"),
    [
        ((1, 5, 9), Trend.NEW),
        ((1, 2, 3, 60), Trend.STRENGTHENING),
        ((1, 40, 70, 100), Trend.STEADY),
        ((40, 60, 80, 110), Trend.WEAKENING),
        ((200, 300), Trend.STALE),
        ((1, 200), Trend.STRENGTHENING),
    ],
)
def test_the_trend_compares_a_month_with_three_before(days: tuple[int, ...], trend: Trend) -> None:
    (source,) = a_row(0).sources
    times = [NOW - timedelta(days=one) for one in days]
    sources = tuple(type(source)(source_id=str(at), said_at=at, happened_at=at) for at in times)
    assert trend_of(a_row(0, sources=sources), NOW) is trend


# --- episodes


@languages
async def test_a_scene_is_told_once_and_goes_on(world: DerivedWorld, language: str) -> None:
    await world.tell("m-1", FELL[language], days=5)
    (scene,) = world.rows(DerivedKind.EPISODE)
    assert scene.text == FELL[language]
    assert scene.title
    assert scene.title.rstrip("…") in FELL[language]
    assert "fear" in scene.emotions
    assert scene.first_at == (NOW - timedelta(days=6)).replace(hour=0)
    assert [one.kind for one in world.derived.told] == ["episode"]
    await world.tell("m-2", LATER[language], days=1)
    (scene,) = world.rows(DerivedKind.EPISODE)
    assert scene.text == f"{FELL[language]}\n{LATER[language]}"
    assert {one.source_id for one in scene.sources} == {"m-1", "m-2"}
    await world.untell("m-1")
    (scene,) = world.rows(DerivedKind.EPISODE)
    assert scene.text == LATER[language]
    assert FELL[language] not in str(scene)
    await world.untell("m-2")
    assert world.derived.rows == {}


async def test_another_time_or_another_topic_is_another_scene(world: DerivedWorld) -> None:
    await world.tell("m-1", FELL["en"], days=30)
    await world.tell("m-2", LATER["en"], days=10)
    exam = "Yesterday I failed the exam at the university in Haifa, and I was so sad about it all."
    await world.tell("m-3", exam, days=10)
    assert len(world.rows(DerivedKind.EPISODE)) == 3


async def test_without_vectors_a_scene_goes_on_by_its_topic(world: DerivedWorld) -> None:
    world.embedder.away = True
    await world.tell("m-1", FELL["en"], days=5, topics=("noa",))
    await world.tell("m-2", LATER["en"], days=1, topics=("noa",))
    await world.tell("m-3", FELL["en"].replace("Noa", "Maya"), days=1)
    assert sorted(one.support for one in world.rows(DerivedKind.EPISODE)) == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        "I am tired.",
        "What did the central bank decide yesterday about the interest rate in the country?",
        "The capital of France is Paris, and the capital of Italy is Rome, as everybody knows.",
        "מה החליט אתמול הבנק המרכזי על הריבית במשק הישראלי, ומה זה אומר על המשכנתאות של כולם?",
        "בירת צרפת היא פריז, ובירת איטליה היא רומא, כמו שכל ילד יודע מהשיעור בבית הספר.",
    ],
)
async def test_what_tells_no_scene(world: DerivedWorld, text: str) -> None:
    await world.tell("m-1", text)
    assert world.rows(DerivedKind.EPISODE) == []


async def test_one_source_understood_again_stays_in_its_scene(world: DerivedWorld) -> None:
    await world.tell("m-1", FELL["en"], days=5)
    await world.tell("m-2", LATER["en"], days=1)
    before = {one.derived_id for one in world.rows(DerivedKind.EPISODE)}
    await world.tell("m-1", FELL["en"], days=5)
    (scene,) = world.rows(DerivedKind.EPISODE)
    assert ({scene.derived_id}, scene.support) == (before, 2)


# --- hints


async def test_hints_are_of_one_user_and_one_subject(world: DerivedWorld) -> None:
    await world.tell("m-1", "I value honesty.")
    await world.tell("m-2", "I value freedom.", subject="child", perspective="child")
    await world.tell("m-3", "I value loyalty.", user_id="noa")

    async def names(**asked: object) -> list[str]:
        found = await world.hints(**asked)  # type: ignore[arg-type]
        return [one.name for one in found.found[HintKind.TRAITS]]

    assert await names() == ["honesty"]
    assert await names(subject_id="child") == ["freedom"]
    assert await names(perspective_owner_id="child", subject_id="child") == ["freedom"]
    assert await names(subject_id="stranger") == []
    others = await world.hinting.hints(ReadScope("noa"), HintsRequest())
    assert [one.name for one in others.all()] == ["loyalty"]


@languages
async def test_an_episode_is_a_hint_where_the_question_names_it(
    world: DerivedWorld, language: str
) -> None:
    await world.tell("m-1", FELL[language], days=14)
    near = {"en": "How is Noa doing?", "he": "מה שלום נועה?"}[language]
    far = {"en": "Which wine goes with fish?", "he": "איזה יין מתאים לדגים?"}[language]
    (episode,) = (await world.hints(near)).found[HintKind.EPISODES]
    assert episode.when == {"en": "2 weeks ago", "he": "לפני 2 שבועות"}[language]
    assert (await world.hints(far)).found[HintKind.EPISODES] == ()
    recap = (await world.hints(near)).recap
    assert recap.startswith({"en": "[Episode: ", "he": "[אירוע: "}[language])
