"""Retrieval on a bench: the service's own analyser, embedder and `rank`, with no server between.

For choosing parameters and judging features, where thousands of rankings are compared; the numbers
that count come from `jobs.evaluate`, over HTTP. A corpus is a user: IDF is taken over its memories,
as in the view of a user (decision 0055).
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from jobs.suites.suite import Corpus, Document, Question
from rayapp.core.vectors import SparseVector
from rayapp.memory.item import MemoryItem, point_id_of
from rayapp.memory.tiers import Tier
from rayapp.search.rules.candidates import Candidate, Candidates
from rayapp.search.rules.evaluation import Judged
from rayapp.search.rules.fusion import DenseRetriever, fuse
from rayapp.search.rules.query import plan_query
from rayapp.search.rules.ranking import Ranked, rank
from rayapp.search.rules.recipes import Recipe, Texts
from rayapp.search.rules.turns import with_turns
from rayapp.text.language import detect_language
from rayapp.text.passages import passages_of

# Texts `[n]` to float32 `[n, dims]`, rows of length one.
Embed = Callable[[Sequence[str]], npt.NDArray[np.float32]]
Floats = npt.NDArray[np.float32]
NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEPTH = 60  # candidates per retriever of a search for 10 hits (`search.min_depth`)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the candidates of both retrievers; ranking it needs no retriever again."""

    question: Question
    corpus: str
    language: str
    candidates: Candidates

    def ranked(self, recipe: Recipe, langs: frozenset[str] = frozenset()) -> list[Ranked]:
        """By the rules of the service. `langs`: what the embedder was made for, empty = all."""
        retriever = DenseRetriever(used=True, langs=langs)
        return rank(
            self.candidates,
            query_lang=self.language,
            recipe=recipe,
            retriever=retriever,
            question=self.question.text,
        )

    def ordered(self, recipe: Recipe, langs: frozenset[str] = frozenset()) -> list[str]:
        """Memory ids by relevance alone: what `ranked` gives while nobody has judged an item.

        Several times as fast, for a search over parameters.
        """
        retriever = DenseRetriever(used=True, langs=langs)
        items, asked = self.candidates.items, self.question.text
        fused = fuse(self.candidates, self.language, recipe, retriever, asked)
        turned = with_turns(items, fused.score, asked, recipe.turns, self.language)
        relevance = turned.tolist()
        order = sorted(range(len(items)), key=lambda at: (-relevance[at], items[at].point_id))
        return [items[at].memory_id for at in order]

    def alone(self) -> tuple[Judged, Judged]:
        """What each retriever answers by itself: vectors, words."""
        near = [one for one in self.candidates if one.dense_rank is not None]
        said = [one for one in self.candidates if one.sparse_rank is not None]
        near.sort(key=lambda one: one.dense_rank or 0)
        said.sort(key=lambda one: one.sparse_rank or 0)
        return (
            self.question.judged(one.item.memory_id for one in near),
            self.question.judged(one.item.memory_id for one in said),
        )

    def judged(self, ranked: Sequence[Ranked]) -> Judged:
        return self.question.judged(one.item.memory_id for one in ranked)


class _Tenant:
    """The documents of one corpus: their passages, with postings of terms and vectors. A row is a
    passage; `first` is that of each document."""

    def __init__(
        self, corpus: Corpus, texts: Texts, embed: Embed, tier: Tier, read: Embed | None
    ) -> None:
        # In the order of the corpus, as one batch stores it.
        self.items = [
            item_of(corpus.name, document, tier, place)
            for place, document in enumerate(corpus.documents, start=1)
        ]
        parts = [
            [passage.of(document.text) for passage in passages_of(document.text)]
            for document in corpus.documents
        ]
        contents = [text for passages in parts for text in passages]
        counts = np.array([len(passages) for passages in parts])
        self.first = np.cumsum(counts) - counts
        self.dense: Floats = embed(contents)
        self.read: Floats | None = None if read is None else read(contents)
        rows: dict[int, list[int]] = defaultdict(list)
        values: dict[int, list[float]] = defaultdict(list)
        for row, vector in enumerate(map(texts.analyser.document, contents)):
            for slot, value in zip(vector.indices, vector.values, strict=True):
                rows[slot].append(row)
                values[slot].append(value)
        self.postings = {
            slot: (np.asarray(rows[slot]), np.asarray(values[slot], np.float32)) for slot in rows
        }
        owners = np.repeat(np.arange(len(counts)), counts)
        self._idf = {
            slot: math.log1p((len(counts) - known + 0.5) / (known + 0.5))
            for slot, (found, _) in self.postings.items()
            for known in [len(set(owners[found].tolist()))]
        }

    def words(self, query: SparseVector) -> Floats:
        """BM25 of each passage."""
        scores = np.zeros(len(self.dense), np.float32)
        for slot, weight in zip(query.indices, query.values, strict=True):
            if slot in self.postings:
                found, values = self.postings[slot]
                scores[found] += weight * self._idf[slot] * values
        return scores

    def best(self, scores: Floats) -> tuple[Floats, npt.NDArray[np.int64]]:
        """Of each document the score of its best passage, and which one that is, from 0."""
        best: Floats = np.maximum.reduceat(scores, self.first)
        counts = np.diff(np.append(self.first, len(scores)))
        hits = np.flatnonzero(scores == np.repeat(best, counts))
        owners = np.searchsorted(self.first, hits, side="right") - 1
        _, at = np.unique(owners, return_index=True)
        return best, hits[at] - self.first


