"""Client calls about what belongs to a user beside memories: personality, hidden items, removal."""

from __future__ import annotations

from rayapp.client.calls import Calls, Talk, asked, at, call, given
from rayapp.client.models import (
    Personality,
    Plain,
    Preset,
    PresetsReply,
    SavedTemplate,
)
from rayapp.wire.data import ClearAnswer, DataStatsAnswer, GhostDone, GhostsAnswer, GhostView

MEMORY = "/api/memory"
PERSONALITY = f"{MEMORY}/personality"
GHOST = f"{MEMORY}/ghost"


class PersonalityCalls(Calls):
    """The calls about how the assistant speaks."""

    @call
    def personality(self, *, user_id: str | None = None) -> Talk[Personality]:
        """The template in use."""
        return (yield from self.reading(Personality, PERSONALITY, user_id=user_id))

    @call
    def save_personality(
        self,
        content: str,
        *,
        name: str | None = None,
        description: str | None = None,
        activate: bool = True,
        user_id: str | None = None,
    ) -> Talk[SavedTemplate]:
        """Keep a template, YAML, and use it from the next request on. Raises InvalidInput."""
        body = {"content": content, "name": name, "description": description, "activate": activate}
        return (yield from self.writing(SavedTemplate, PERSONALITY, given(body), user_id=user_id))

    @call
    def use_personality(
        self, template_id: str, *, user_id: str | None = None
    ) -> Talk[SavedTemplate]:
        """Use a preset or a template of the user. Raises NotFound."""
        body = {"template_id": template_id}
        return (yield from self.writing(SavedTemplate, PERSONALITY, body, user_id=user_id))

    @call
    def delete_personality(self, template_id: str, *, user_id: str | None = None) -> Talk[str]:
        """Remove a template of the user; the active one cannot be removed. Raises Conflict."""
        path = asked(PERSONALITY, id=template_id)
        found = yield from self.writing(Plain, path, method="DELETE", user_id=user_id)
        return str(found.body["message"])

    @call
    def presets(self, *, user_id: str | None = None) -> Talk[tuple[Preset, ...]]:
        """The templates that can be chosen."""
        path = f"{PERSONALITY}/presets"
        return (yield from self.reading(PresetsReply, path, user_id=user_id)).presets

    @call
    def personality_prompt(self, lang: str = "en", *, user_id: str | None = None) -> Talk[str]:
        """The template in use as a text for a system message."""
        path = asked(f"{PERSONALITY}/prompt", lang=lang)
        return str((yield from self.reading(Plain, path, user_id=user_id)).body["prompt"])


class UserDataCalls(Calls):
    """The calls about hidden memories and removal."""

    @call
    def hide(
        self, memory_id: str, *, reason: str = "user_action", user_id: str | None = None
    ) -> Talk[str]:
        """Leave a memory out of everything until it is shown again. Raises NotFound."""
        body = {"memory_id": memory_id, "reason": reason}
        return (yield from self.writing(GhostDone, GHOST, body, user_id=user_id)).message

    @call
    def unhide(self, memory_id: str, *, user_id: str | None = None) -> Talk[str]:
        """Show a hidden memory again. Raises NotFound."""
        body = {"memory_id": memory_id}
        found = yield from self.writing(GhostDone, GHOST, body, method="DELETE", user_id=user_id)
        return found.message

    @call
    def hidden(
        self, *, limit: int | None = None, user_id: str | None = None
    ) -> Talk[tuple[GhostView, ...]]:
        """What is hidden, newest first."""
        path = asked(GHOST, limit=limit)
        return (yield from self.reading(GhostsAnswer, path, user_id=user_id)).memories

    @call
    def data_stats(self, *, user_id: str | None = None) -> Talk[DataStatsAnswer]:
        """How much there is of each kind."""
        return (yield from self.reading(DataStatsAnswer, "/api/data/stats", user_id=user_id))

    @call
    def clear_data(self, target: str, *, user_id: str | None = None) -> Talk[ClearAnswer]:
        """Remove all of one kind for good; call again while `remaining` is above 0."""
        path = at("/api/data/clear/{target}", target=target)
        return (yield from self.writing(ClearAnswer, path, user_id=user_id))
