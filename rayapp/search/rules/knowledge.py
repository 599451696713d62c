"""Whether the memory of a user knows anything of what is asked. Pure.

A search gives its best hits, however little they have to do with the question, and the best of
nothing is noise. This asks one thing of the whole store before anything of it is put before a
model: how near the nearest memory is, how much of what the question's words weigh the best one
holds, how much of it no memory holds, and what kind of message it is. Where the encoder took part,
it says how near the nearest memory is in meaning, and its heads what kind of message it is; of a
question in another language than the memories it weighs other things, since no word is alike. The
weights are learned (`jobs/build/silence.py`) for one embedding model, and for it with one encoder;
without them nothing is ever silenced.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import Field

from rayapp.core.errors import ConfigError
from rayapp.core.settings.access import SettingsSection, Share, setting
from rayapp.graphs.rules.question import context_type_of
from rayapp.memory.scope import ItemFilter
from rayapp.search.requests import Knowledge, Known, SearchQuery
from rayapp.search.rules.candidates import Reach
from rayapp.search.rules.query import QueryPlan
from rayapp.search.rules.ranking import Ranked
from rayapp.search.rules.recipes import parsed
from rayapp.text import language as languages
from rayapp.text.hebrew import STOP_WORDS
from rayapp.text.normalize import normalize
from rayapp.text.tokens import Token, token_terms, tokens
from rayapp.text.utterance import beginning

SIGNALS = (
    *("nearest", "covered", "unknown", "size", "words", "known_words", "known_names"),
    *("unknown_names", "small_talk", "order"),
)
# What the encoder adds, and of which kinds of sentences its heads are heard.
KINDS = ("small_talk", "general", "past", "documents")
ENCODED_SIGNALS = (
    *SIGNALS,
    *("encoder_nearest", "encoder_gap"),
    *(f"kind_{kind}" for kind in KINDS),
)
# Of a question in another language than the memories: what does not hang on words.
CROSSED_SIGNALS = (
    *("nearest", "size", "known_names", "encoder_nearest", "encoder_gap"),
    *("kind_small_talk", "kind_general", "kind_past"),
)
# Places of the readings of a word among the terms.
Slots = tuple[int, ...]
# From the least known on.
KNOWN: tuple[Known, ...] = ("no", "unsure", "yes")
# Words at the beginning that say what kind of message it is.
FORM_WORDS = 3
# The beginning of a message that is read: a longer one brings material of its own.
READ_CHARS = 1_000
# Below so many memories how rare a word is says nothing, and little is lost by telling all.
FEW_MEMORIES = 10
# Names that are counted: one more says no more.
MOST_NAMES = 2


class Forms(SettingsSection):
    """Words and phrases by the kind of message, `configs/knowledge/forms.yaml`."""

    small_talk: str
    orders: str
    self_words: str
    of_memory: tuple[str, ...]

    @cached_property
    def _words(self) -> tuple[frozenset[str], ...]:
        rows = (self.small_talk, self.orders, self.self_words)
        return tuple(frozenset(normalize(row).split()) for row in rows)

    @cached_property
    def _phrases(self) -> tuple[str, ...]:
        return tuple(f" {_plain(phrase)} " for phrase in self.of_memory)

    def read(self, question: str) -> Form:
        """What kind of message it is."""
        talk, orders, of_self = self._words
        head = normalize(beginning(question, READ_CHARS))
        said = list(tokens(head))
        texts = [token.text for token in said]
        first, plain = texts[:FORM_WORDS], f" {' '.join(texts)} "
        return Form(
            words=tuple(dict.fromkeys(_slots(one) for one in said if one.text not in STOP_WORDS)),
            names=_names_of(head),
            # A greeting before a question is no small talk: "Good morning! Where do I live?"
            small_talk=not talk.isdisjoint(first) and "?" not in head,
            order=not orders.isdisjoint(first),
            of_self=not of_self.isdisjoint(texts),
            of_memory=any(phrase in plain for phrase in self._phrases)
            or context_type_of(head) == "memory_management",
        )


def _plain(phrase: str) -> str:
    return " ".join(token.text for token in tokens(normalize(phrase)))


def _slots(token: Token) -> Slots:
    return tuple(term.slot for term in token_terms(token) if term.kind != "c4")


def _names_of(text: str) -> tuple[Slots, ...]:
    """Words with a capital inside the text. Hebrew has none, and the first word always has one."""
    capital = (word for word in text.split()[1:] if word[:1].isupper())
    found = (token for word in capital for token in tokens(word))
    return tuple(dict.fromkeys(_slots(one) for one in found if one.text not in STOP_WORDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What kind of message asks.

    words: those that carry meaning, each by the places of its readings; names: those of them that
    are written as names. of_self: it speaks of whoever asks. of_memory: it asks for what was said
    or is kept here.
    """

    words: tuple[Slots, ...] = ()
    names: tuple[Slots, ...] = ()
    small_talk: bool = False
    order: bool = False
    of_self: bool = False
    of_memory: bool = False


