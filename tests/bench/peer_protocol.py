"""What goes to a peer's process and what comes back, as JSON lines.

To the peer, one row per line: `plan` first, then per part one `part`, its `document` rows and its
`question` rows. From the peer: `about` (versions), `done` (rows so far), per part one `stored` and
one `answer` per question in the order asked, then `end`, or `failed` with a reason.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from jobs.suites.suite import Corpus, Document, Question
from tests.bench.texts import facts

SHUFFLE_SEED = 11  # order of the questions: no user's are asked in a row


@dataclass(frozen=True, slots=True)
class Row:
    """A document to hold, or a question to ask, of one user."""

    user: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Plan:
    """How a peer is set up.

    Attributes:
        model: folder of the static model, the same for every system.
        folder: empty folder of the peer.
        adds: single adds that are timed where a peer takes one item at a time.
        host, port: the Qdrant server of the peer; port 0 = none.
    """

    system: str
    model: str
    folder: str
    adds: int
    host: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """One measurement in a store of its own: every user's documents, then all questions.

    The first `warm` questions are asked and not counted.
    """

    name: str
    limit: int
    corpora: tuple[Corpus, ...]
    warm: int = 0

    @property
    def documents(self) -> int:
        return sum(len(corpus.documents) for corpus in self.corpora)

    @property
    def questions(self) -> list[tuple[str, Question]]:
        """(user, question) with evidence, in one seeded order for every system."""
        asked = [(c.name, question) for c in self.corpora for question in c.questions]
        asked = [(user, question) for user, question in asked if question.gold]
        random.Random(SHUFFLE_SEED).shuffle(asked)
        return asked


@dataclass(frozen=True, slots=True)
class Answer:
    """Ids best first, and the time from question text to ids."""

    name: str
    ranked: tuple[str, ...]
    ms: float


@dataclass(frozen=True, slots=True)
class Stored:
    """`seconds` is what the `timed` items took, embedding included, until they can be found.

    `acknowledged_s` is the shorter time until a store was confirmed, where the two differ.
    """

    items: int
    timed: int
    seconds: float
    acknowledged_s: float | None = None

    @property
    def per_s(self) -> float:
        return self.timed / self.seconds


@dataclass(slots=True)
class PartRun:
    stored: Stored | None = None
    answers: list[Answer] = field(default_factory=list)
    # (user, document) to the first document of that user which the system holds to be the same.
    same: dict[tuple[str, str], str] = field(default_factory=dict)


@dataclass(slots=True)
class SystemRun:
    """One system; `failed` is the reason why it has no numbers."""

    system: str
    parts: dict[str, PartRun] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    note: str = ""
    failed: str | None = None
    elapsed_s: float = 0.0


def write_job(path: Path, plan: Plan, parts: Sequence[Part]) -> None:
    """The job file of one peer."""
    with path.open("wb") as file:
        for row in _job_rows(plan, parts):
            file.write(orjson.dumps(row) + b"\n")


def _job_rows(plan: Plan, parts: Sequence[Part]) -> Iterator[dict[str, Any]]:
    yield {"kind": "plan", **asdict(plan)}
    for part in parts:
        yield {"kind": "part", "name": part.name, "limit": part.limit}
        for corpus in part.corpora:
            for doc in corpus.documents:
                row = Row(corpus.name, doc.doc_id, doc.text)
                yield {"kind": "document", **asdict(row)}
        for user, question in part.questions:
            yield {"kind": "question", **asdict(Row(user, question.question_id, question.text))}


@dataclass(slots=True)
class Job:
    """A part as the peer sees it: no evidence in it."""

    name: str
    limit: int
    documents: list[Row] = field(default_factory=list)
    questions: list[Row] = field(default_factory=list)


def read_job(path: Path) -> tuple[Plan, list[Job]]:
    """The plan and the parts of a job file."""
    plan: Plan | None = None
    jobs: list[Job] = []
    for row in rows_of(path.read_bytes()):
        match row.pop("kind"):
            case "plan":
                plan = Plan(**row)
            case "part":
                jobs.append(Job(**row))
            case "document":
                jobs[-1].documents.append(Row(**row))
            case "question":
                jobs[-1].questions.append(Row(**row))
    if plan is None:
        raise ValueError(f"{path} has no plan: write it with write_job")
    return plan, jobs


def rows_of(lines: bytes) -> Iterator[dict[str, Any]]:
    """The complete rows; a last line that is still being written is left out."""
    for line in lines.split(b"\n")[:-1]:
        yield orjson.loads(line)


def read_run(system: str, rows: Iterable[dict[str, Any]]) -> SystemRun:
    """What a peer wrote. A peer that stopped before `end` has failed, whatever it measured."""
    run, ended = SystemRun(system), False
    for row in rows:
        match row["kind"]:
            case "about":
                run.versions, run.note = row["versions"], row["note"]
            case "stored":
                stored = Stored(row["items"], row["timed"], row["seconds"])
                run.parts.setdefault(row["part"], PartRun()).stored = stored
            case "answer":
                answer = Answer(row["name"], tuple(row["ranked"]), row["ms"])
                run.parts.setdefault(row["part"], PartRun()).answers.append(answer)
            case "failed":
                run.failed = row["reason"]
            case "end":
                ended = True
    if run.failed is None and not ended:
        run.failed = "its process ended before it had answered everything"
    return run


def same_texts(part: Part) -> dict[tuple[str, str], str]:
    """Documents of one user with equal texts count as the first of them.

    Which of two equal texts a system answers first is chance, so none is judged by it.
    """
    same: dict[tuple[str, str], str] = {}
    for corpus in part.corpora:
        first: dict[str, str] = {}
        for doc in corpus.documents:
            same[corpus.name, doc.doc_id] = first.setdefault(doc.text.strip(), doc.doc_id)
    return same


@dataclass(frozen=True, slots=True)
class Shape:
    """How much of the seeded texts: `questions` are counted, `warm` more are not."""

    memories: int
    users: int
    questions: int
    warm: int
    limit: int


def speed_part(name: str, shape: Shape, seed: int) -> Part:
    """Seeded bilingual facts, spread evenly over users, and questions about some of them.

    The facts are those of the seed; the questions are those of the seed and the part's name.
    """
    random_ = random.Random(f"{seed} {name}")
    texts = list(islice(facts(seed), shape.memories))
    wanted = shape.warm + shape.questions
    asked = (
        random_.sample(range(len(texts)), wanted)
        if wanted <= len(texts)
        else random_.choices(range(len(texts)), k=wanted)
    )
    documents: list[list[Document]] = [[] for _ in range(shape.users)]
    about: list[list[Question]] = [[] for _ in range(shape.users)]
    for index, fact in enumerate(texts):
        user = index * shape.users // shape.memories
        documents[user].append(Document(f"m{index}", fact.text))
    for serial, index in enumerate(asked):
        text = texts[index].question(random_)
        question = Question(f"{name}-{serial}", text, (f"m{index}",), "fact", texts[index].lang)
        about[index * shape.users // shape.memories].append(question)
    corpora = tuple(
        Corpus(f"u{index}", tuple(own), tuple(about[index])) for index, own in enumerate(documents)
    )
    return Part(name, shape.limit, corpora, shape.warm)
