"""What understands texts, and what is asked of what they say."""

from functools import lru_cache

from rayapp.container.bootstrap import Stores
from rayapp.container.shipped import heads_of, importance_params, signal_words
from rayapp.core.runtime import Runtime
from rayapp.core.settings.load import CONFIG_DIR
from rayapp.core.vectors import IndexSchema
from rayapp.inference.ports import Embedder, Encoder
from rayapp.memory.service import MemoriesService
from rayapp.search.rules.recipes import Texts
from rayapp.storage.files import load_derived_words, load_ontology, load_tables
from rayapp.understanding import merge_review, ontology_review
from rayapp.understanding.bulk import UnderstandWork
from rayapp.understanding.deciding import Deciding, SentenceKinds
from rayapp.understanding.derived.hints import HintsService
from rayapp.understanding.derived.reading import DerivedReview, DerivedService, ReviewService
from rayapp.understanding.derived.records import DerivedKind
from rayapp.understanding.derived.rules.choosing import QuestionReader
from rayapp.understanding.derived.rules.patterns import PatternReader
from rayapp.understanding.derived.rules.wording import Wording
from rayapp.understanding.derived.service import DerivedRules, DerivingService
from rayapp.understanding.derived.understanding import TextUnderstander
from rayapp.understanding.orphans import Orphans
from rayapp.understanding.ports import Understander
from rayapp.understanding.statements.growth import GrowthService
from rayapp.understanding.statements.knowledge import KnowledgeService
from rayapp.understanding.statements.merging import MergeService
from rayapp.understanding.statements.registries import Registries
from rayapp.understanding.statements.resolving import Resolver
from rayapp.understanding.statements.rules.reading import Reader
from rayapp.understanding.statements.rules.registry import Ontology
from rayapp.understanding.statements.service import StatementsService
from rayapp.understanding.statements.tidying import Tidying

TABLES = CONFIG_DIR / "understanding"


@lru_cache(maxsize=1)
def load_reader() -> Reader:
    """What reads statements out of texts; built once per process."""
    return Reader(load_tables(TABLES))


@lru_cache(maxsize=1)
def load_registry() -> Ontology:
    """Types and relations of the typed graph."""
    return load_ontology(TABLES / "ontology.yaml")


def deciding_service(
    stores: Stores,
    embedder: Embedder,
    encoder: Encoder | None,
    *,
    schema: IndexSchema,
    runtime: Runtime,
) -> Deciding:
    """How much memories matter; without the encoder by tables alone."""
    heads = None if encoder is None else heads_of(schema.encoder, schema.model)
    return Deciding(
        stores.understandings,
        stores.graphs,
        signal_words(),
        importance_params(),
        runtime=runtime,
        kinds=SentenceKinds(encoder, embedder, heads) if encoder and heads else None,
        states_fact=load_reader().states_fact,
    )


def registries_of(stores: Stores, runtime: Runtime) -> Registries:
    """The registry of each tenant."""
    return Registries(load_registry(), stores.registry, runtime.clock)


def growth_service(stores: Stores, registries: Registries, runtime: Runtime) -> GrowthService:
    """How these registries grow."""
    return GrowthService(
        registries, stores.registry, stores.knowledge, stores.understandings, runtime.clock
    )


def knowledge_service(
    stores: Stores, registries: Registries, texts: Texts, embedder: Embedder, runtime: Runtime
) -> KnowledgeService:
    """The typed graph as programs ask it."""
    return KnowledgeService(
        stores.knowledge,
        registries,
        load_reader().tables,
        texts.expansions,
        embedder,
        clock=runtime.clock,
    )


@lru_cache(maxsize=1)
def load_wording() -> Wording:
    """How what is derived is worded."""
    return Wording(load_derived_words(TABLES / "derived.yaml"), load_reader().tables)


@lru_cache(maxsize=1)
def load_derived_rules() -> DerivedRules:
    """What reads patterns and scenes; built once per process."""
    return DerivedRules(PatternReader(load_reader().tables), load_wording(), signal_words())


def derived_service(
    stores: Stores, memories: MemoriesService, deciding: Deciding, runtime: Runtime
) -> DerivedService:
    """Episodes and thoughts as programs ask for them."""
    return DerivedService(
        stores.derived, stores.knowledge, memories, deciding, load_reader().tables, runtime.clock
    )


def review_service(
    stores: Stores, merges: MergeService, growth: GrowthService, runtime: Runtime
) -> ReviewService:
    """What waits for a person, by kind."""
    kinds = (DerivedKind.THOUGHT, DerivedKind.EPISODE)
    derived = {kind.value: DerivedReview(kind, stores.derived, runtime.clock) for kind in kinds}
    return ReviewService(
        {
            **derived,
            merge_review.KIND: merge_review.MergeReview(merges),
            ontology_review.KIND: ontology_review.OntologyReview(growth),
        }
    )


def hints_service(stores: Stores, runtime: Runtime) -> HintsService:
    """What is known of somebody that helps with a question."""
    questions = QuestionReader(load_reader().tables)
    return HintsService(stores.derived, stores.knowledge, load_wording(), questions, runtime.clock)


def merge_service(stores: Stores, runtime: Runtime) -> MergeService:
    """Merges and splits of nodes."""
    return MergeService(stores.knowledge, load_registry(), runtime.clock)


def resolver_of(stores: Stores, runtime: Runtime) -> Resolver:
    """What looks for nodes that may be one."""
    merges = merge_service(stores, runtime)
    return Resolver(stores.knowledge, merges, load_registry(), runtime.clock)


def tidying(stores: Stores, growth: GrowthService, runtime: Runtime) -> Tidying:
    """What is done of a user when everything was understood."""
    return Tidying(stores.knowledge, resolver_of(stores, runtime), growth, load_registry())


def orphans_of(stores: Stores, runtime: Runtime) -> Orphans:
    """What finds rows whose memory is not there."""
    return Orphans(
        stores.knowledge, stores.derived, stores.items, stores.understandings, runtime.clock
    )


def understander(
    stores: Stores,
    registries: Registries,
    texts: Texts,
    embedder: Embedder,
    runtime: Runtime,
    *,
    resolver: Resolver | None,
    growth: GrowthService | None,
) -> Understander:
    """What derives from texts that passed the gate. Without `resolver` nobody looks, at new names,
    for who they may be; without `growth`, at labels that the registry lacks, whether enough texts
    needed them."""
    clock = runtime.clock
    statements = StatementsService(
        load_reader(), registries, texts.expansions, resolver, growth, clock=clock
    )
    deriving = DerivingService(stores.items, embedder, load_derived_rules(), clock)
    return TextUnderstander(stores.understood, statements, deriving)


def understand_work(
    stores: Stores,
    texts: Texts,
    embedder: Embedder,
    runtime: Runtime,
    *,
    user_id: str | None,
    again: bool,
) -> UnderstandWork:
    """The job that understands what is stored; the tables decide alone."""
    deciding = Deciding(
        stores.understandings,
        stores.graphs,
        signal_words(),
        importance_params(),
        runtime=runtime,
        states_fact=load_reader().states_fact,
    )
    registries = registries_of(stores, runtime)
    growth = growth_service(stores, registries, runtime)
    return UnderstandWork(
        stores.understandings,
        deciding,
        stores.items,
        understander(stores, registries, texts, embedder, runtime, resolver=None, growth=None),
        tidying(stores, growth, runtime),
        user_id=user_id,
        again=again,
        runtime=runtime,
    )
