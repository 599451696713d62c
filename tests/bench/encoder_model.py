"""Folders with an XLM-RoBERTa of a given size: random weights, and a tokenizer trained on the spot.

Speed does not depend on what the weights are, so nothing is fetched from anywhere.
"""

import importlib
import itertools
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from tests.bench.texts import facts

# In XLM-RoBERTa's order, so that its padding is number 1.
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
PIECES = 4_000  # of the tokenizer; a larger table of the model is padded with rows never read
CORPUS = 4_000  # facts that the tokenizer is trained on
SPECIAL_TOKENS = 2  # of one text
PAIR_TOKENS = 4  # of a question and a document
# Standard deviation of a weight times the root of its fan-in. The usual .02 gives every text the
# same vector, which would hide answers that belong to another text.
SPREAD = 1.6
# The special tokens of XLM-R.
MARKS = {"bos_token": "<s>", "cls_token": "<s>", "eos_token": "</s>", "sep_token": "</s>"}
MARKS |= {"unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>"}


class Size(NamedTuple):
    """Shape of an encoder. `positions`: longest text in tokens."""

    layers: int
    hidden: int
    heads: int
    vocabulary: int
    positions: int


SIZES = {
    "bge-m3": Size(layers=24, hidden=1024, heads=16, vocabulary=250_002, positions=8192),
    "small": Size(layers=6, hidden=384, heads=12, vocabulary=32_000, positions=512),
    "tiny": Size(layers=2, hidden=32, heads=2, vocabulary=4_100, positions=512),
}


def write_encoder(folder: Path, size: Size, seed: int) -> Path:
    """A sentence-transformers folder as bge-m3's: the CLS vector at unit length."""
    _write(folder, size, seed, "XLMRobertaModel")
    modules = (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"))
    _json(
        folder / "modules.json",
        [
            {
                "idx": number,
                "name": str(number),
                "path": path,
                "type": f"sentence_transformers.models.{name}",
            }
            for number, (name, path) in enumerate(modules)
        ],
    )
    _json(
        folder / "1_Pooling" / "config.json",
        {
            "word_embedding_dimension": size.hidden,
            "pooling_mode_cls_token": True,
            "pooling_mode_mean_tokens": False,
        },
    )
    (folder / "2_Normalize").mkdir(exist_ok=True)
    _json(
        folder / "sentence_bert_config.json",
        {"max_seq_length": size.positions, "do_lower_case": False},
    )
    return folder


def write_cross_encoder(folder: Path, size: Size, seed: int) -> Path:
    """A folder as bge-reranker-v2-m3's: one label."""
    return _write(folder, size, seed, "XLMRobertaForSequenceClassification")


def trained_tokenizer(seed: int, facts_read: int = CORPUS) -> Tokenizer:
    """Pieces of words, as XLM-RoBERTa's, of the bilingual facts."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=PIECES, special_tokens=list(SPECIAL), unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(itertools.islice(fact_texts(seed), facts_read), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return tokenizer


def text_of(tokenizer: Tokenizer, tokens: int, source: Iterator[str]) -> str:
    """Facts of both languages, as many as fill `tokens` without the special ones."""
    text = ""
    while True:
        text += next(source) + " "
        encoded = tokenizer.encode(text, add_special_tokens=False)
        if len(encoded.ids) >= tokens:
            end: int = encoded.offsets[tokens - 1][1]
            return text[:end].strip()


def fact_texts(seed: int) -> Iterator[str]:
    return (fact.text for fact in facts(seed))


def mixed_lengths(count: int, longest: int, seed: int) -> list[int]:
    """Token counts as memories have them: many short, few long."""
    random_ = random.Random(seed)
    shortest = min(8, longest)
    return [
        min(longest, max(shortest, int(random_.lognormvariate(4.0, 1.0)))) for _ in range(count)
    ]


def _write(folder: Path, size: Size, seed: int, architecture: str) -> Path:
    torch = importlib.import_module("torch")
    transformers = importlib.import_module("transformers")
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    config = transformers.XLMRobertaConfig(
        vocab_size=size.vocabulary,
        hidden_size=size.hidden,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        intermediate_size=4 * size.hidden,
        # XLM-R counts positions from 2.
        max_position_embeddings=size.positions + 2,
        type_vocab_size=1,
        initializer_range=SPREAD / math.sqrt(size.hidden),
        num_labels=1,
    )
    getattr(transformers, architecture)(config).save_pretrained(str(folder))
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=trained_tokenizer(seed), model_max_length=size.positions, **MARKS
    ).save_pretrained(str(folder))
    return folder


def _json(path: Path, content: Any) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
