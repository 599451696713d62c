"""How a call is written once and made by both clients; what `degraded` means, for people."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    overload,
)
from urllib.parse import quote, urlencode

import httpx
from pydantic import BaseModel

from rayapp.core.errors import InvalidInput, RayappError

SKIPPED = {
    "embedder": "the embedder is away, so words were compared but not meanings",
    "encoder": "the encoder is away or came too late, so words and the other vectors ranked alone",
    "encoder_backlog": "the encoder has not read all memories yet, so the others ranked those",
    "index": "the vector index is away, so MongoDB's own text search answered",
    "index_rebuilding": "the vector index is being filled again, so MongoDB's own text search "
    "answered",
    "index_refused": "the vector index was built for another model, so MongoDB's own text search "
    "answered until `rayapp job reindex` has run",
    "reranker": "the reranker is away, so the first ranking was kept",
    "priors": "the learned graphs came too late, so nothing was boosted by them",
    "pending": "memories that wait for the index came too late and were left out",
    "text": "MongoDB's text search came too late and was left out",
    "recent": "the newest memories came too late and were left out",
    "receipt": "the receipt could not be stored, so outcomes cannot name this answer",
    "insights": "the insights came too late and were left out",
    "hints": "what is known of the user came too late and was left out",
    "standing": "the facts that always hold came too late and were left out",
    "search": "the search came too late and was left out",
    "session": "what the assistant was shown could not be noted, so it may be learned again",
}


def explained(names: Iterable[str]) -> list[str]:
    """One sentence per skipped stage: its name, and what the answer does without."""
    return [
        f"degraded: {name}: {SKIPPED.get(name, 'a stage was skipped')}."
        for name in dict.fromkeys(names)
    ]


AnswerT = TypeVar("AnswerT", bound=BaseModel)
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request; `content` is a JSON body."""

    method: str
    path: str
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait before the next step."""

    seconds: float


Step: TypeAlias = Request | Pause
# What comes of a step: an answer, why there is none, or nothing (after a pause).
Came: TypeAlias = httpx.Response | httpx.RequestError | None
# A JSON object that is sent.
Json: TypeAlias = Mapping[str, Any] | None
Talk: TypeAlias = Generator[Step, Came, T]


class AsyncDriver(ABC):
    """Makes calls without blocking."""

    @abstractmethod
    async def _take(self, step: Step) -> Came:
        """Do what a call wants."""

    async def _drive(self, talk: Talk[T]) -> T:
        came: Came = None
        try:
            while True:
                came = await self._take(talk.send(came))
        except StopIteration as end:
            result: T = end.value
            return result
        except RayappError as error:  # without the steps in here: its sentence says what to do
            raise error.with_traceback(None) from None
        finally:
            talk.close()


class SyncDriver(ABC):
    """Makes calls in the thread of the caller."""

    @abstractmethod
    def _take(self, step: Step) -> Came:
        """Do what a call wants."""

    def _drive(self, talk: Talk[T]) -> T:
        came: Came = None
        try:
            while True:
                came = self._take(talk.send(came))
        except StopIteration as end:
            result: T = end.value
            return result
        except RayappError as error:  # without the steps in here: its sentence says what to do
            raise error.with_traceback(None) from None
        finally:
            talk.close()


class call(Generic[P, T]):  # a decorator
    """Makes a generator method a method of both clients: to be awaited on the async one."""

    def __init__(self, steps: Callable[Concatenate[Any, P], Talk[T]]) -> None:
        self._steps = steps
        self.__doc__ = steps.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: AsyncDriver, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, client: SyncDriver, owner: type) -> Callable[P, T]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        if client is None:
            return self
        steps = self._steps

        @functools.wraps(steps)
        def made(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client._drive(steps(client, *args, **kwargs))

        return made


class Reader(TypedDict, total=False):
    """Of a call that changes nothing: for whom, instead of the user of the client."""

    user_id: str | None


class Writer(Reader, total=False):
    """Of a write: for whom, and the key that makes a repeat of it safe."""

    idempotency_key: str | None


def given(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are set."""
    return {name: value for name, value in body.items() if value is not None}


def listed(names: Sequence[T]) -> list[T | str]:
    """Names to send. One alone is a text, whose letters are no names."""
    return [names] if isinstance(names, str) else list(names)


def at(base: str, *parts: str) -> str:
    """The path with these parts, quoted, below it."""
    return "/".join((base, *(quote(part, safe="") for part in parts)))


def asked(path: str, **fields: Any) -> str:
    """The path with the query fields that are set; sequences as repeated fields.

    A sequence without a member asks for nothing, which the service reads from an empty field.
    """
    pairs = [(name, _text(one)) for name, value in fields.items() for one in _each(value)]
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _each(value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    return (value or ("",)) if isinstance(value, (tuple, list)) else (value,)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_file(path: Path) -> bytes:
    """Raises InvalidInput: it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None


def check_name(name: str) -> None:
    """Raises InvalidInput: the name of a file is not UTF-8, as of an old archive or disk."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"The file name {name!a} is not UTF-8: rename the file.") from None


def form(
    path: str, name: str, data: bytes, fields: Mapping[str, str], headers: Mapping[str, str]
) -> Request:
    """A form with this file. Raises InvalidInput: its name cannot be sent."""
    check_name(name)
    made = httpx.Request("POST", "http://form", data=dict(fields), files={"file": (name, data)})
    kind = {"Content-Type": made.headers["Content-Type"]}
    return Request(method="POST", path=path, content=made.read(), headers={**headers, **kind})
