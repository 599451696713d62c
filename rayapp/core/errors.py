"""The one exception tree.

RayappError
├── ConfigError             settings that cannot work together, or an unknown key
├── InvalidInput            the caller sent something that breaks a rule
│   └── TooLarge            a body, text or batch above its limit
├── Unauthorized            no key, or a key that is not known
├── Forbidden               the key lacks the scope
├── NotFound                not there, or not yours
├── Conflict                the state does not allow it
│   ├── DuplicateMemory     an equal active item exists (details.memory_id)
│   ├── BankFull            no place in the memory bank; nothing was stored
│   ├── VersionConflict     the item changed since it was read
│   └── IdempotencyConflict the key was used with another body, or is in progress
├── RateLimited             too many requests from this key
├── Overloaded              a bounded queue is full
├── DeadlineExceeded        the time budget of the request is used up
├── BadVector               wrong size, NaN or zero norm: never stored
├── SchemaMismatch          the index was built for another model or analyser
└── DependencyDown          a server is away
    ├── StoreDown           MongoDB
    │   └── StoreFull       its disk has no room: nothing was stored
    ├── IndexDown           the vector index
    ├── EmbedderDown        the embedding backend
    ├── RerankerDown        the reranking backend
    ├── CacheDown           Redis
    ├── JobsDown            the cluster's job server
    └── ModelDown           the language model

Every class is picklable, because exceptions cross Ray handles.
"""

from functools import partial
from typing import Any, ClassVar


class RayappError(Exception):
    """Base of every error a user may see.

    Args:
        message: one sentence that says what to do.
        code: stable machine-readable name; defaults to the class's.
        details: plain JSON values.
        retry_after_s: seconds after which a retry makes sense, if one does.
    """

    default_code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        details: dict[str, Any] | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.details = details or {}
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[Any, ...]:
        again = partial(
            type(self), code=self.code, details=self.details, retry_after_s=self.retry_after_s
        )
        return again, (self.message,)


class ConfigError(RayappError):
    default_code = "config"


class InvalidInput(RayappError):
    default_code = "invalid_input"


class TooLarge(InvalidInput):
    default_code = "too_large"


class Unauthorized(RayappError):
    default_code = "unauthorized"


class Forbidden(RayappError):
    default_code = "forbidden"


class NotFound(RayappError):
    default_code = "not_found"


class Conflict(RayappError):
    default_code = "conflict"


class DuplicateMemory(Conflict):
    default_code = "duplicate_memory"


class BankFull(Conflict):
    default_code = "bank_full"


class VersionConflict(Conflict):
    default_code = "version_conflict"


class IdempotencyConflict(Conflict):
    default_code = "idempotency_conflict"


class RateLimited(RayappError):
    default_code = "rate_limited"
    retryable = True


class Overloaded(RayappError):
    default_code = "overloaded"
    retryable = True


class DeadlineExceeded(RayappError):
    default_code = "deadline_exceeded"
    retryable = True


class BadVector(RayappError):
    default_code = "bad_vector"


class SchemaMismatch(RayappError):
    default_code = "schema_mismatch"


class DependencyDown(RayappError):
    default_code = "dependency_down"
    retryable = True


class StoreDown(DependencyDown):
    default_code = "store_down"


class StoreFull(StoreDown):
    default_code = "disk_full"


class IndexDown(DependencyDown):
    default_code = "index_down"


class EmbedderDown(DependencyDown):
    default_code = "embedder_down"


class RerankerDown(DependencyDown):
    default_code = "reranker_down"


class CacheDown(DependencyDown):
    default_code = "cache_down"


class JobsDown(DependencyDown):
    default_code = "jobs_down"


class ModelDown(DependencyDown):
    default_code = "model_down"
