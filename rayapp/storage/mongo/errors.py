"""One table from driver errors to ours; the most specific class of an error decides."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bson import errors as bson_errors
from pymongo import errors as driver

from rayapp.core.errors import (
    ConfigError,
    Conflict,
    DeadlineExceeded,
    InvalidInput,
    Overloaded,
    RayappError,
    StoreDown,
    StoreFull,
    TooLarge,
)
from rayapp.storage.mongo.indexes import violated_index

# One server selection period (settings.mongo.server_selection_s): a new primary is elected or a
# restarted server found within it.
RETRY_AFTER_S = 2.0
# Somebody has to act first.
DISK_RETRY_AFTER_S = 30.0

# https://www.mongodb.com/docs/manual/reference/error-codes/
AUTH_CODES = frozenset({13, 18, 8000})
DUPLICATE_KEY = 11000
# The last: the transaction lived longer than the server lets one (transactionLifetimeLimitSeconds).
TIMEOUT_CODES = frozenset({50, 262, 290})
# Write conflicts, shutdown, step-down and network codes: the server says "again, later".
RETRY_CODES = frozenset(
    {6, 7, 63, 89, 91, 112, 189, 251, 9001, 10107, 11600, 11602, 13388, 13435, 13436}
)
# SnapshotTooOld, SnapshotUnavailable.
SNAPSHOT_CODES = frozenset({239, 246})
# OutOfDiskSpace; a hosted cluster says AtlasError and names the quota.
DISK_CODES = frozenset({14031})
QUOTA_TEXT = "space quota"
RETRY_LABELS = ("TransientTransactionError", "RetryableWriteError")

Translate = Callable[[Exception], RayappError]


def _said(
    kind: type[RayappError], message: str, *, retry_after_s: float | None = None, cause: bool = True
) -> Translate:
    """Every driver error as this one; `cause`: with the name of its class."""
    return lambda error: kind(
        message,
        details={"cause": type(error).__name__} if cause else None,
        retry_after_s=retry_after_s,
    )


_down = _said(
    StoreDown,
    "MongoDB does not answer: check that it runs and that MONGODB_URI is right, then retry.",
    retry_after_s=RETRY_AFTER_S,
)
_no_room = _said(
    StoreFull,
    "The disk of MongoDB is full: free space there or give it a larger one, then retry; "
    "nothing was stored.",
    retry_after_s=DISK_RETRY_AFTER_S,
)
_full = _said(
    Overloaded,
    "All MongoDB connections are busy: retry later, or raise mongo.pool_size.",
    retry_after_s=RETRY_AFTER_S,
    cause=False,
)
_late = _said(
    DeadlineExceeded,
    "MongoDB did not finish within the time limit: narrow the request or retry.",
    retry_after_s=RETRY_AFTER_S,
    cause=False,
)
_config = _said(
    ConfigError, "MongoDB refuses the connection settings: check MONGODB_URI, user and password."
)
_unfit = _said(
    InvalidInput,
    "A value cannot be stored: send valid Unicode text and numbers of at most 64 bits.",
)
_too_old = _said(
    Conflict,
    "MongoDB no longer keeps the moment that is read: export fewer kinds at a time, or raise "
    "minSnapshotHistoryWindowInSeconds there (300 s unless it is set).",
    cause=False,
)
_large = _said(
    TooLarge, "The item is larger than 16 MB: send less text or fewer source fields.", cause=False
)


def _defect(error: Exception) -> RayappError:
    code = getattr(error, "code", None)
    return RayappError(
        "MongoDB refused an operation: report this with the request id.",
        code="store_refused",
        details={"cause": type(error).__name__, "server_code": code},
    )


def _refused(error: Exception) -> RayappError:
    """OperationFailure and its kin: the server's code and labels say which kind it is."""
    code = getattr(error, "code", None)
    labelled = isinstance(error, driver.PyMongoError) and any(
        error.has_error_label(label) for label in RETRY_LABELS
    )
    if code in DISK_CODES or QUOTA_TEXT in str(error):
        return _no_room(error)
    if code in AUTH_CODES:
        return _config(error)
    if code in TIMEOUT_CODES or getattr(error, "timeout", False):
        return _late(error)
    if labelled or code in RETRY_CODES:
        return _down(error)
    # Behind the labels: a transaction that meets it is tried again.
    return _too_old(error) if code in SNAPSHOT_CODES else _defect(error)


def _concern(error: Exception) -> RayappError:
    return _no_room(error) if getattr(error, "code", None) in DISK_CODES else _down(error)


def _duplicate(error: Exception) -> RayappError:
    details = getattr(error, "details", None) or {}
    return Conflict(
        "The same row exists already: read it instead of adding it.",
        details={"index": violated_index(details)},
    )


def _bulk(error: Exception) -> RayappError:
    details = getattr(error, "details", None) or {}
    codes = {entry.get("code") for entry in details.get("writeErrors") or []}
    concerns = details.get("writeConcernErrors") or []
    if (codes | {entry.get("code") for entry in concerns}) & DISK_CODES:
        return _no_room(error)
    if concerns:
        return _down(error)
    if codes & RETRY_CODES:
        return _down(error)
    if codes == {DUPLICATE_KEY}:
        return _duplicate(error)
    return _late(error) if codes & TIMEOUT_CODES else _defect(error)


ERRORS: dict[type[Exception], Translate] = {
    driver.PyMongoError: _defect,
    driver.ProtocolError: _down,
    driver.ConnectionFailure: _down,
    driver.AutoReconnect: _down,
    driver.NetworkTimeout: _down,
    driver.NotPrimaryError: _down,
    driver.ServerSelectionTimeoutError: _down,
    driver.WaitQueueTimeoutError: _full,
    driver.ConfigurationError: _config,
    driver.InvalidURI: _config,
    driver.OperationFailure: _refused,
    driver.CursorNotFound: _down,
    driver.ExecutionTimeout: _late,
    driver.WriteConcernError: _concern,
    driver.WTimeoutError: _late,
    driver.WriteError: _refused,
    driver.DuplicateKeyError: _duplicate,
    driver.BulkWriteError: _bulk,
    driver.ClientBulkWriteException: _defect,
    driver.InvalidOperation: _defect,
    driver.InvalidName: _config,
    driver.CollectionInvalid: _defect,
    bson_errors.InvalidDocument: _unfit,
    driver.DocumentTooLarge: _large,
    driver.EncryptionError: _config,
    driver.EncryptedCollectionError: _config,
    bson_errors.BSONError: _unfit,
    OverflowError: _unfit,
    UnicodeEncodeError: _unfit,
}


def translate(error: Exception) -> RayappError:
    """Our error for a driver error."""
    for kind in type(error).__mro__:
        if kind in ERRORS:
            return ERRORS[kind](error)
    return _defect(error)


@contextmanager
def translated(*, passing: type[Exception] | tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn the driver's errors raised in the block into ours, but for those of `passing`.

    The cause is not chained: its text may hold the connection URI.
    """
    try:
        yield
    except passing:
        raise
    except (driver.PyMongoError, bson_errors.BSONError, OverflowError, UnicodeEncodeError) as error:
        raise translate(error) from None
