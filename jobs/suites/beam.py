"""BEAM (Tavakoli et al. 2025): long chats with an assistant, questions with evidence messages.

One chat is one user. A message is a memory, or an exchange is: what the person says with what the
assistant answers. The questions are of ten abilities; those of `abstention` have no answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from jobs.suites.suite import Corpus, Document, Question, Suite, read_json, rows_of

FILE = Path("beam") / "beam-100k-1to8.json"
NAME = "BEAM"
DATE_FORMAT = "%B-%d-%Y"  # "March-15-2024", no zone: read as UTC
PERSON = "user"
# Characters of a memory: what the service stores of a longer one, and a client cuts, too.
LONGEST = 100_000


class _Message(NamedTuple):
    number: int
    role: str
    text: str
    at: datetime | None


def load_beam(data: Path) -> Suite:
    """A message is a memory. ConfigError: the file is missing, no JSON, or has no such rows."""
    return Suite(name="beam", corpora=_corpora(data, exchanges=False))


def load_beam_exchanges(data: Path) -> Suite:
    """An exchange is a memory. ConfigError as in `load_beam`."""
    return Suite(name="beam-exchanges", corpora=_corpora(data, exchanges=True))


def _corpora(data: Path, *, exchanges: bool) -> tuple[Corpus, ...]:
    rows = read_json(data / FILE, NAME)
    with rows_of(data / FILE, NAME):
        corpora = tuple(_corpus(row, exchanges=exchanges) for row in rows)
        if not any(corpus.questions for corpus in corpora):
            raise ValueError("no question")
    return corpora


def _corpus(row: Mapping[str, Any], *, exchanges: bool) -> Corpus:
    name = f"beam-{row['id']}"
    documents: list[Document] = []
    home: dict[int, str] = {}
    for messages in _memories(tuple(_messages(row["messages"])), exchanges=exchanges):
        doc_id = str(messages[0].number)
        said = [f"{one.role}: {one.text}" if exchanges else one.text for one in messages]
        documents.append(Document(doc_id, "\n".join(said)[:LONGEST], messages[0].at))
        home |= {one.number: doc_id for one in messages}
    questions = tuple(
        Question(
            f"{name}:{number}",
            str(asked["question"]),
            tuple(dict.fromkeys(home[gold] for gold in asked["gold"] if gold in home)),
            str(asked["ability"]),
            "en",
        )
        for number, asked in enumerate(row["questions"])
    )
    return Corpus(name, tuple(documents), questions)


def _messages(rows: Sequence[Sequence[Any]]) -> Iterator[_Message]:
    """Only what begins a session has a date; it holds until the next one."""
    at: datetime | None = None
    for number, role, date, text in rows:
        if date:
            at = datetime.strptime(str(date), DATE_FORMAT).replace(tzinfo=UTC)
        yield _Message(int(number), str(role), str(text), at)


def _memories(messages: Sequence[_Message], *, exchanges: bool) -> Iterator[tuple[_Message, ...]]:
    """The messages of each memory."""
    held: list[_Message] = []
    for message in messages:
        if held and (not exchanges or message.role == PERSON):
            yield tuple(held)
            held = []
        held.append(message)
    if held:
        yield tuple(held)
