"""Learns what kind of sentence a text is. The same sentences give the same file.

    python -m jobs.build.heads [--out FILE] [--check]

The sentences are those of `jobs/build/language/training`, read by the bundled encoder
(`rayapp[encoder]`) and the bundled static model. The heads are one multinomial logistic model over
what `rayapp/inference/sentence_heads.py` weighs, with each language, and in it each kind,
counting alike. How sure it may be comes from predictions for sentences that taught it nothing:
each fifth of every kind by what the others teach, in the order of the files, so that sentences
that were written together stay together. `--check` writes nothing and says whether the file is
what it would be now. Exit codes: 0 done, 2 bad arguments, 3 the file differs.
"""

import argparse
import hashlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jobs.build.static import write_npz
from jobs.ending import DONE, WITH_FAILURES, command_parser, run_command
from jobs.labelled import LANGUAGE, Labelled, SentenceReader, kind_scores, macro_of, read_labelled
from jobs.suites.outputs import check_files, put
from rayapp.inference.sentence_heads import (
    BUNDLED,
    FORMAT,
    LANGUAGES,
    SENTENCE_KINDS,
    Reading,
    features_of,
)
from rayapp.local.cli.output import number_table, report_console

TRAINING = LANGUAGE / "training"
FOLDS = 5
RIDGE = 0.05
STEPS = 100
# Of the factor that makes probabilities as sure as they may be: tried in steps of this.
SHARPEST, STEP = 4.0, 0.05
DECIMALS = 3
Floats = npt.NDArray[np.float64]
Arrays = dict[str, npt.NDArray[Any]]
ROWS = (*SENTENCE_KINDS, "macro")


@dataclass(frozen=True, slots=True)
class Examples:
    """Sentences as they are read; `fold` says when each judges, `share` what each counts."""

    sentences: Sequence[Labelled]
    readings: Sequence[Reading]
    kind: npt.NDArray[np.int64]
    share: Floats
    fold: npt.NDArray[np.int64]

    def rows(self, means: Floats) -> Floats:
        """What the heads weigh of each, and 1 for the bias."""
        found = [features_of(one, means.astype(np.float32)) for one in self.readings]
        rows: Floats = np.c_[np.array(found, dtype=np.float64), np.ones(len(found))]
        return rows