class KnowledgeModel(SettingsSection):
    """A logistic model over signals, for one embedding model; written by `jobs.build.silence`.

    `crossed`: the one of questions in another language than the memories; None: it decides none of
    them but small talk and orders.
    """

    weights: dict[str, float]
    bias: float
    least: Share = setting(0.0, "Probability below which nothing is known.")
    sure: Share = setting(1.0, "Probability from which something is.")
    source: str = ""
    measured: dict[str, dict[str, float]] = Field({})
    crossed: KnowledgeModel | None = None


@dataclass(frozen=True, slots=True)
class KnowledgeRule:
    """The models of an embedder with the table of forms. `encoded`: for searches that the encoder
    took part in; None: it is off, or nobody learned with it."""

    model: KnowledgeModel
    forms: Forms
    encoded: KnowledgeModel | None = None

    def model_for(self, reach: Reach, *, crosses: bool) -> KnowledgeModel:
        """`crosses`: the memories are in another language than the question."""
        read = reach.encoder_nearest is not None and reach.kinds is not None
        model = self.encoded if self.encoded is not None and read else self.model
        return model.crossed if crosses and model.crossed is not None else model


REASONS: Mapping[str, str] = {
    "not_assessed": "It was not assessed: the search saw only a part of what there is.",
    "narrowed": "A filter, an order or a tier was asked for, so what fits is told.",
    "of_memory": "The message asks for what was said or is kept here, so what fits is told.",
    "few_memories": "There are too few memories to tell what is far from all of them.",
    "other_language": "The memories are in another language, in which far says little.",
    "held": "A memory holds what the question names, or solved it before.",
    "far": "No memory is near enough to the question, and its words are hardly known.",
    "near": "Memories are near to the question.",
    "between": "Memories are neither near to the question nor far from it.",
}


def parse_knowledge(
    name: str,
    tree: Mapping[str, Any],
    signals: Sequence[str] = SIGNALS,
    crossed: Sequence[str] = (),
) -> KnowledgeModel:
    """`crossed`: signals of its model for another language. ConfigError: a number is missing, or a
    weight is of a signal that there is not."""
    model = parsed(KnowledgeModel, f"Knowledge {name}", tree)
    other = model.crossed.weights if model.crossed is not None else {}
    wrong = sorted((model.weights.keys() ^ set(signals)) | (other.keys() ^ set(crossed)))
    if wrong:
        raise ConfigError(
            f"Knowledge {name}: weights: {', '.join(wrong)} missing or unknown: make it again with "
            "`python -m jobs.build.silence`."
        )
    return model


