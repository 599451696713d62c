"""The MongoDB implementation of `RegistryStore`. Its own rows carry the tenant; statements are
found by the owners of a tenant, whose ids begin with it."""

from collections.abc import Sequence
from typing import Any

from pymongo import DESCENDING
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from rayapp.core.ids import ORG_MARK, owners_of
from rayapp.core.scope import ReadScope
from rayapp.memory.ports import Event
from rayapp.storage.mongo.database import MongoDatabase, aggregated, first, listed
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.event_stream import event_document
from rayapp.storage.mongo.indexes import (
    EVENTS,
    GIVEN,
    KNOWN_ENTITIES,
    ONTOLOGY,
    RULINGS,
    STATEMENTS,
)
from rayapp.storage.mongo.predicates import mine
from rayapp.storage.mongo.rows import reader, to_row
from rayapp.understanding.statements.rules.additions import (
    RegistryVersion,
    Ruling,
    Witness,
    tenant_of,
)
from rayapp.understanding.statements.rules.registry import DETAIL

Document = dict[str, Any]
# Decisions of a tenant that are read at once.
MOST_RULINGS = 1_000
_version, _ruling = reader(RegistryVersion), reader(Ruling)
_HAS_LABEL: Document = {"label": {"$type": "string"}, "relation": {"$ne": DETAIL}}


class MongoRegistryStore:
    """Implements `RegistryStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._database = database
        self._versions = database.collection(ONTOLOGY)
        self._rulings = database.collection(RULINGS)
        self._statements = database.collection(STATEMENTS)
        self._given = database.collection(GIVEN)
        self._entities = database.collection(KNOWN_ENTITIES)

    async def version(self, tenant: str, number: int | None) -> RegistryVersion | None:
        where: Document = {"tenant": tenant}
        if number is not None:
            where["version"] = number
        return await first(self._versions, where, _version, sort=[("version", DESCENDING)])

    async def versions(self, tenant: str, limit: int) -> list[RegistryVersion]:
        order = [("version", DESCENDING)]
        return await listed(self._versions, {"tenant": tenant}, _version, sort=order, limit=limit)

    async def rulings(self, tenant: str) -> list[Ruling]:
        where, order = {"tenant": tenant}, [("at", DESCENDING)]
        return await listed(self._rulings, where, _ruling, sort=order, limit=MOST_RULINGS)

    async def rule(
        self, ruling: Ruling, version: RegistryVersion | None, told: Sequence[Event]
    ) -> bool:
        events = self._database.collection(EVENTS)
        which = {"tenant": ruling.tenant, "proposal_id": ruling.proposal_id}

        async def work(session: AsyncClientSession) -> None:
            if version is not None:
                await self._versions.insert_one(to_row(version), session=session)
            await self._rulings.replace_one(which, to_row(ruling), upsert=True, session=session)
            if told:
                await events.insert_many(map(event_document, told), session=session)

        try:
            await self._database.transaction(work, passing=DuplicateKeyError)
        except DuplicateKeyError:
            return False
        return True

    async def labels(self, scope: ReadScope) -> list[str]:
        steps = [{"$match": {**mine(scope), **_HAS_LABEL}}, {"$group": {"_id": "$label"}}]
        return sorted(row["_id"] for row in await aggregated(self._statements, steps))

    async def witnesses(self, tenant: str, labels: Sequence[str], limit: int) -> list[Witness]:
        if not labels or limit < 1:
            return []
        said = {"$in": list(labels), "$type": "string"}
        where = {**_of_tenant(tenant), **_HAS_LABEL, "label": said}
        joined = {
            "from": GIVEN,
            "let": {"user": "$user_id", "source": "$source_id"},
            "pipeline": [
                {
                    "$match": {
                        "$expr": {
                            "$and": [
                                {"$eq": ["$user_id", "$$user"]},
                                {"$eq": ["$source_id", "$$source"]},
                            ]
                        }
                    }
                },
                {"$project": {"conversation_id": 1}},
            ],
            "as": "given",
        }
        steps: list[Document] = [
            {"$match": where},
            {"$sort": {"confirmed_at": -1, "statement_id": 1}},
            {"$limit": limit},
            {"$lookup": joined},
        ]
        return [_witness(row) for row in await aggregated(self._statements, steps)]

    async def having(self, tenant: str, types: Sequence[str]) -> list[str]:
        where = {**_of_tenant(tenant), "type": {"$in": list(types)}}
        steps = [{"$match": where}, {"$group": {"_id": "$user_id"}}]
        return sorted(row["_id"] for row in await aggregated(self._entities, steps))

    async def is_alone(self, user_id: str) -> bool:
        others = {"$and": [_of_tenant(tenant_of(user_id)), {"user_id": {"$ne": user_id}}]}
        return await first(self._given, others, dict, projection={"_id": 1}) is None

    async def forget(self, tenant: str) -> int:
        gone = 0
        with translated():
            for rows in (self._versions, self._rulings):
                gone += (await rows.delete_many({"tenant": tenant})).deleted_count
        return gone


def _of_tenant(tenant: str) -> Document:
    if not tenant:
        return {"user_id": {"$not": {"$regex": ORG_MARK}}}
    since, until = owners_of(tenant)
    return {"user_id": {"$gte": since, "$lt": until}}


def _witness(row: Document) -> Witness:
    given = row["given"]
    return Witness(
        user_id=row["user_id"],
        source_id=row["source_id"],
        conversation_id=given[0]["conversation_id"] if given else None,
        fact_id=row["fact_id"],
        label=row["label"],
        has_value=row["value"] is not None,
        said_at=row["confirmed_at"],
    )
