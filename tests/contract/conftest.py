"""The MongoDB of these tests."""

from tests.support.mongo_fixtures import database, mongo, schema

__all__ = ["database", "mongo", "schema"]