@dataclass(frozen=True, slots=True)
class Reading:
    """The encoder's vectors of documents and of questions."""

    passages: Embed
    queries: Embed


class Lab:
    """Corpora with their retrievers.

    Args:
        embed: vectors of documents and of questions.
        encoder: the third retriever; None: there are two.
        embed_question: those of questions, when the model reads them in another way.
        depth: candidates per retriever; a search for 10 hits takes 60, one for 50 takes 150.
        tiers: where the documents of a corpus are kept; default: history.
    """

    def __init__(
        self,
        corpora: Sequence[Corpus],
        texts: Texts,
        embed: Embed,
        *,
        embed_question: Embed | None = None,
        encoder: Reading | None = None,
        depth: int = DEPTH,
        tiers: Mapping[str, Tier] | None = None,
    ) -> None:
        self._corpora, self._texts, self._depth = corpora, texts, depth
        self._embed_question = embed_question or embed
        self._encoder = encoder
        kept, read = tiers or {}, None if encoder is None else encoder.passages
        self._tenants = {
            corpus.name: _Tenant(corpus, texts, embed, kept.get(corpus.name, Tier.HISTORY), read)
            for corpus in corpora
        }

    def items(self, corpus: str) -> Sequence[MemoryItem]:
        return self._tenants[corpus].items

    def ask(self, recipe: Recipe) -> Iterator[Asked]:
        """Every question of every corpus; `recipe` gives the weight of expansions."""
        for corpus in self._corpora:
            asked = [question.text for question in corpus.questions]
            vectors = self._embed_question(asked)
            read: Sequence[Floats | None] = [None] * len(asked)
            if self._encoder is not None:
                read = list(self._encoder.queries(asked))
            for question, *both in zip(corpus.questions, vectors, read, strict=True):
                yield self._asked(corpus, question, *both, recipe=recipe)

    def _asked(
        self,
        corpus: Corpus,
        question: Question,
        vector: Floats,
        read: Floats | None,
        *,
        recipe: Recipe,
    ) -> Asked:
        plan = plan_query(
            question.text,
            limit=10,
            sort_by=None,
            expansions=self._texts.expansions,
            latest=self._texts.latest,
        )
        tenant = self._tenants[corpus.name]
        dense, near = tenant.best(tenant.dense @ vector)
        query = self._texts.analyser.query(
            question.text, plan.expansions, expansion_weight=recipe.expansion_weight
        )
        text, words = tenant.best(tenant.words(query))
        dense_rank = _ranks(dense, self._depth, least=-1.0)
        text_rank = _ranks(text, self._depth, least=0.0)
        third, nearest = dense, near
        third_rank: dict[int, int] = {}
        if read is not None and tenant.read is not None:
            third, nearest = tenant.best(tenant.read @ read)
            third_rank = _ranks(third, self._depth, least=-1.0)
        candidates = [
            Candidate(
                item=tenant.items[row],
                dense=max(0.0, float(dense[row])) if row in dense_rank else None,
                dense_rank=dense_rank.get(row),
                sparse=float(text[row]) if row in text_rank else None,
                sparse_rank=text_rank.get(row),
                near_passage=int(near[row]),
                word_passage=int(words[row]),
                encoder=max(0.0, float(third[row])) if row in third_rank else None,
                encoder_rank=third_rank.get(row),
                encoder_passage=int(nearest[row]),
            )
            for row in sorted(dense_rank.keys() | text_rank.keys() | third_rank.keys())
        ]
        return Asked(question, corpus.name, plan.language, Candidates.of(candidates))


def _ranks(scores: Floats, depth: int, *, least: float) -> dict[int, int]:
    """Row to rank (from 1) of the best `depth` rows above `least`; ties by row."""
    order = np.argsort(-scores, kind="stable")[:depth]
    return {int(row): at for at, row in enumerate(order, start=1) if scores[row] > least}


def item_of(user_id: str, document: Document, tier: Tier, place: int) -> MemoryItem:
    at = document.created_at or NOW
    return MemoryItem(
        memory_id=document.doc_id,
        point_id=point_id_of(user_id, document.doc_id),
        user_id=user_id,
        tier=tier,
        text=document.text,
        content_hash=document.doc_id,
        created_at=at,
        stored_at=at,
        updated_at=at,
        tier_entered_at=at,
        lang=detect_language(document.text),
        sequence=place,
    )
