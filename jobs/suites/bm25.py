"""The floor: plain BM25 over raw tokens, exact and in process.

Okapi BM25 (Robertson and Zaragoza 2009) with the constants that common packages ship, lower-cased
`\\w+` tokens, no lemmas, no stop words. A retrieval system that does not beat it earns nothing.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from jobs.suites.suite import Document

K1 = 1.5  # term saturation; default of rank_bm25
B = 0.75  # length normalisation; default of rank_bm25
TOKEN = re.compile(r"\w+")


def tokens(text: str) -> list[str]:
    return TOKEN.findall(text.lower())


class PlainBm25:
    """Ranks the documents of one corpus."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._ids = [document.doc_id for document in documents]
        counts = [Counter(tokens(document.text)) for document in documents]
        lengths = np.array([count.total() for count in counts], dtype=np.float64)
        self._norm = K1 * (1.0 - B + B * lengths / lengths.mean())
        self._postings: dict[str, tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]] = {}
        rows: dict[str, list[tuple[int, int]]] = {}
        for index, count in enumerate(counts):
            for term, frequency in count.items():
                rows.setdefault(term, []).append((index, frequency))
        for term, pairs in rows.items():
            where, frequencies = zip(*pairs, strict=True)
            self._postings[term] = (
                np.array(where, dtype=np.int64),
                np.array(frequencies, dtype=np.float64),
            )

    def rank(self, query: str, depth: int) -> tuple[str, ...]:
        """Up to `depth` ids with a positive score, best first; ties keep corpus order."""
        scores = np.zeros(len(self._ids))
        for term in set(tokens(query)):
            if term not in self._postings:
                continue
            where, frequency = self._postings[term]
            known = len(where)
            idf = math.log(1.0 + (len(self._ids) - known + 0.5) / (known + 0.5))
            scores[where] += idf * frequency * (K1 + 1.0) / (frequency + self._norm[where])
        order = np.argsort(-scores, kind="stable")[:depth]
        return tuple(self._ids[index] for index in order if scores[index] > 0.0)
