"""A memory that knows nothing of a question keeps silent, in either language."""

from __future__ import annotations

import pytest

from rayapp.assistant.records import ContextRequest
from rayapp.core.settings.model import ContextSettings
from rayapp.memory.scope import ReadScope
from rayapp.search import resident
from tests.support.harness import Harness

READ = ReadScope("dana")
ENGLISH = (
    "Dana keeps the spare key of the flat under the blue pot",
    "Rex the dog was at the vet in March for his vaccination",
    "The concert of the choir begins at eight on Thursday",
    "Omri borrowed the long ladder from the neighbours",
    "The library on Herzl street closes early on Friday",
    "Dana's dentist is Doctor Golan, and the next visit is in May",
    "The printer on the third floor is out of paper",
    "Noa plays the cello in a quartet on Sundays",
    "The boiler was repaired last winter by Moshe",
    "Lunch on Monday was pasta with tomatoes and basil",
    "The old bicycle stands in the cellar behind the shelf",
    "Tamar's recipe for lentil soup needs cumin and lemon",
)
HEBREW = (
    "דנה שומרת את המפתח הרזרבי של הדירה מתחת לעציץ הכחול",
    "רקס הכלב היה אצל הווטרינר במרץ כדי להתחסן",
    "הקונצרט של המקהלה מתחיל בשמונה ביום חמישי",
    "עמרי לקח מהשכנים את הסולם הארוך",
    "הספרייה ברחוב הרצל נסגרת מוקדם ביום שישי",
    "רופא השיניים של דנה הוא דוקטור גולן, והביקור הבא במאי",
    "במדפסת בקומה השלישית נגמר הנייר",
    "נועה מנגנת בצ'לו ברביעייה בימי ראשון",
    "את הדוד תיקן משה בחורף שעבר",
    "בצהריים של יום שני אכלנו פסטה עם עגבניות ובזיליקום",
    "האופניים הישנים עומדים במרתף מאחורי המדף",
    "במתכון של תמר למרק עדשים יש כמון ולימון",
)
CASES = [
    pytest.param(ENGLISH, "thanks, that's great!", "Where is the spare key of the flat?", id="en"),
    pytest.param(HEBREW, "תודה רבה, מעולה!", "איפה המפתח הרזרבי של הדירה?", id="he"),
]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first question waits for the view of its user, however busy the machine is."""
    monkeypatch.setattr(resident, "WAIT_S", 10.0)


async def open_store(texts: tuple[str, ...], **context: float) -> Harness:
    service = await Harness.open(context={"timeout_s": 10.0, **context})
    for text in texts:
        await service.store(text)
    await service.drain()
    return service


@pytest.mark.parametrize(("texts", "idle", "own"), CASES)
async def test_the_block_is_absent_where_nothing_is_known(
    texts: tuple[str, ...], idle: str, own: str
) -> None:
    service = await open_store(texts)
    prefetch = service.services.context.prefetch
    silent = await prefetch(READ, ContextRequest(query=idle))
    assert silent.block.text == ""
    assert silent.search is not None
    assert (silent.search.knowledge.known, silent.search.knowledge.reason) == ("no", "far")
    known = await prefetch(READ, ContextRequest(query=own))
    assert known.block.lines[0].text == texts[0]


@pytest.mark.parametrize(("texts", "idle", "own"), CASES)
async def test_who_searches_sees_the_hits_and_what_is_known(
    texts: tuple[str, ...], idle: str, own: str
) -> None:
    service = await open_store(texts)
    nothing, something = await service.search(idle), await service.search(own)
    assert nothing.hits
    assert (nothing.knowledge.known, something.knowledge.known) == ("no", "yes")


@pytest.mark.parametrize(("texts", "idle", "own"), CASES)
async def test_a_bound_of_0_turns_it_off(texts: tuple[str, ...], idle: str, own: str) -> None:
    assert ContextSettings().min_knowledge is None
    service = await open_store(texts, min_knowledge=0.0, min_relevance=0.0)
    found = await service.services.context.prefetch(READ, ContextRequest(query=idle))
    assert found.block.lines


@pytest.mark.parametrize(("texts", "idle", "own"), CASES)
async def test_a_small_store_is_told_whole(texts: tuple[str, ...], idle: str, own: str) -> None:
    service = await open_store(texts[:5])
    found = await service.services.context.prefetch(READ, ContextRequest(query=idle))
    assert len(found.block.lines) == 5
