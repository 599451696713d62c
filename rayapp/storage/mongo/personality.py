"""What a user chose for assistants: personalities, and the windows of models.

Personalities are one row per user with its templates by id, so that every change is one update.
"""

from datetime import datetime
from typing import Any

from pymongo.errors import DuplicateKeyError

from rayapp.assistant.personality.rules import MAX_TEMPLATES, Template, TemplateLibrary, refuse_full
from rayapp.assistant.ports import MAX_WINDOWS, OwnWindow
from rayapp.assistant.prompt.rules import windows_full
from rayapp.core.ids import SYSTEM_USER
from rayapp.memory.rules.filtering import checked_user
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.storage.mongo.database import MongoDatabase, listed, upserted
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import MODEL_WINDOWS, PERSONALITY
from rayapp.storage.mongo.predicates import mine, own
from rayapp.storage.mongo.rows import from_row, may_lack, reader, to_row, utc

Document = dict[str, Any]
may_lack(Template)
# `kept` lists the ids: an upsert cannot count the fields of `templates`, but it can ask whether
# the last place of a list is free.
LAST_PLACE = f"kept.{MAX_TEMPLATES - 1}"


class MongoPersonalityStore:
    """Implements `assistant.ports.PersonalityStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._rows = database.collection(PERSONALITY)

    async def library(self, scope: ReadScope) -> TemplateLibrary:
        with translated():
            doc = await self._rows.find_one(mine(scope))
        if doc is None:
            return TemplateLibrary()
        stored = doc.get("templates") or {}
        found = {
            name: from_row(Template, row | {"template_id": name}) for name, row in stored.items()
        }
        return TemplateLibrary(templates=found, active=doc.get("active"))

    async def put(self, scope: WriteScope, template: Template, *, activate: bool) -> bool:
        place = f"templates.{template.template_id}"
        room = [{place: {"$exists": True}}, {LAST_PLACE: {"$exists": False}}]
        at = utc(template.updated_at)
        values: Document = {
            f"{place}.name": template.name,
            f"{place}.description": template.description,
            f"{place}.content": template.content,
            f"{place}.updated_at": at,
        }
        if activate:
            values |= {"active": template.template_id}
        update = {
            "$set": values,
            "$min": {f"{place}.created_at": at},
            "$addToSet": {"kept": template.template_id},
        }
        where = {**own(scope), "$or": room}
        try:
            with translated(passing=DuplicateKeyError):
                before = await upserted(
                    lambda: self._rows.find_one_and_update(where, update, {place: 1}, upsert=True)
                )
        except DuplicateKeyError:
            raise refuse_full() from None
        return template.template_id in ((before or {}).get("templates") or {})

    async def activate(self, scope: WriteScope, template_id: str, at: datetime) -> None:
        change = {"$set": {"active": template_id, "activated_at": utc(at)}}
        with translated():
            await self._rows.update_one(own(scope), change, upsert=True)

    async def delete(self, scope: WriteScope, template_id: str) -> bool:
        place = f"templates.{template_id}"
        where = {**own(scope), place: {"$exists": True}, "active": {"$ne": template_id}}
        with translated():
            done = await self._rows.update_one(
                where, {"$unset": {place: ""}, "$pull": {"kept": template_id}}
            )
        return done.modified_count == 1


class MongoWindowStore:
    """Implements `assistant.ports.WindowStore`."""

    def __init__(self, database: MongoDatabase) -> None:
        self._rows = database.collection(MODEL_WINDOWS)

    async def windows(self, scope: ReadScope) -> list[OwnWindow]:
        order, read = [("everybody", 1), ("model", 1)], reader(OwnWindow)
        users = {"$in": [checked_user(scope.user_id), SYSTEM_USER]}
        return await listed(self._rows, {"user_id": users}, read, sort=order)

    async def put(self, scope: WriteScope, window: OwnWindow) -> None:
        owner = _owner(scope, everybody=window.everybody)
        where = {**owner, "model": window.model}
        with translated():
            known = await self._rows.find_one(where, {"_id": 1})
            if known is None and await self._rows.count_documents(owner) >= MAX_WINDOWS:
                raise windows_full()
            await self._rows.update_one(where, {"$set": to_row(window)}, upsert=True)

    async def delete(self, scope: WriteScope, model: str, *, everybody: bool) -> bool:
        where = {**_owner(scope, everybody=everybody), "model": model}
        with translated():
            return (await self._rows.delete_one(where)).deleted_count > 0


def _owner(scope: WriteScope, *, everybody: bool) -> Document:
    return {"user_id": SYSTEM_USER} if everybody else own(scope)
