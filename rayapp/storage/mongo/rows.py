"""Values as documents and back, by the types of their fields: a field is named in its class alone.

Of our own, because searches read rows: a memory takes 20 us, with cattrs 43 (our benchmark).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache, lru_cache
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from rayapp.core.errors import InvalidInput

Document = dict[str, Any]
T = TypeVar("T")
# What a field of this type is read as; rows have lists.
COLLECTIONS: dict[Any, Any] = {tuple: tuple, Sequence: tuple, frozenset: frozenset}
# None: the value stays as it is.
Step = Callable[[Any], Any] | None
# What rows may lack, by the dataclass: those of older versions, or where a field is not set yet.
_LACKING: dict[Any, frozenset[str]] = {}
# Dataclasses whose values many rows have alike.
_SHARED: set[type[Any]] = set()
# Different values that are remembered of them.
MOST_SHARED = 1 << 13


def may_lack(kind: type[Any], *names: str) -> None:
    """Rows without these fields are read, with the defaults of the value; without names, all that
    have one."""
    optional = {field.name for field in fields(kind) if not _is_required(field)}
    _LACKING[kind] = frozenset(names or optional)


def share(*kinds: type[Any]) -> None:
    """Equal values of these dataclasses, which nobody changes, are read as one object."""
    _SHARED.update(kinds)


def utc(at: datetime | None) -> datetime | None:
    """`at`, refused when it has no time zone: the driver would take local time for UTC."""
    if at is not None and at.tzinfo is None:
        raise InvalidInput("A time has no zone: send it with an offset, such as 2026-01-01T00:00Z.")
    return at


def to_row(value: Any) -> Document:
    """The document of a dataclass: members of enums as their values, tuples and sets as lists.

    Raises InvalidInput: a time without a zone.
    """
    kind: Any = type(value)
    row: Document = _writer(kind)(value)
    return row


def from_row(kind: type[T], row: Document) -> T:
    """The value; what the row holds beside it is left out.

    Raises KeyError, TypeError, ValueError, AttributeError: it cannot be read.
    """
    return reader(kind)(row)


def reader(kind: type[T]) -> Callable[[Document], T]:
    """What makes values of this dataclass from rows, as `from_row` does."""
    wanted: Any = kind
    return _reader(wanted)


def times_of(kind: type[Any]) -> tuple[str, ...]:
    """Names of the fields that hold times."""
    hints = get_type_hints(kind)
    times = (datetime, datetime | None)
    return tuple(field.name for field in fields(kind) if hints[field.name] in times)


@cache
def _reader(kind: Any) -> Callable[[Document], Any]:
    hints = get_type_hints(kind)
    steps = {field.name: _step(hints[field.name], reads=True) for field in fields(kind)}
    # Written out and compiled once, as dataclasses are: a loop over the fields costs 5 us more.
    known = {f"step_{name}": step for name, step in steps.items()}
    read = [
        f"{name}=row[{name!r}]" if step is None else f"{name}=step_{name}(row[{name!r}])"
        for name, step in steps.items()
    ]
    whole = eval(f"lambda row: kind({', '.join(read)})", {**known, "kind": kind})

    lacking = _LACKING.get(kind, frozenset())
    if not lacking:
        return whole  # type: ignore[no-any-return]

    def read_row(row: Document) -> Any:
        if row.keys() >= lacking:
            return whole(row)
        found = {name: step for name, step in steps.items() if name in row or name not in lacking}
        return kind(
            **{name: step(row[name]) if step else row[name] for name, step in found.items()}
        )

    return read_row


def _is_required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


@cache
def _writer(kind: Any) -> Callable[[Any], Document]:
    hints = get_type_hints(kind)
    steps = [(field.name, _step(hints[field.name], reads=False)) for field in fields(kind)]

    def write(value: Any) -> Document:
        return {name: _taken(step, getattr(value, name)) for name, step in steps}

    return write


def _step(kind: Any, *, reads: bool) -> Step:
    """From a value of this type to what the row holds; `reads`: the other way."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _unless_none(_step(_known(inner), reads=reads))
    if origin in COLLECTIONS:
        made, step = COLLECTIONS[origin] if reads else list, _step(inner[0], reads=reads)
        return made if step is None else lambda many: made(map(step, many))
    if origin is dict:
        return _by_key(_step(inner[0], reads=reads), _step(inner[1], reads=reads))
    if is_dataclass(kind) and isinstance(kind, type):
        inside: Any = kind
        if not reads:
            return _writer(inside)
        return _sharing(_reader(inside)) if kind in _SHARED else _reader(inside)
    if isinstance(kind, type) and issubclass(kind, Enum):
        # Looking a member up in a dict is several times faster than calling the enum.
        return {one.value: one for one in kind}.__getitem__ if reads else attrgetter("value")
    return utc if kind is datetime and not reads else None


def _sharing(read: Callable[[Document], Any]) -> Callable[[Document], Any]:
    def shared(row: Document) -> Any:
        value = read(row)
        try:
            return _one(value)
        except TypeError:  # it holds JSON, and is alike to no other
            return value

    return shared


@lru_cache(maxsize=MOST_SHARED)
def _one(value: Any) -> Any:
    return value


def _known(kinds: Iterable[Any]) -> Any:
    """The one kind of `X | None`."""
    (found,) = (one for one in kinds if one is not NoneType)
    return found


def _taken(step: Step, value: Any) -> Any:
    return value if step is None else step(value)


def _unless_none(step: Step) -> Step:
    return None if step is None else lambda value: None if value is None else step(value)


def _by_key(key: Step, value: Step) -> Step:
    if key is None and value is None:
        return None
    return lambda rows: {_taken(key, name): _taken(value, one) for name, one in rows.items()}
