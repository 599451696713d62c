"""The one table of errors."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import rayapp
from rayapp.api.errors import CODES, ERRORS, error_answer, error_body, error_table, status_of
from rayapp.core import errors as e

PACKAGE = Path(rayapp.__file__).parent
# Codes of the exceptions that reach a caller: not those of jobs, adapters and the command line.
LAYERS = (
    "admin",
    "api",
    "assistant",
    "bulk",
    "datagov",
    "graphs",
    "index",
    "inference",
    "learning",
    "memory",
    "search",
    "text",
    "wire",
)


def every_class(kind: type[e.RayappError] = e.RayappError) -> Iterator[type[e.RayappError]]:
    yield kind
    for sub in kind.__subclasses__():
        if sub.__module__ == e.__name__:
            yield from every_class(sub)


def literal_codes() -> set[str]:
    """Every `code="…"` of a call in the layers that answer requests."""
    return {
        keyword.value.value
        for layer in LAYERS
        for path in (PACKAGE / layer).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "code"
        and isinstance(keyword.value, ast.Constant)
        and isinstance(keyword.value.value, str)
    }


@pytest.mark.parametrize("kind", list(every_class()))
def test_every_class_has_its_own_row(kind: type[e.RayappError]) -> None:
    assert kind in ERRORS
    assert status_of(kind("x")) == ERRORS[kind].status


def test_every_code_is_documented() -> None:
    known = {kind.default_code for kind in every_class()} | CODES.keys()
    assert literal_codes() <= known
    assert all(f"`{code}`" in error_table() for code in known)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (e.InvalidInput("x"), 422),
        (e.InvalidInput("x", code="malformed_json"), 400),
        (e.TooLarge("x"), 413),
        (e.Unauthorized("x"), 401),
        (e.Forbidden("x"), 403),
        (e.NotFound("x"), 404),
        (e.DuplicateMemory("x"), 409),
        (e.Overloaded("x"), 429),
        (e.StoreDown("x"), 503),
        (e.DeadlineExceeded("x"), 504),
    ],
)
def test_status(error: e.RayappError, status: int) -> None:
    assert error_answer(error).status_code == status


@pytest.mark.parametrize(
    ("error", "wait"),
    [
        (e.StoreDown("x"), "1"),
        (e.StoreDown("x", retry_after_s=2.2), "3"),
        (e.RateLimited("x", retry_after_s=0.01), "1"),
        (e.NotFound("x"), None),
    ],
)
def test_retry_after_is_whole_seconds(error: e.RayappError, wait: str | None) -> None:
    assert error_answer(error).headers.get("Retry-After") == wait


def test_body_says_the_same_twice_and_survives_a_lone_surrogate() -> None:
    body = error_body(e.InvalidInput("bad \ud800", details={"field": "x"}))
    assert body["error"] == body["message"] == "bad \\ud800"
    assert error_answer(e.InvalidInput("bad \ud800")).status_code == 422
