"""What a static embedder knows by itself, in both languages and across them.

    python -m jobs.embedder_report --data DIR --out report.json
    python -m jobs.embedder_report --leave-out names --leave-out work

No words, no ranking rules: cosine only. Sets in DIR: LoCoMo (en→en), HeQ (he→he), questions
about the open-data catalogue against its Hebrew titles (en→he, he→he). `--leave-out FIELD` builds
the model again without one file of our pairs and asks for each half of those pairs among all the
other halves (he→en, en→he). The same model without its Hebrew rows is measured beside it: that is
the English model it was built on. Exit codes: 0 done, 2 bad arguments.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.table import Table

from jobs.build.bilingual import NAME, write_artefact
from jobs.build.bilingual_fit import EnglishRows, FitRecipe, Sources, fit
from jobs.build.pair_files import NAMES, PAIRS, Pair, read_dictionary, read_pairs
from jobs.ending import DONE, command_parser, run_command
from jobs.suites.datagov_set import SCHEMAS, load_datagov
from jobs.suites.heq import load_heq
from jobs.suites.locomo import load_locomo
from jobs.suites.outputs import check_files, put_json
from jobs.suites.suite import Corpus, Document, Question, read_json, rows_of
from rayapp.core.errors import ConfigError
from rayapp.core.settings.load import CONFIG_DIR
from rayapp.inference.backends.static_model import StaticModel, find_model, load_static_model
from rayapp.local.cli.output import number_table, report_console
from rayapp.search.rules.evaluation import Judged, summarise

METRICS = ("R@1", "hit@5", "hit@10", "MRR")
SHORT_WORDS = 8  # a short text: the length of our average pair
RATE_TEXTS = 5_000
ENGLISH_ONLY = "English rows only"
DEPTH = 1_000  # ranks kept per question; a deeper answer counts as not found


@dataclass(frozen=True, slots=True)
class Task:
    """One direction over one or several corpora, `he→en` for example."""

    name: str
    direction: str
    corpora: tuple[Corpus, ...]


def tasks_of(data: Path) -> list[Task]:
    """What the sets under `data` ask. Raises ConfigError: a file is missing or cannot be read."""
    titles = _titles(data)
    asked = [question for corpus in load_datagov(data).questions.corpora
             for question in corpus.questions]  # fmt: skip
    return [
        Task("LoCoMo turns", "en→en", load_locomo(data).corpora),
        Task("HeQ paragraphs", "he→he", load_heq(data).corpora),
        *(
            Task("DataGov titles", f"{lang}→he", (Corpus(
                f"titles-{lang}", titles, tuple(one for one in asked if one.lang == lang)),))
            for lang in ("en", "he")
        ),
    ]  # fmt: skip


def _titles(data: Path) -> tuple[Document, ...]:
    tree = read_json(data / SCHEMAS, "The schema catalogue of data.gov.il")
    with rows_of(data / SCHEMAS, "the catalogue"):
        rows = tree["datasets"]
        return tuple(Document(str(row["dataset_id"]), str(row["title"])) for row in rows)


def pair_tasks(field: str, pairs: Sequence[Pair]) -> list[Task]:
    """Each half of the pairs among all halves of the other language."""
    made = []
    for direction, asked, answer in (
        ("he→en", "hebrew", "english"),
        ("en→he", "english", "hebrew"),
    ):
        texts = list(dict.fromkeys(str(getattr(pair, answer)) for pair in pairs))
        ids = {text: str(at) for at, text in enumerate(texts)}
        gold: dict[str, list[str]] = {}
        for pair in pairs:
            gold.setdefault(str(getattr(pair, asked)), []).append(ids[str(getattr(pair, answer))])
        questions = tuple(
            Question(str(at), text, tuple(dict.fromkeys(right)), field, direction[:2])
            for at, (text, right) in enumerate(gold.items())
        )
        documents = tuple(Document(ids[text], text) for text in texts)
        made.append(Task(f"left out: {field}", direction, (Corpus(field, documents, questions),)))
    return made


def unit_vectors(model: StaticModel, texts: Sequence[str]) -> npt.NDArray[np.float32]:
    """Rows of length one, as the gateway stores them."""
    vectors = model.sums(texts)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, np.finfo(np.float32).tiny), dtype=np.float32)


def measured(model: StaticModel, task: Task) -> dict[str, Any]:
    """Means and intervals of the metrics, and the size of the choice."""
    judged = [one for corpus in task.corpora for one in _judged(model, corpus)]
    summary = summarise(judged)
    return {
        "task": task.name,
        "direction": task.direction,
        "questions": len(judged),
        "candidates": max(len(corpus.documents) for corpus in task.corpora),
        **{
            metric: {"mean": round(value.mean, 4), "low": round(value.low, 4),
                     "high": round(value.high, 4)}
            for metric, value in summary.items() if metric in METRICS
        },
    }  # fmt: skip


def _judged(model: StaticModel, corpus: Corpus) -> Iterator[Judged]:
    documents = unit_vectors(model, [document.text for document in corpus.documents])
    asked = [question for question in corpus.questions if question.gold]
    for question, vector in zip(
        asked, unit_vectors(model, [question.text for question in asked]), strict=True
    ):
        order = np.argsort(-(documents @ vector), kind="stable")[:DEPTH]
        yield question.judged(corpus.documents[row].doc_id for row in order)


def without_field(english: EnglishRows, sources: Sources, field: str) -> StaticModel:
    """The model that is built when one file of sentences is missing."""
    kept = [pair for pair in sources.sentences if pair.field != field]
    hebrew = fit(english, replace(sources, sentences=kept), FitRecipe())
    with tempfile.TemporaryDirectory() as folder:
        write_artefact(english, hebrew, Path(folder), name=f"without-{field}", origin="a test")
        return load_static_model(Path(folder))


def english_only(model: StaticModel) -> StaticModel:
    """The English model inside a bilingual one: it reads Hebrew letter by letter."""
    return replace(model, name=ENGLISH_ONLY, hebrew=None)


def speed_of(folder: Path) -> dict[str, Any]:
    """Size, load time, and short texts a second of one thread, in both languages."""
    # Processor time, not wall time: the machine may be busy with other work.
    started = time.process_time()
    model = load_static_model(folder)
    loaded = time.process_time() - started
    rates = {}
    for lang in ("english", "hebrew"):
        words = [word for pair in read_pairs() for word in str(getattr(pair, lang)).split()]
        texts = [" ".join(words[at : at + SHORT_WORDS]) for at in range(RATE_TEXTS)]
        model.sums(texts)
        begun = time.process_time()
        model.sums(texts)
        rates[lang] = round(RATE_TEXTS / (time.process_time() - begun))
    size = sum(path.stat().st_size for path in folder.iterdir())
    return {"megabytes": round(size / 1e6, 2), "load_cpu_s": round(loaded, 3),
            "short_texts_per_cpu_s": rates}  # fmt: skip


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Fields of our pairs to build the model again without, and what it is built from."""

    english: EnglishRows
    sources: Sources
    fields: Sequence[str]


