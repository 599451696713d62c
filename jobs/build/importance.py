"""Fits what each signal weighs in the importance of a text, and tells how often it is right.

    python -m jobs.build.importance [--heads] [--fit] [--wrong] [--file F]

F holds texts by the side of the threshold on which they stand, those to fit and those held out, in
each language. Without `--fit` it only judges the weights of `configs/understanding/weights.yaml`;
with it, it prints better ones. `--heads` reads the texts with the encoder too and needs
`rayapp[encoder]`. Exit codes: 0 done, 2 bad arguments, 3 a side is wrong too often.
"""

import argparse
import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import yaml
from pydantic import TypeAdapter, ValidationError

from jobs.ending import DONE, WITH_FAILURES, command_parser, run_command
from jobs.labelled import SentenceReader
from rayapp.core.errors import ConfigError
from rayapp.core.settings.load import CONFIG_DIR
from rayapp.inference.sentence_heads import load_heads
from rayapp.local.cli.output import number_table, report_console
from rayapp.storage.files import load_importance, load_signals
from rayapp.understanding.records import Signal, Speaker
from rayapp.understanding.rules.importance import ImportanceParams, Weights, importance_of
from rayapp.understanding.rules.signals import SignalWords, sentences_of

CORPUS = Path("tests/golden/understanding/importance.yaml")
FOLDER = CONFIG_DIR / "understanding"
THRESHOLD = 0.44
# What the side of the threshold must be right in, held out, in each language.
LEAST = 0.90
# Steps in which weights are tried; what stands nearer to the threshold than the margin counts half.
STEP, MARGIN = 0.05, 0.04
Side = Literal["above", "below"]
Kinds = Callable[[str], Mapping[str, float]]
_CORPUS = TypeAdapter(dict[str, dict[str, dict[Side, list[str]]]])


@dataclass(frozen=True, slots=True)
class Text:
    """A text of the corpus."""

    part: str
    language: str
    above: bool
    text: str


def read_corpus(path: Path) -> list[Text]:
    """ConfigError names what is wrong in the file."""
    try:
        parts = _CORPUS.validate_python(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, yaml.YAMLError, ValidationError) as error:
        raise ConfigError(f"{path} holds no texts by part, language and side: {error}.") from None
    return [
        Text(part, language, side == "above", text)
        for part, languages in parts.items()
        for language, sides in languages.items()
        for side, texts in sides.items()
        for text in texts
    ]


def kinds_of(texts: Sequence[Text]) -> Kinds:
    """What the bundled heads say of each sentence. ConfigError: onnxruntime is not there."""
    reader = SentenceReader()
    heads = load_heads(reader.encoder)
    every = list(dict.fromkeys(one for text in texts for one in sentences_of(text.text)))
    read: dict[str, Mapping[str, float]] = {
        one: dict(heads.probabilities(reading).items())
        for one, reading in zip(every, reader.read(every), strict=True)
    }
    return read.__getitem__


def scored(
    texts: Sequence[Text], words: SignalWords, params: ImportanceParams, kinds: Kinds | None
) -> list[tuple[Text, float, bool]]:
    """Each text with its score, and whether its side is right."""
    found = []
    for one in texts:
        score = importance_of(
            one.text, words, params, speaker=Speaker.USER, threshold=THRESHOLD, kinds=kinds
        ).score
        found.append((one, score, (score > THRESHOLD) == one.above))
    return found


def fitted(
    texts: Sequence[Text], words: SignalWords, params: ImportanceParams, kinds: Kinds | None
) -> Weights:
    """The weights with the most right sides, and among equal ones the widest margin."""
    seen = []
    for one in texts:
        found = importance_of(
            one.text, words, params, speaker=Speaker.USER, threshold=THRESHOLD, kinds=kinds
        )
        seen.append((one.above, bool(found.overrides), found.signals))
    steps = round(1 / STEP)
    best: tuple[float, Weights] | None = None
    for parts in itertools.product(range(1, steps), repeat=3):
        if sum(parts) >= steps:
            continue
        values = [round(part * STEP, 2) for part in (*parts, steps - sum(parts))]
        weights = Weights(**dict(zip([one.value for one in Signal], values, strict=True)))
        right = 0.0
        for above, overridden, signals in seen:
            base = sum(getattr(weights, name) * value for name, value in signals.items())
            score = max(base, 0.75) if overridden else base
            if (score > THRESHOLD) == above:
                right += 1.0 if abs(score - THRESHOLD) >= MARGIN else 0.5
        if best is None or right > best[0]:
            best = right, weights
    assert best is not None
    return best[1]


def run(args: argparse.Namespace) -> int:
    texts = read_corpus(args.file)
    words = load_signals(FOLDER / "signals.yaml")
    params = load_importance(FOLDER / "weights.yaml")
    kinds = kinds_of(texts) if args.heads else None
    console = report_console()
    if args.fit:
        weights = fitted([one for one in texts if one.part == "fitting"], words, params, kinds)
        name = "heads" if args.heads else "tables"
        params = params.model_copy(update={name: weights})
        console.print(f"{name}: {weights.model_dump()}", markup=False, highlight=False)
    found = scored(texts, words, params, kinds)
    places = list(dict.fromkeys((one.part, one.language) for one in texts))
    rows, worst = [], 1.0
    for part, language in places:
        there = [row for row in found if (row[0].part, row[0].language) == (part, language)]
        share = sum(right for _, _, right in there) / len(there)
        rows.append((f"{part} {language}", str(len(there)), f"{share:.3f}"))
        worst = share if part == "held_out" and share < worst else worst
    console.print(number_table("Side of the threshold", ("part", "texts", "right"), rows))
    if args.wrong:
        for one, score, right in found:
            if not right:
                line = f"{one.part} {one.language} {score:.2f} {'above' if one.above else 'below'}"
                console.print(f"{line}: {one.text}", markup=False, highlight=False)
    return DONE if worst >= LEAST else WITH_FAILURES


def parser() -> argparse.ArgumentParser:
    made = command_parser("jobs.build.importance", __doc__, out=False)
    made.add_argument("--file", type=Path, default=CORPUS, help="texts by part, language and side")
    made.add_argument("--heads", action="store_true", help="read them with the encoder too")
    made.add_argument("--fit", action="store_true", help="print better weights")
    made.add_argument("--wrong", action="store_true", help="print what is on the wrong side")
    return made


main = partial(run_command, parser, run)

if __name__ == "__main__":
    sys.exit(main())
