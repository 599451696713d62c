"""Goals and values: short lists of the user inside the memory bank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from rayapp.api.call import Call
from rayapp.api.json_answer import answer
from rayapp.api.operation import Operation
from rayapp.api.routes.bank import BANK, done, kept
from rayapp.core.errors import BankFull, Conflict, NotFound, TooLarge
from rayapp.memory.item import MemoryItem
from rayapp.wire import answers as shapes
from rayapp.wire import client_answers as client
from rayapp.wire.bank import (
    BANK_ALIASES,
    GoalsAnswer,
    ListedBody,
    ListedQuery,
    ValuesAnswer,
)

_TAG = "memory bank"
_ID = "0192f1c8-7a2e-7c1b-9d57-3c2f6f0b8a11"
_LISTED_EXAMPLE = {
    "id": _ID,
    "text": "Run a half marathon; לרוץ חצי מרתון",
    "created_at": "2025-05-04T09:30:00Z",
    "importance": 0.8,
    "status": "active",
}


@dataclass(frozen=True, slots=True)
class BankList:
    """One list: `name` in the path and in the answer, `tag` on its facts."""

    name: str
    tag: str
    answer: type[BaseModel]

    async def page(self, call: Call) -> Response:
        query = call.query_as(ListedQuery)
        found = await call.services.bank.listed(call.reads, self.tag, query.limit)
        return answer(
            {
                "success": True,
                self.name: [_listed_view(item) for item in found.items],
                "total": found.total,
                "degraded": [],
            }
        )

    async def add(self, call: Call) -> Response:
        body = call.body_as(ListedBody, BANK_ALIASES)
        return kept(await call.services.bank.add(call.writes, body.new_memory(self.tag)))

    async def remove(self, call: Call) -> Response:
        memory_id = call.memory_id()
        await call.services.bank.unlist(call.writes, self.tag, memory_id)
        return done(memory_id, f"Removed from the {self.name}.")

    def operations(self) -> Sequence[Operation]:
        path = f"{BANK}/{self.name}"
        stored: dict[str, Any] = {
            "success": True,
            "id": _ID,
            "memory_id": _ID,
            "message": "Kept in the memory bank.",
            "duplicate": False,
            "archived": [],
            "degraded": [],
        }
        removed = {
            "success": True,
            "message": f"Removed from the {self.name}.",
            "memory_id": _ID,
            "degraded": [],
        }
        return (
            Operation(
                method="GET",
                path=path,
                tag=_TAG,
                summary=f"List the {self.name}",
                handler=self.page,
                query=ListedQuery,
                example_query={"limit": "100"},
                answer=self.answer,
                example={
                    "success": True,
                    self.name: [_LISTED_EXAMPLE],
                    "total": 1,
                    "degraded": [],
                },
            ),
            Operation(
                method="POST",
                path=path,
                tag=_TAG,
                summary=f"Add to the {self.name}",
                description=f"A fact of the memory bank with the tag `{self.tag}`; the same text "
                "again is a duplicate with the same id.",
                handler=self.add,
                body=ListedBody,
                example_body={"text": "Run a half marathon", "importance": 0.9},
                aliases=BANK_ALIASES,
                answer=client.BankStoreAnswer,
                example=stored,
                errors=(TooLarge, BankFull),
                writes=True,
            ),
            Operation(
                method="DELETE",
                path=f"{path}/{{memory_id}}",
                tag=_TAG,
                summary=f"Remove from the {self.name}",
                description="A fact with no other tag is archived, so it can be restored. "
                "Others only leave the list.",
                handler=self.remove,
                answer=shapes.DoneAnswer,
                example=removed,
                errors=(NotFound, Conflict),
                writes=True,
            ),
        )


def _listed_view(item: MemoryItem) -> dict[str, Any]:
    return {
        "id": item.memory_id,
        "text": item.text,
        "created_at": item.created_at,
        "importance": item.quality.importance,
        "status": item.status.value,
    }


LISTS = (BankList("goals", "goal", GoalsAnswer), BankList("values", "value", ValuesAnswer))
OPERATIONS = tuple(operation for one in LISTS for operation in one.operations())
