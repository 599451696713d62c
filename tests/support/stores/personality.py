"""Personalities in process memory. It passes the contract suite of MongoDB's store."""

from dataclasses import replace
from datetime import datetime

from rayapp.assistant.personality.rules import MAX_TEMPLATES, Template, TemplateLibrary, refuse_full
from rayapp.assistant.ports import MAX_WINDOWS, OwnWindow
from rayapp.assistant.prompt.rules import windows_full
from rayapp.core.ids import SYSTEM_USER
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


class InMemoryWindowStore:
    """Implements `WindowStore`. `rows`: by (user, model)."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], OwnWindow] = {}

    async def windows(self, scope: ReadScope) -> list[OwnWindow]:
        users = (checked_user(scope.user_id), SYSTEM_USER)
        found = [row for (user, _), row in self.rows.items() if user in users]
        return sorted(found, key=lambda row: (row.everybody, row.model))

    async def put(self, scope: WriteScope, window: OwnWindow) -> None:
        user = _owner_of(scope, everybody=window.everybody)
        others = [key for key in self.rows if key[0] == user and key[1] != window.model]
        if len(others) >= MAX_WINDOWS:
            raise windows_full()
        self.rows[user, window.model] = replace(window, at=to_ms(window.at))

    async def delete(self, scope: WriteScope, model: str, *, everybody: bool) -> bool:
        key = (_owner_of(scope, everybody=everybody), model)
        return self.rows.pop(key, None) is not None


def _owner_of(scope: WriteScope, *, everybody: bool) -> str:
    return SYSTEM_USER if everybody else checked_user(scope.user_id)
