"""A recipe: a named set of ranking parameters, and the same with features switched off."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from rayapp.core.errors import ConfigError, InvalidInput
from rayapp.core.settings.access import SettingsSection, Share, setting
from rayapp.search.rules.latest_words import LatestWords
from rayapp.text.analyser import Analyser
from rayapp.text.expansions import Expansions

SectionT = TypeVar("SectionT", bound=SettingsSection)


class DenseWeights(SettingsSection):
    """Share of the dense retriever in the fusion, by scripts of query and item (decision 0003)."""

    hebrew: Share = setting(0.15, "Hebrew query, Hebrew item.")
    english: Share = setting(0.45, "English query, English item.")
    mixed: Share = setting(0.4, "One of them holds both scripts.")
    cross: Share = setting(0.9, "Different scripts: words cannot agree.")
    unknown: Share = setting(0.15, "The model was not made for one of the scripts.")


class EncoderWeights(SettingsSection):
    """Share of the encoder in the fusion, by scripts of query and item; words and the dense
    retriever share the rest as without it. A memory without the encoder's vector has none."""

    hebrew: Share = setting(0.3, "Hebrew query, Hebrew item.")
    english: Share = setting(0.15, "English query, English item.")
    mixed: Share = setting(0.3, "One of them holds both scripts.")
    cross: Share = setting(0.3, "Different scripts.")
    # Its cosines lie close together: those of unrelated texts about here (decision 0095).
    unrelated: float = setting(0.8, "Cosine that says nothing.", ge=0, lt=1)

    @property
    def off(self) -> bool:
        return not any((self.hebrew, self.english, self.mixed, self.cross))


class TurnShares(SettingsSection):
    """What a turn of a conversation gets beyond its own words; all 0 = off."""

    neighbour: Share = setting(0.2, "Share of the squared relevance of the turns next to it.")
    second: Share = setting(1.0, "Part of that for the turns after those.")
    answer: float = setting(
        1.0, "How much more it gets from a turn before it that asks.", ge=0, le=8
    )
    speaker: Share = setting(0.3, "Gain of what the one speaker says that the question names.")


class RerankBlend(SettingsSection):
    """Probabilities only, never raw logits: their scale differs from model to model."""

    original: Share = setting(0.55, "Weight of the score before.")
    cross_encoder: Share = setting(0.45, "Weight of the probability.")
    top: int = setting(30, "Candidates reranked, by rank before.", ge=1, le=200)


class ConfidenceModel(SettingsSection):
    """Logistic model over features with an absolute scale (search/rules/confidence.py).

    The values here stand in for a calibration: `configs/calibration` holds one per embedder and
    recipe, written by `jobs/calibrate.py`.
    """

    bias: float = -2.0
    cosine: float = 2.0
    coverage: float = 4.0
    passage: float = 0.0
    words: float = 0.0
    number_missing: float = 0.0
    high: Share = setting(0.7, "Relevance from which an answer is `high`.")
    medium: Share = setting(0.4, "Relevance from which it is `medium`.")
    floor: Share = setting(0.1, "Relevance below which even the best hit answers nothing.")


class Recipe(SettingsSection):
    name: str = Field(min_length=1)
    fusion: Literal["weighted", "rrf"] = "weighted"
    rrf_k: int = setting(60, "Constant of reciprocal rank fusion (its paper: 60).", ge=1)
    dense: DenseWeights = DenseWeights()
    encoder: EncoderWeights = EncoderWeights()
    turns: TurnShares = TurnShares()
    length_share: float = setting(
        0.08, "What each doubling takes of a text of several passages.", ge=0, le=0.2
    )
    expansion_weight: Share = setting(0.6, "Weight of expansion terms.")
    # From 0.5 on no other part lifts a text without it past one that holds it (decision 0040).
    identifier_weight: Share = setting(
        0.5, "Share of holding the identifiers that the question names."
    )
    maturity: bool = setting(True, "Outcome evidence takes part (decision 0016).")
    # 0.1: the widest band that costs unrelated questions no more than half a point of hit@10,
    # by cross-validation over conversations (decision record 0016).
    outcome_band: float = setting(
        0.1, "Most that evidence moves an item, of its own relevance.", ge=0, le=0.5
    )
    # Above 0.4 a success could lower an item: 0.4 is the worst first score plus one success.
    harm_score: float = setting(
        0.3, "Score below which an item does harm (decision 0016).", gt=0, le=0.4
    )
    harm_uses: int = setting(3, "Outcomes from which harm counts in full.", ge=1)
    harm_floor: Share = setting(0.1, "Share of its relevance that a harmful item keeps; 1 = off.")
    total_boost_cap: float = setting(1.5, "Over all boosts (decision 0002).", ge=1, le=4)
    quality_distance: Share = setting(0.8, "memory_bank distance factor.")
    quality_floor: Share = setting(0.2, "Least distance factor.")
    # Without a bound of its own a fact of quality 0.5 fills the cap over all boosts, and what the
    # graphs know of it could not count. 1.35 leaves room for one matched entity of quality 0.55:
    # 1.35 x 1.11 = 1.5. Our choice (decision record 0002).
    quality_cap: float = setting(
        1.35, "Most that quality and its distance factor boost together.", ge=1, le=4
    )
    entity_weight: Share = setting(0.2, "Boost per matched entity of the content graph, x quality.")
    entity_cap: float = setting(1.5, "Most that entities boost an item.", ge=1, le=4)
    effect_uses: int = setting(
        3, "Outcomes from which documents and actions count as measured.", ge=1
    )
    document_gain: Share = setting(0.15, "Boost of a book that always helped; 0 = off.")
    action_base: float = setting(
        0.7, "Factor of a tier whose memories never helped in a context.", gt=0, le=1
    )
    action_span: Share = setting(0.6, "What always helping adds to it; base 1 and span 0 = off.")
    solution_distance: Share = setting(0.5, "Distance factor of a known solution; 1 = off.")
    routing: bool = setting(True, "The routing graph deepens the tiers that it recommends.")
    recency_band: Share = setting(0.7, "Share of the best score within which newer goes first.")
    # Chosen by leave one set out over six sets of questions (decision 0006).
    latest_share: Share = setting(
        0.13, "Share of the question's words that a memory holds which speaks of it; 0 = off."
    )
    collapse_similarity: Share = setting(0.97, "Near-duplicate overlap.")
    rerank: RerankBlend = RerankBlend()
    confidence: ConfidenceModel = ConfidenceModel()