def left_out_of(model_name: str, fields: Sequence[str]) -> LeftOut:
    """ConfigError: no such field, or the model or a file of pairs cannot be read."""
    sentences = read_pairs(PAIRS)
    return LeftOut(
        fields=_check(fields, sentences),
        english=EnglishRows(find_model(model_name)),
        sources=Sources(
            sentences=sentences,
            phrases=read_dictionary(CONFIG_DIR / "expansions"),
            names=read_pairs(NAMES),
        ),
    )


def report(model_name: str, data: Path | None, fields: Sequence[str]) -> dict[str, Any]:
    """Everything measured, ready for JSON; every file is read before anything is measured.

    Raises ConfigError: a model, a set or a field is missing or cannot be read.
    """
    folder = find_model(model_name)
    model = load_static_model(folder)
    left_out = left_out_of(model_name, fields) if fields else None
    tasks = tasks_of(data) if data is not None else []
    made: dict[str, Any] = {"model": model.name, "speed": speed_of(folder), "results": []}
    for task in tasks:
        made["results"] += _both(model, task)
    if left_out is not None:
        for field in left_out.fields:
            fitted = without_field(left_out.english, left_out.sources, field)
            pairs = [pair for pair in left_out.sources.sentences if pair.field == field]
            for task in pair_tasks(field, pairs):
                made["results"] += _both(fitted, task)
    return made


def _both(model: StaticModel, task: Task) -> list[dict[str, Any]]:
    return [{"model": one.name, **measured(one, task)} for one in (model, english_only(model))]


def _check(fields: Sequence[str], sentences: Sequence[Pair]) -> Sequence[str]:
    known = sorted({pair.field for pair in sentences})
    chosen = known if "all" in fields else list(dict.fromkeys(fields))
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        raise ConfigError(f"No field {', '.join(unknown)}: choose of {', '.join(known)}, or all.")
    return chosen


def table_of(made: Mapping[str, Any]) -> Table:
    named = ("task", "direction", "model", "questions", "candidates")
    rows = (
        [*(str(row[name]) for name in named), *(f"{row[one]['mean']:.3f}" for one in METRICS)]
        for row in made["results"]
    )
    return number_table(f"{made['model']}, cosine only", (*named, *METRICS), rows, words=3)


def parser() -> argparse.ArgumentParser:
    made = command_parser("jobs.embedder_report", __doc__)
    made.add_argument("--model", default=NAME, help="bundled model or artefact folder")
    made.add_argument("--data", type=Path, help="folder that holds the sets")
    made.add_argument("--leave-out", action="append", default=[], help="field of our pairs, or all")
    return made


def _run(options: argparse.Namespace) -> int:
    console = report_console()
    check_files(options.out)
    made = report(options.model, options.data, options.leave_out)
    console.print(table_of(made))
    speed = made["speed"]
    console.print(
        f"{speed['megabytes']} MB; in seconds of one processor: loaded in "
        f"{speed['load_cpu_s']}, short texts in each: {speed['short_texts_per_cpu_s']}"
    )
    put_json(options.out, made)
    return DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
