"""A tiny English model and a tiny corpus of pairs, written by the test that asks."""

import json
import struct
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

DIMS = 32
PAIRS = """\
The dog barked all night.	הכלב נבח כל הלילה.
My dog likes the garden.	הכלב שלי אוהב את הגינה.
A cat slept in the garden.	חתול ישן בגינה.
The cat and the dog	החתול והכלב
I bought a new book.	קניתי ספר חדש.
The book is about the night.	הספר הוא על הלילה.
new books in the library	ספרים חדשים בספרייה
The library is open all night.	הספרייה פתוחה כל הלילה.
"""
PHRASES = "domain: pets\nentries:\n  - {he: [כלב], en: [dog]}\n  - {he: [חתול], en: [cat]}\n"
NAMES = "London\tלונדון\nLondonderry\tלונדונדרי\nNew London\tניו לונדון\nLondoners\tלונדונרים\n"


def write_english(folder: Path) -> Path:
    """A Model2Vec folder with one random vector per English word of PAIRS and NAMES."""
    texts = (PAIRS + NAMES).lower().replace("\t", " ").replace(".", " ").split()
    words = sorted({word for word in texts if word.isascii()})
    vocabulary = {token: at for at, token in enumerate(["[UNK]", ".", "2", *words])}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    vectors = np.random.default_rng(7).normal(size=(len(vocabulary), DIMS)).astype("<f4")
    # As in real models: the average text has the length that the penalty is set for.
    vectors *= 190.0 / np.linalg.norm(vectors[:4].sum(axis=0))
    entry = {"dtype": "F32", "shape": list(vectors.shape), "data_offsets": [0, vectors.nbytes]}
    header = json.dumps({"embeddings": entry}).encode()
    raw = struct.pack("<Q", len(header)) + header + vectors.tobytes()
    (folder / "model.safetensors").write_bytes(raw)
    return folder


def write_sources(folder: Path) -> None:
    """`pairs/`, `names/` and `expansions/` under `folder`."""
    for name, file, text in (
        ("pairs", "field.tsv", PAIRS),
        ("names", "cities.tsv", NAMES),
        ("expansions", "pets.yaml", PHRASES),
    ):
        (folder / name).mkdir(parents=True)
        (folder / name / file).write_text(text, encoding="utf-8")
