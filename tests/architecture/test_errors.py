"""Exceptions cross Ray handles: every class survives pickling with all it carries."""

import pickle

import pytest

from rayapp.core import errors
from rayapp.core.errors import RayappError

CLASSES = [
    found
    for found in vars(errors).values()
    if isinstance(found, type) and issubclass(found, RayappError)
]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
def test_every_error_survives_pickling(cls: type[RayappError]) -> None:
    error = cls("Do this.", code="special", details={"a": [1]}, retry_after_s=2.5)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert (again.message, again.code, again.details, again.retry_after_s) == (
        "Do this.",
        "special",
        {"a": [1]},
        2.5,
    )


def test_the_picture_names_every_class() -> None:
    picture = errors.__doc__ or ""
    assert [cls.__name__ for cls in CLASSES if cls.__name__ not in picture] == []
