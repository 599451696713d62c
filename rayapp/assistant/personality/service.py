"""Who the assistant is for a user: shipped and own templates, and the prompt of the one in use."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from rayapp.assistant.personality import rules
from rayapp.assistant.ports import Personality, PersonalityStore, SavedPersonality
from rayapp.core.errors import Conflict, InvalidInput, NotFound
from rayapp.core.runtime import Clock
from rayapp.memory.scope import ReadScope, WriteScope


class PersonalityService:
    """Raises InvalidInput, code `bad_template`; NotFound, Conflict, StoreDown.

    It keeps nothing between two calls, so that a change holds for the next request, whichever
    replica answers it.
    """

    def __init__(
        self, store: PersonalityStore, presets: Mapping[str, rules.Template], *, clock: Clock
    ) -> None:
        self._store = store
        self._presets = presets
        self._clock = clock

    async def current(self, scope: ReadScope) -> Personality:
        """The one in use, `default` for a user who never chose."""
        template = rules.in_use(await self._store.library(scope), self._presets)
        try:
            return _personality(template)
        except InvalidInput as error:
            # Saved under older rules: the assistant goes on as the default one, and says why.
            default = _personality(self._presets[rules.DEFAULT_TEMPLATE])
            why = f"Your template {template.template_id} cannot be used: {error.message}"
            return replace(default, checked=replace(default.checked, warnings=(why,)))

    async def listed(self, scope: ReadScope) -> tuple[list[rules.Template], str]:
        """Presets, then the user's own; and the id of the one in use."""
        library = await self._store.library(scope)
        own = sorted(library.templates.values(), key=lambda one: one.template_id)
        return [*self._presets.values(), *own], rules.in_use(library, self._presets).template_id

    async def template(self, scope: ReadScope, template_id: str) -> rules.Template:
        return self._found(await self._store.library(scope), template_id)

    async def save(
        self,
        scope: WriteScope,
        content: str,
        *,
        name: str | None,
        description: str | None,
        activate: bool,
    ) -> SavedPersonality:
        """Keep a template under its name; a text equal to a preset's is that preset."""
        template = rules.check(content)
        preset = rules.same_preset(content, self._presets)
        if preset is not None:
            if activate:
                await self._store.activate(scope, preset.template_id, self._clock.now())
            return SavedPersonality(
                personality=_personality(preset), overwritten=False, activated=activate
            )
        made = self._named(template, content, name, description)
        overwritten = await self._store.put(scope, made, activate=activate)
        return SavedPersonality(
            personality=Personality(template=made, checked=template),
            overwritten=overwritten,
            activated=activate,
        )

    async def activate(self, scope: WriteScope, template_id: str) -> Personality:
        found = self._found(await self._store.library(ReadScope(scope.user_id)), template_id)
        personality = _personality(found)
        await self._store.activate(scope, found.template_id, self._clock.now())
        return personality

    async def delete(self, scope: WriteScope, template_id: str) -> None:
        """Conflict for a preset and for the one in use."""
        if template_id in self._presets:
            raise _preset(template_id, "delete a template of your own")
        library = await self._store.library(ReadScope(scope.user_id))
        found = self._found(library, template_id)
        if not await self._store.delete(scope, found.template_id):
            raise Conflict(
                f"The template {template_id} is in use; activate another one first.",
                code="template_in_use",
            )

    async def prompt(self, scope: ReadScope, lang: rules.PromptLang) -> tuple[Personality, str]:
        """The one in use, and the section of a system prompt that it becomes."""
        personality = await self.current(scope)
        return personality, rules.render(personality.checked, lang)

    def _found(self, library: rules.TemplateLibrary, template_id: str) -> rules.Template:
        found = self._presets.get(template_id) or library.templates.get(template_id)
        found = found or library.templates.get(rules.template_id_of(template_id))
        if found is None:
            raise NotFound("No such template; list /api/memory/personality/presets.")
        return found

    def _named(
        self, template: rules.Checked, content: str, name: str | None, description: str | None
    ) -> rules.Template:
        shown = rules.clean_name(name)
        if name is not None and not shown:
            raise InvalidInput(
                "The name of a template needs letters or digits.",
                code="bad_template",
                details={"field": "name"},
            )
        template_id = rules.template_id_of(shown)
        if template_id in self._presets:
            raise _preset(template_id, "save under another name")
        now = self._clock.now()
        return rules.Template(
            template_id=template_id,
            name=shown or template.name,
            description=" ".join((description or "").split()),
            content=content,
            created_at=now,
            updated_at=now,
        )


def _preset(template_id: str, instead: str) -> Conflict:
    return Conflict(f"{template_id} is a preset, which nobody changes; {instead}.", code="preset")


def _personality(template: rules.Template) -> Personality:
    return Personality(template=template, checked=_check(template.content))


# What a text says does not change, so this is no cache of what a user chose. About 3 MB when full.
_check = lru_cache(maxsize=128)(rules.check)
