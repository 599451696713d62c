"""Personalities in process memory. It passes the contract suite of MongoDB's store."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from rayapp.assistant.personality.rules import MAX_TEMPLATES, Template, TemplateLibrary, refuse_full
from rayapp.memory.rules.filtering import checked_user
from rayapp.memory.scope import ReadScope, WriteScope
from tests.support.stores.rows import to_ms


class InMemoryPersonalityStore:
    """Implements `assistant.ports.PersonalityStore`."""

    def __init__(self) -> None:
        self._shelves: dict[str, TemplateLibrary] = {}

    async def library(self, scope: ReadScope) -> TemplateLibrary:
        return self._shelves.get(checked_user(scope.user_id), TemplateLibrary())

    async def put(self, scope: WriteScope, template: Template, *, activate: bool) -> bool:
        user_id = checked_user(scope.user_id)
        library = self._shelves.get(user_id, TemplateLibrary())
        old = library.templates.get(template.template_id)
        if old is None and len(library.templates) >= MAX_TEMPLATES:
            raise refuse_full()
        assert template.updated_at is not None, "a saved template has a time"
        at = to_ms(template.updated_at)
        first = old.created_at if old is not None and old.created_at is not None else at
        kept = replace(template, created_at=min(first, at), updated_at=at, preset=False)
        self._shelves[user_id] = TemplateLibrary(
            templates={**library.templates, kept.template_id: kept},
            active=kept.template_id if activate else library.active,
        )
        return old is not None

    async def activate(self, scope: WriteScope, template_id: str, at: datetime) -> None:
        to_ms(at)
        user_id = checked_user(scope.user_id)
        library = self._shelves.get(user_id, TemplateLibrary())
        self._shelves[user_id] = replace(library, active=template_id)

    async def delete(self, scope: WriteScope, template_id: str) -> bool:
        user_id = checked_user(scope.user_id)
        library = self._shelves.get(user_id, TemplateLibrary())
        if template_id not in library.templates or library.active == template_id:
            return False
        left = {key: one for key, one in library.templates.items() if key != template_id}
        self._shelves[user_id] = replace(library, templates=left)
        return True
