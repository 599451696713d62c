"""What tests of killed owners share."""

from collections.abc import Iterator

import pytest

from tests.support.mongo_server import MongoServer, running_mongo

# A dead owner's open transaction is in the way until the server ends it.
TRANSACTION_S = 2


@pytest.fixture(scope="module")
def mongo() -> Iterator[MongoServer]:
    with running_mongo(TRANSACTION_S) as server:
        yield server