def parse_recipe(name: str, tree: Mapping[str, Any]) -> Recipe:
    return parsed(Recipe, f"Recipe {name}", {"name": name, **tree})


def parsed(kind: type[SectionT], what: str, tree: Mapping[str, Any]) -> SectionT:
    """From parsed YAML; ConfigError names the file and the field."""
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{what}: {field}: {first['msg']}.") from None


# Recipes with features switched off: `default-without-dense` is `default` without that retriever.
#
# The name is all that crosses HTTP, so a measurement asks for what it needs and no server is set up
# for it.

SEPARATOR = "-without-"


NO_ENCODER = EncoderWeights(hebrew=0.0, english=0.0, mixed=0.0, cross=0.0)


def _only(recipe: Recipe, dense: float) -> Recipe:
    """One retriever alone. Weighted fusion orders by it as any other fusion of one list would."""
    weights = DenseWeights(**dict.fromkeys(DenseWeights.model_fields, dense))
    alone = {
        "fusion": "weighted",
        "dense": weights,
        "encoder": NO_ENCODER,
        "identifier_weight": 0.0,
    }
    return recipe.model_copy(update=alone)


def _no_rerank(recipe: Recipe) -> Recipe:
    blend = recipe.rerank.model_copy(update={"original": 1.0, "cross_encoder": 0.0})
    return recipe.model_copy(update={"rerank": blend})


def _with(**values: object) -> Callable[[Recipe], Recipe]:
    return lambda recipe: recipe.model_copy(update=values)


# What a recipe is without each feature. A value here must leave no trace of the feature in the
# order of the hits; tests hold every row to that.
FEATURES: Mapping[str, Callable[[Recipe], Recipe]] = {
    "dense": lambda recipe: _only(recipe, 0.0),
    "sparse": lambda recipe: _only(recipe, 1.0),
    "encoder": _with(encoder=NO_ENCODER),
    "turns": _with(turns=TurnShares(**dict.fromkeys(TurnShares.model_fields, 0.0))),
    "length": _with(length_share=0.0),
    "expansions": _with(expansion_weight=0.0),
    "identifiers": _with(identifier_weight=0.0),
    "rerank": _no_rerank,
    "outcomes": _with(maturity=False),
    "graphs": _with(
        entity_weight=0.0,
        document_gain=0.0,
        action_base=1.0,
        action_span=0.0,
        solution_distance=1.0,
        routing=False,
    ),
    "routing": _with(routing=False),
    "quality": _with(quality_distance=0.0, quality_cap=1.0),
    "recency": _with(recency_band=1.0),
    "latest": _with(latest_share=0.0),
    "collapse": _with(collapse_similarity=1.0),
}


def ablated_name(recipe: str, features: Iterable[str]) -> str:
    """The name under which `find_recipe` knows `recipe` without `features`."""
    return "".join([recipe, *(f"{SEPARATOR}{feature}" for feature in features)])


def find_recipe(recipes: Mapping[str, Recipe], name: str) -> Recipe:
    """The recipe of this name; a configured one goes before a derived one.

    Raises InvalidInput: no such recipe, or a feature that cannot be switched off.
    """
    found = recipes.get(name)
    if found is not None:
        return found
    base, *features = name.split(SEPARATOR)
    found = recipes.get(base)
    if found is None:
        known = ", ".join(sorted(recipes))
        raise InvalidInput(f"No recipe {base!r}; use one of {known}.", code="unknown_recipe")
    for feature in features:
        if feature not in FEATURES:
            known = ", ".join(FEATURES)
            raise InvalidInput(
                f"No feature {feature!r} in recipe {name!r}; it can be without {known}.",
                code="unknown_recipe",
            )
        found = FEATURES[feature](found)
    return found.model_copy(update={"name": name})


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What turns text into terms, expansions and rankings; the same in every process.

    Attributes:
        langs: languages that the embedding model was made for; empty = anything.
        latest: words with which a question asks how a thing stands now.
    """

    analyser: Analyser
    expansions: Expansions
    recipes: dict[str, Recipe]
    langs: frozenset[str] = frozenset()
    latest: LatestWords = field(default_factory=LatestWords)
