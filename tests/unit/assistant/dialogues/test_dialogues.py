"""Written dialogues: each passes, and fails when the feature that it is about is switched off."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from rayapp.assistant.commands import service as command_service
from rayapp.assistant.context import service as context_service
from rayapp.assistant.context.rules import prompt_block
from rayapp.assistant.conversations.reactions import Reactions
from rayapp.assistant.conversations.service import HooksService
from rayapp.assistant.extraction.executor import ExtractionExecutor
from rayapp.assistant.extraction.rules import facts
from rayapp.assistant.gating.rules import hints as hint_rules
from rayapp.assistant.history.unlearning import Unlearning
from rayapp.assistant.prompt import rules as prompt_rules
from rayapp.learning.tools import ToolVerdicts
from rayapp.search import service
from tests.support.stores.conversations import InMemoryConversationStore
from tests.unit.assistant.dialogues.stage import dialogues, played

ROWS = dialogues()
Off = Callable[[pytest.MonkeyPatch], Any]


def notes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(prompt_block, "note_of", lambda item, stable=False, outdated=False: "-")


def authority(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(prompt_block, "authority_of", lambda item: 0)


def supersession(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(facts, "replaced_by", lambda one, items, at: None)


def floor(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(service, "above_floor", lambda hits, floor, relevance, least: tuple(hits))


def updates(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(service, "newest_first", lambda hits, reorder: tuple(hits))


def feedback(patch: pytest.MonkeyPatch) -> None:
    async def unheard(*_: Any) -> str:
        return ""

    patch.setattr(Reactions, "judge", unheard)


def compression(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(prompt_rules, "_bullets", lambda earlier, room, side: ("", 0))


def regeneration(patch: pytest.MonkeyPatch) -> None:
    async def same(*_: Any) -> None:
        return None

    patch.setattr(HooksService, "_replaced", same)


def edit(patch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: Any) -> None:
        return None

    patch.setattr(HooksService, "_take_back", nothing)


def history(patch: pytest.MonkeyPatch) -> None:
    async def untold(*_: Any) -> str:
        return "off"

    patch.setattr(ExtractionExecutor, "_tell", untold)


def switch(patch: pytest.MonkeyPatch) -> None:
    async def stays(*_: Any) -> None:
        return None

    patch.setattr(InMemoryConversationStore, "activate", stays)


def deletion(patch: pytest.MonkeyPatch) -> None:
    async def kept(*_: Any) -> int:
        return 0

    patch.setattr(Unlearning, "conversation", kept)


def commands(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(command_service, "commands_of", lambda message: ())


def parts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(context_service, "parts_of", lambda message: ())


def hints(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(context_service, "hints_of", lambda message: ())


def pictures(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(hint_rules, "shows_image", lambda message: False)


def disclaimers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(context_service, "disclaimers_of", lambda question: ())


def tools(patch: pytest.MonkeyPatch) -> None:
    async def unlearned(*_: Any) -> None:
        return None

    patch.setattr(ToolVerdicts, "_record", unlearned)


# How each feature is switched off: nothing else of the service changes.
FEATURES: Mapping[str, Off] = {
    "notes": notes,
    "authority": authority,
    "supersession": supersession,
    "floor": floor,
    "updates": updates,
    "feedback": feedback,
    "compression": compression,
    "regeneration": regeneration,
    "edit": edit,
    "history": history,
    "switch": switch,
    "deletion": deletion,
    "commands": commands,
    "parts": parts,
    "hints": hints,
    "pictures": pictures,
    "disclaimers": disclaimers,
    "tools": tools,
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["name"]))
async def test_a_dialogue(row: dict[str, Any]) -> None:
    await played(row)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["name"]))
async def test_it_fails_without_its_feature(
    row: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    FEATURES[row["feature"]](monkeypatch)
    with pytest.raises(AssertionError):
        await played(row)


def test_names_are_unique_and_each_feature_is_played_in_both_languages() -> None:
    assert max(Counter(row["name"] for row in ROWS).values()) == 1
    played_in = {(row["feature"], row["lang"]) for row in ROWS}
    assert played_in == {(name, lang) for name in FEATURES for lang in ("en", "he")}