def signals_of(reach: Reach, form: Form) -> dict[str, float]:
    """What the models weigh."""
    mass = max(reach.mass, 1e-9)
    known = sum(_is_held(word, reach) for word in form.words)
    names = sum(_is_held(name, reach) for name in form.names)
    return _encoded_signals(reach) | {
        "nearest": reach.nearest,
        "covered": reach.covered / mass,
        "unknown": reach.unknown / mass,
        "size": math.log(max(reach.memories, 1)),
        "words": math.log1p(len(form.words)),
        "known_words": known / len(form.words) if form.words else 0.0,
        "known_names": float(min(names, MOST_NAMES)),
        "unknown_names": float(min(len(form.names) - names, MOST_NAMES)),
        "small_talk": float(form.small_talk),
        "order": float(form.order),
    }


def _encoded_signals(reach: Reach) -> dict[str, float]:
    if reach.encoder_nearest is None or reach.kinds is None:
        return {}
    return {
        "encoder_nearest": reach.encoder_nearest,
        "encoder_gap": reach.encoder_gap or 0.0,
        **{f"kind_{kind}": reach.kinds[kind] for kind in KINDS},
    }


def _is_held(word: Slots, reach: Reach) -> bool:
    return any(reach.holders.get(slot) for slot in word)


def is_crossed(language: str, ranked: Sequence[Ranked]) -> bool:
    """Whether most candidates are in the other language."""
    return 2 * sum(languages.crosses(language, one.item.lang) for one in ranked) > len(ranked)


def knowledge_of(
    rule: KnowledgeRule, query: SearchQuery, plan: QueryPlan, ranked: Sequence[Ranked]
) -> Knowledge:
    """Of one search, by all of its candidates; those that were ordered or narrowed by whoever asks
    are told whatever they are."""
    reach = ranked[0].scored.candidates.reach if ranked else None
    if reach is None:
        return Knowledge()
    form = rule.forms.read(query.query)
    least = query.floor.knowledge if query.floor is not None else None
    crossed = is_crossed(plan.language, ranked)
    model = rule.model_for(reach, crosses=crossed)
    found = assess_knowledge(reach, form, model, least, crosses=crossed and model is rule.model)
    if found.known != "no":
        return found
    reason = "narrowed" if _narrowed(query, plan) else "held" if _held(ranked) else ""
    return replace(found, known="unsure", reason=reason) if reason else found


def _narrowed(query: SearchQuery, plan: QueryPlan) -> bool:
    """Whether somebody chose what is looked at. The newest of the world is not kept here."""
    where = replace(query.where, now=None, valid_at=None)
    world = query.floor is not None and query.floor.world and query.sort_by is None
    newest = plan.sort_by != "relevance" and not world
    return newest or query.tiers is not None or query.as_of is not None or where != ItemFilter()


def _held(ranked: Sequence[Ranked]) -> bool:
    """Whether a memory is a document of this conversation, holds an identifier that the question
    names, or solved this very problem."""
    scored = ranked[0].scored
    return (
        any(item.attached_to is not None for item in scored.candidates.items)
        or (scored.fused.identifier_weight > 0.0 and bool(scored.fused.held.any()))
        or any(boost.solution != 1.0 for boost in scored.boosts.values())
    )


def assess_knowledge(
    reach: Reach, form: Form, model: KnowledgeModel, least: float | None, *, crosses: bool = False
) -> Knowledge:
    """`least`: what the probability must be at least, where it is not the model's. `crosses`: the
    memories are in another language, and the model learned nothing of such questions."""
    least = model.least if least is None else least
    signals = signals_of(reach, form)
    z = model.bias + sum(weight * signals[name] for name, weight in model.weights.items())
    probability = 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, z))))
    known: Known = "unsure"
    if form.of_memory:
        reason = "of_memory"
    elif reach.memories < FEW_MEMORIES:
        reason = "few_memories"
    elif probability < least and crosses and (form.of_self or not (form.small_talk or form.order)):
        reason = "other_language"
    elif probability < least:
        known, reason = "no", "far"
    elif probability >= max(model.sure, least):
        known, reason = "yes", "near"
    else:
        reason = "between"
    return Knowledge(known=known, probability=probability, reason=reason, signals=signals)
