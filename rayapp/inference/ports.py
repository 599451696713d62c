"""The seams of models: embedders, rerankers, chat models, their questions, cache and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Literal, Protocol, TypeVar, get_args, runtime_checkable

from rayapp.core.runtime import BreakerOwner
from rayapp.core.scope import ReadScope
from rayapp.core.vectors import Vector
from rayapp.text.language import detect_language

T = TypeVar("T")

HelperName = Literal[
    "outcome_detection",
    "fact_extraction",
    "contextual_prefix",
    "profile_detection",
    "history_summary",
    "conversation_title",
    "merge_duplicates",
    "tool_result_summary",
    "answer_reading",
    "document_notes",
    "document_summary",
]
HELPERS: tuple[HelperName, ...] = get_args(HelperName)
PromptLanguage = Literal["he", "en"]
# off: no endpoint, or switched off. ledger: nobody knows what was spent; soon it is known again.
# broken: the endpoint fails or refuses. invalid: its answer is not what was asked for.
WhyNot = Literal["off", "budget", "ledger", "breaker", "timeout", "broken", "invalid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelQuestion(Generic[T]):
    """`variables`: exactly those that the prompt names. `answer`: str, or a pydantic model.

    timeout_s: of everything, a second try included; None = the setting of the helper.
    """

    helper: HelperName
    variables: Mapping[str, Any]
    answer: type[T]
    language: PromptLanguage
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReply(Generic[T]):
    """`why` is None exactly when there is a value. `detail` never holds a text of a user."""

    value: T | None = None
    why: WhyNot | None = None
    detail: str = ""
    tokens: int = 0

    @property
    def ok(self) -> bool:
        """True when the model answered."""
        return self.why is None


def prompt_language(text: str) -> PromptLanguage:
    """The language to ask in: Hebrew as soon as Hebrew has a real share in the text."""
    return "he" if detect_language(text) in ("he", "mixed") else "en"


TextKind = Literal["query", "passage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderInfo:
    backend: str
    model: str
    dims: int
    langs: tuple[str, ...] = ()


class Embedder(BreakerOwner, Protocol):
    async def info(self) -> EmbedderInfo: ...
    async def embed(
        self, texts: Sequence[str], kind: TextKind, *, timeout_s: float
    ) -> list[Vector]:
        """One float32 vector of `info().dims` per text, unit length. EmbedderDown, BadVector."""

    async def health(self) -> dict[str, Any]: ...


@dataclass(frozen=True, slots=True)
class TextVectors:
    """What one pass of the encoder gives of a text, unit length each.

    Attributes:
        search: nearness in meaning.
        heads: of an earlier layer, for linear heads that tell what kind of sentence it is.
    """

    search: Vector
    heads: Vector


class Encoder(BreakerOwner, Protocol):
    async def info(self) -> EmbedderInfo:
        """`dims` of each of its vectors."""

    async def read(
        self, texts: Sequence[str], kind: TextKind, *, timeout_s: float
    ) -> list[TextVectors]:
        """In the order of the texts. Raises as `Embedder.embed` does."""

    async def health(self) -> dict[str, Any]: ...


ModelT = TypeVar("ModelT", Embedder, Encoder)


@dataclass(frozen=True, slots=True)
class Opened(Generic[ModelT]):
    """An embedder or encoder with what it said of itself."""

    model: ModelT
    info: EmbedderInfo


async def opened(model: ModelT) -> Opened[ModelT]:
    """Ask it what it is. Raises as its `info`."""
    return Opened(model, await model.info())


class EmbeddingBackend(Protocol):
    """One model. `encode` may raise EmbedderDown; shapes are checked by the gateway."""

    async def info(self) -> EmbedderInfo: ...
    async def encode(self, texts: Sequence[str], kind: TextKind) -> list[Vector]: ...
    async def close(self) -> None: ...


class Reranker(BreakerOwner, Protocol):
    async def rerank(
        self, query: str, documents: Sequence[str], *, timeout_s: float
    ) -> list[float] | None:
        """Probabilities in document order, or None when no reranker is configured. RerankerDown."""

    async def health(self) -> dict[str, Any]: ...


class RerankBackend(Protocol):
    name: str

    async def logits(self, query: str, documents: Sequence[str]) -> list[float]:
        """Raw relevance scores in document order (the gateway applies the sigmoid)."""

    async def close(self) -> None: ...


@runtime_checkable
class InlineRerankBackend(RerankBackend, Protocol):
    """One whose work costs less than what hands it on: tasks, batches and limits of time."""

    def at_once(self, query: str, documents: Sequence[str]) -> list[float] | None:
        """As `logits`, now; None where that would hold up the event loop. RerankerDown."""


class Cache(Protocol):
    async def get_many(self, keys: Sequence[str]) -> list[bytes | None]: ...
    async def set_many(self, values: Mapping[str, bytes], ttl_s: int) -> None: ...
    async def ping(self) -> float: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """`json_schema` asks for JSON; an endpoint may ignore it."""

    messages: Sequence[Message]
    max_tokens: int
    temperature: float
    timeout_s: float
    json_schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatUsage:
    """What one answer cost. Tokens as the endpoint counts them, else estimated by length."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAnswer:
    """`finish`: what the endpoint says it ended for (`stop`, `length`, ...)."""

    text: str
    finish: str
    usage: ChatUsage
    model: str


class ChatModel(Protocol):
    """A chat model behind an OpenAI-compatible endpoint.

    Raises DependencyDown (away, broken, refuses), DeadlineExceeded (too slow), InvalidInput
    (the endpoint refuses this request).
    """

    @property
    def model(self) -> str: ...

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """One answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRow:
    """One call of a helper, for the ledger of a user. `cost`: in the currency of the settings.

    `ask_id`: the same for both tries of one question. `answered`: the model said something.
    `left`: whoever asked was gone before it could.
    """

    user_id: str
    helper: str
    model: str
    prompt_version: str
    at: datetime
    usage: ChatUsage = field(default_factory=ChatUsage)
    cost: float = 0.0
    ok: bool = True
    duration_ms: float = 0.0
    ask_id: str = ""
    answered: bool = True
    left: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTotal:
    """Sums over a time. `by_helper`: name of the helper -> (calls, tokens, cost)."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    by_helper: dict[str, tuple[int, int, float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CallSeen:
    """One call of a helper: `ok` when its answer could be used, `answered` when there was one,
    `left` when nobody waited for one."""

    helper: str
    ok: bool
    user_id: str = ""
    ask_id: str = ""
    answered: bool = True
    left: bool = False


class UsageStore(Protocol):
    """The ledger of model calls; rows live for 90 days."""

    async def add(self, row: UsageRow) -> None: ...
    async def total(self, scope: ReadScope, since: datetime) -> UsageTotal: ...
    async def recent(self, since: datetime, limit: int) -> list[CallSeen]:
        """The last calls of all processes and users since then, the newest first."""


Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation, as chat programs send it."""

    role: Role
    content: str


class ModelPort(Protocol):
    """The part of `ModelCalls` that is used here."""

    def enabled(self, helper: HelperName) -> bool: ...
    async def ask(self, user_id: str, question: ModelQuestion[T]) -> ModelReply[T]: ...
    async def close(self) -> None: ...
