"""The error table covers the driver and never shows its text."""

import inspect
import pickle

import pytest
from bson.errors import InvalidDocument
from pymongo import errors as driver

from rayapp.core import errors
from rayapp.storage.mongo.errors import ERRORS, translate, translated

PUBLIC = [
    kind
    for name, kind in inspect.getmembers(driver, inspect.isclass)
    if not name.startswith("_") and issubclass(kind, Exception)
]


@pytest.mark.parametrize("kind", PUBLIC)
def test_every_public_driver_error_has_its_own_row(kind: type[Exception]) -> None:
    assert kind in ERRORS


def refused(code: int) -> driver.OperationFailure:
    return driver.OperationFailure("secret", code)


def labelled() -> driver.OperationFailure:
    return driver.OperationFailure("x", 1, {"errorLabels": ["TransientTransactionError"]})


def bulk(*codes: int, concern: bool = False) -> driver.BulkWriteError:
    return driver.BulkWriteError(
        {
            "writeErrors": [{"code": code} for code in codes],
            "writeConcernErrors": [{"code": 64}] if concern else [],
        }
    )


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (driver.AutoReconnect("secret"), errors.StoreDown),
        (driver.ServerSelectionTimeoutError("secret"), errors.StoreDown),
        (driver.NetworkTimeout("secret"), errors.StoreDown),
        (driver.NotPrimaryError("secret"), errors.StoreDown),
        (driver._OperationCancelled("secret"), errors.StoreDown),
        (driver.CursorNotFound("secret", 43), errors.StoreDown),
        (driver.WaitQueueTimeoutError("secret"), errors.Overloaded),
        (driver.ExecutionTimeout("secret", 50), errors.DeadlineExceeded),
        (driver.WTimeoutError("secret", 64), errors.DeadlineExceeded),
        (driver.InvalidURI("secret"), errors.ConfigError),
        (driver.DocumentTooLarge("secret"), errors.TooLarge),
        (InvalidDocument("secret"), errors.InvalidInput),
        (OverflowError("secret"), errors.InvalidInput),
        (UnicodeEncodeError("utf-8", "secret\ud800", 6, 7, "secret"), errors.InvalidInput),
        (driver.DuplicateKeyError("secret", 11000), errors.Conflict),
        (refused(239), errors.Conflict),
        (refused(246), errors.Conflict),
        (refused(18), errors.ConfigError),
        (refused(50), errors.DeadlineExceeded),
        (refused(11600), errors.StoreDown),
        (refused(112), errors.StoreDown),
        (refused(14031), errors.StoreFull),
        (driver.WriteError("secret", 14031), errors.StoreFull),
        (driver.WriteConcernError("secret", 14031), errors.StoreFull),
        (driver.WriteConcernError("secret", 91), errors.StoreDown),
        (
            driver.OperationFailure("you are over your space quota, using 512 MB", 8000),
            errors.StoreFull,
        ),
        (refused(8000), errors.ConfigError),
        (labelled(), errors.StoreDown),
        (bulk(112), errors.StoreDown),
        (bulk(concern=True), errors.StoreDown),
        (bulk(50), errors.DeadlineExceeded),
    ],
)
def test_translation(error: Exception, expected: type[errors.RayappError]) -> None:
    found = translate(error)
    assert type(found) is expected
    assert "secret" not in str(found)
    assert "secret" not in repr(found.details)
    assert type(pickle.loads(pickle.dumps(found))) is expected


def test_a_dependency_that_is_down_says_when_to_retry() -> None:
    assert (translate(driver.AutoReconnect()).retry_after_s or 0) > 0


def test_an_unknown_refusal_is_a_defect_with_its_code() -> None:
    found = translate(refused(9))
    assert type(found) is errors.RayappError
    assert (found.code, found.details["server_code"]) == ("store_refused", 9)


def test_a_duplicate_names_the_index() -> None:
    details = {"keyPattern": {"user_id": 1, "memory_id": 1}}
    found = translate(driver.DuplicateKeyError("x", 11000, details))
    assert found.details == {"index": "user_memory"}


def test_translated_hides_the_cause_and_lets_others_pass() -> None:
    with pytest.raises(errors.StoreDown) as caught, translated():
        raise driver.AutoReconnect("mongodb://user:pw@host")
    assert caught.value.__suppress_context__
    with pytest.raises(driver.DuplicateKeyError), translated(passing=driver.DuplicateKeyError):
        raise driver.DuplicateKeyError("x")
    with pytest.raises(KeyError), translated():
        raise KeyError("ours")
