"""How well the house tells what kind of sentence a text is.

    python -m jobs.language_report [--file F] [--out report.json]

F holds lines `kind<TAB>text`; the language of each is detected. Without `--file` it reads the
held-out part of our own sentences. Precision, recall and F1 of each kind, their mean, and the mean
over the surest half; kinds and what they mean: `jobs/build/language/README.md`. Needs
`rayapp[encoder]`. Exit codes: 0 done, 2 bad arguments.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from jobs.ending import DONE, command_parser, run_command
from jobs.labelled import (
    LANGUAGE,
    KindScore,
    Labelled,
    SentenceReader,
    kind_scores,
    macro_of,
    read_labelled,
)
from jobs.suites.outputs import check_files, put_json
from rayapp.inference.sentence_heads import SentenceKind, load_heads
from rayapp.local.cli.output import number_table, report_console
from rayapp.text.language import Language

HELD_OUT = LANGUAGE / "held_out"
COLUMNS = ("kind", "sentences", "precision", "recall", "F1")


@dataclass(frozen=True, slots=True)
class Guess:
    """What a sentence was taken for, and how surely."""

    sentence: Labelled
    language: Language
    guess: SentenceKind
    probability: float

    @property
    def is_right(self) -> bool:
        return self.guess == self.sentence.kind


def guesses_of(sentences: Sequence[Labelled]) -> list[Guess]:
    """By the bundled encoder and its heads. ConfigError: onnxruntime is not there."""
    reader = SentenceReader()
    heads = load_heads(reader.encoder)
    found = []
    for one, reading in zip(sentences, reader.read([s.text for s in sentences]), strict=True):
        shares = heads.probabilities(reading)
        guess = max(shares, key=shares.__getitem__)
        found.append(Guess(one, reading.language, guess, shares[guess]))
    return found


def report_of(guesses: Sequence[Guess]) -> dict[str, Any]:
    """By language, the one with most sentences first."""
    by_language: dict[str, list[Guess]] = {}
    for one in guesses:
        by_language.setdefault(one.language, []).append(one)
    order = sorted(by_language, key=lambda name: -len(by_language[name]))
    return {name: _measured(by_language[name]) for name in order}


def _measured(guesses: Sequence[Guess]) -> dict[str, Any]:
    rows = kind_scores([(one.sentence.kind, one.guess) for one in guesses])
    surest = sorted(guesses, key=lambda one: -one.probability)[: (len(guesses) + 1) // 2]
    return {
        "sentences": len(guesses),
        "macro_f1": macro_of(rows),
        "right": _share_right(guesses),
        "right_of_surest_half": _share_right(surest),
        "mean_probability": sum(one.probability for one in guesses) / len(guesses),
        "kinds": [asdict(row) for row in rows],
    }


def _share_right(guesses: Sequence[Guess]) -> float:
    return sum(one.is_right for one in guesses) / len(guesses)


def tables_of(report: Mapping[str, Any]) -> Iterator[tuple[Table, str]]:
    """A table and a line below it for each language."""
    for name, found in report.items():
        rows = [KindScore(**row) for row in found["kinds"]]
        lines = [
            (one.kind, str(one.sentences), *(f"{x:.3f}" for x in (one.precision, one.recall)),
             f"{one.f1:.3f}")
            for one in rows
        ]  # fmt: skip
        yield (
            number_table(f"{name}, {found['sentences']} sentences", COLUMNS, lines),
            f"macro F1 {found['macro_f1']:.3f}; right {found['right']:.3f}, of the surest half "
            f"{found['right_of_surest_half']:.3f}; mean probability "
            f"{found['mean_probability']:.3f}",
        )


def parser() -> argparse.ArgumentParser:
    made = command_parser("jobs.language_report", __doc__)
    made.add_argument("--file", type=Path, help="lines kind<TAB>text; default: our held-out part")
    return made


def _run(options: argparse.Namespace) -> int:
    check_files(options.out)
    files = [options.file] if options.file else sorted(HELD_OUT.glob("*.tsv"))
    sentences = [one for path in files for one in read_labelled(path)]
    report = report_of(guesses_of(sentences))
    console = report_console()
    for table, line in tables_of(report):
        console.print(table)
        console.print(line)
    put_json(options.out, report)
    return DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