def examples_of(sentences: Sequence[Labelled], readings: Sequence[Reading]) -> Examples:
    """Each language counts alike, and in it each kind."""
    keys = [(one.language, one.kind) for one in sentences]
    counts, seen = Counter(keys), Counter[tuple[str, str]]()
    fold = []
    for key in keys:
        fold.append(seen[key] * FOLDS // counts[key])
        seen[key] += 1
    return Examples(
        sentences,
        readings,
        np.array([SENTENCE_KINDS.index(one.kind) for one in sentences]),
        np.array([len(keys) / len(counts) / counts[key] for key in keys]),
        np.array(fold),
    )


def means_of(readings: Sequence[Reading]) -> Floats:
    """The middle of each language, as precise as the file holds it."""
    found = []
    for language in LANGUAGES:
        vectors = [one.vectors for one in readings if one.language == language]
        joint = np.array([np.concatenate([one.search, one.heads]) for one in vectors])
        found.append(joint.mean(axis=0, dtype=np.float64))
    return np.array(found).astype(np.float16).astype(np.float64)


def fit(rows: Floats, kind: npt.NDArray[np.int64], share: Floats) -> Floats:
    """Weights `[features, kinds]`, the last row the bias: multinomial, with a ridge.

    Half of the rows' products bounds the curvature everywhere (Böhning 1992), so that one inverse
    serves every step; Nesterov's momentum makes a hundred of them enough.
    """
    ridge = np.full((rows.shape[1], 1), RIDGE)
    ridge[-1] = 0.0
    bound = 0.5 * (rows * share[:, None]).T @ rows + np.diag(ridge[:, 0] + 1e-6)
    inverse = np.linalg.inv(bound)
    wanted = np.eye(len(SENTENCE_KINDS))[kind]
    weights = ahead = np.zeros((rows.shape[1], len(SENTENCE_KINDS)))
    pace = 1.0
    for _ in range(STEPS):
        missed = (shares_of(rows @ ahead) - wanted) * share[:, None]
        stepped = ahead - inverse @ (rows.T @ missed + ridge * ahead)
        following = (1.0 + np.sqrt(1.0 + 4.0 * pace * pace)) / 2.0
        ahead = stepped + (pace - 1.0) / following * (stepped - weights)
        weights, pace = stepped, following
    return weights


def shares_of(scores: Floats) -> Floats:
    """Probabilities of rows of scores."""
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Floats = raised / raised.sum(axis=1, keepdims=True)
    return shares


def judged_scores(examples: Examples) -> Floats:
    """Scores of each sentence by heads that saw nothing of its fold."""
    scores = np.zeros((len(examples.kind), len(SENTENCE_KINDS)))
    for number in range(FOLDS):
        out = examples.fold == number
        taught = [one for one, away in zip(examples.readings, out, strict=True) if not away]
        rows = examples.rows(means_of(taught))
        weights = fit(rows[~out], examples.kind[~out], examples.share[~out])
        scores[out] = rows[out] @ weights
    return scores


def sharpness_of(scores: Floats, kind: npt.NDArray[np.int64]) -> float:
    """The factor of scores under which what came true was likeliest."""
    factors = np.arange(STEP, SHARPEST, STEP)
    at = np.arange(len(kind))
    likely = [float(np.log(shares_of(scores * one)[at, kind]).mean()) for one in factors]
    return float(factors[int(np.argmax(likely))])


def learn(examples: Examples, encoder: str, static_model: str) -> Arrays:
    """The arrays of the file; what they reach by cross-validation is in its metadata."""
    scores = judged_scores(examples)
    sharpness = sharpness_of(scores, examples.kind)
    means = means_of(examples.readings)
    weights = fit(examples.rows(means), examples.kind, examples.share) * sharpness
    metadata = {
        "format": FORMAT,
        "encoder": encoder,
        "static_model": static_model,
        "joint_dims": means.shape[1],
        "words_dims": len(weights) - 1 - means.shape[1],
        "kinds": SENTENCE_KINDS,
        "sha256": digests(),
        "sharpness": round(sharpness, DECIMALS),
        "measured": measured_of(examples, scores),
    }
    head = json.dumps(metadata, ensure_ascii=False, sort_keys=True).encode()
    return {
        "metadata": np.frombuffer(head, dtype=np.uint8),
        "means": means.astype(np.float16),
        "weights": weights[:-1].astype(np.float16),
        "bias": weights[-1].astype(np.float16),
    }


def measured_of(examples: Examples, scores: Floats) -> dict[str, dict[str, float]]:
    """F1 by language and kind, of predictions for sentences that taught nothing."""
    said = [SENTENCE_KINDS[at] for at in scores.argmax(axis=1)]
    found = {}
    for language in LANGUAGES:
        pairs = [
            (one.kind, guess)
            for one, guess in zip(examples.sentences, said, strict=True)
            if one.language == language
        ]
        rows = kind_scores(pairs)
        by_kind: dict[str, float] = {row.kind: round(row.f1, DECIMALS) for row in rows}
        found[language] = by_kind | {"macro": round(macro_of(rows), DECIMALS)}
    return found


def digests(folder: Path = TRAINING) -> dict[str, str]:
    """Of the files that it learned from: a heads file says by them whether it is of today."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.glob("*.tsv"))
    }


def training(folder: Path = TRAINING) -> list[Labelled]:
    return [one for path in sorted(folder.glob("*.tsv")) for one in read_labelled(path)]


def build(out: Path) -> dict[str, Any]:
    """Writes the file; gives its metadata."""
    sentences = training()
    reader = SentenceReader()
    readings = reader.read([one.text for one in sentences])
    arrays = learn(examples_of(sentences, readings), reader.encoder, reader.static_model)
    write_npz(out, arrays)
    metadata: dict[str, Any] = json.loads(arrays["metadata"].tobytes())
    return metadata


def parser() -> argparse.ArgumentParser:
    made = command_parser("jobs.build.heads", __doc__, out=False)
    made.add_argument("--out", type=Path, default=BUNDLED, help="default: what the service reads")
    made.add_argument("--check", action="store_true", help="compare with the file, write nothing")
    return made


def _run(options: argparse.Namespace) -> int:
    check_files(options.out)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / options.out.name
        measured = build(made)["measured"]
        differs = not options.out.is_file() or options.out.read_bytes() != made.read_bytes()
        if not options.check:
            put(options.out, made.read_bytes())
    console = report_console()
    rows = [(kind, *(f"{measured[name][kind]:.3f}" for name in LANGUAGES)) for kind in ROWS]
    console.print(number_table("F1 by cross-validation", ("kind", *LANGUAGES), rows))
    if options.check and differs:
        console.print(f"{options.out.name} is not what its sentences make now: make it again.")
        return WITH_FAILURES
    return DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
