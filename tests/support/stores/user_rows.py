"""Rows of one user as a whole, in process memory. It passes the contract suite of MongoDB's."""

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from rayapp.memory.item import MemoryItem, Status
from rayapp.memory.requests import RowCounts
from rayapp.memory.rules.filtering import checked_user, matches
from rayapp.memory.rules.hiding import hidden_reason
from rayapp.memory.rules.revision import said_elsewhere
from rayapp.memory.scope import ItemFilter, ReadScope, WriteScope
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.documents import InMemoryBookStore
from tests.support.stores.graphs import InMemoryGraphStore
from tests.support.stores.knowledge import KnowledgeTables
from tests.support.stores.stores import InMemoryReceiptStore


class InMemoryUserRows:
    """Implements `memory.ports.UserRows`. `sessions`: rows by (user, conversation);
    `exchanges`: by (user, conversation, message); `kept`: turns, and conversations."""

    def __init__(
        self,
        items: InMemoryMemoryStore,
        graphs: InMemoryGraphStore,
        receipts: InMemoryReceiptStore,
        sessions: MutableMapping[tuple[str, str], Any],
        exchanges: MutableMapping[tuple[str, str, str], Any],
        books: InMemoryBookStore,
        kept: tuple[MutableMapping[Any, Any], MutableMapping[Any, Any]],
        known: KnowledgeTables,
    ) -> None:
        self._store = items
        self._items = items._rows
        self._graphs = graphs._rows
        self._receipts = receipts._receipts
        self._sessions = sessions
        self._exchanges = exchanges
        self._books = books
        self._turns, self._conversations = kept
        self._known = known

    async def hidden(self, scope: ReadScope, limit: int) -> list[MemoryItem]:
        found = [
            item
            for item in self._store.living(scope.user_id)
            if item.attached_to is None and hidden_reason(item) is not None
        ]
        found.sort(key=lambda item: (item.archived_at, item.point_id), reverse=True)
        return found[: max(0, limit)]

    async def count_hidden(self, scope: ReadScope) -> int:
        return len(await self.hidden(scope, len(self._store.living(scope.user_id))))

    async def counts(self, scope: ReadScope) -> RowCounts:
        user_id = checked_user(scope.user_id)
        return RowCounts(
            sessions=_count(self._sessions, user_id),
            nodes=_count(self._graphs.nodes, user_id),
            edges=_count(self._graphs.edges, user_id),
            learned=sum(
                _count(rows, user_id)
                for rows in (self._graphs.routing, self._graphs.actions, self._graphs.solutions)
            ),
        )

    async def delete_page(
        self, scope: WriteScope, where: ItemFilter, limit: int, at: datetime
    ) -> int:
        return self._delete(scope, limit, at, lambda item: matches(item, where))

    async def leave_conversation(self, scope: WriteScope, conversation_id: str) -> None:
        for item in self._store.living(scope.user_id):
            also = tuple(one for one in item.source.also if one != conversation_id)
            item = replace(item, source=replace(item.source, also=also))
            if item.source.conversation_id == conversation_id and also:
                item = replace(said_elsewhere(item, item.updated_at), version=item.version + 1)
            self._items[item.point_id].item = item

    async def delete_of_conversation(
        self, scope: WriteScope, conversation_id: str, limit: int, at: datetime
    ) -> int:
        return self._delete(
            scope, limit, at, lambda item: item.source.conversation_id == conversation_id
        )

    async def merged_into(self, scope: ReadScope, memory_ids: Sequence[str]) -> list[MemoryItem]:
        living = self._store.living(scope.user_id)
        return [item for item in living if item.merged_into in set(memory_ids)]

    def _delete(
        self, scope: WriteScope, limit: int, at: datetime, wanted: Callable[[MemoryItem], bool]
    ) -> int:
        before = self._store.living(scope.user_id)
        page = [item for item in before if wanted(item)]
        for item in page[: max(0, limit)]:
            if self._items[item.point_id].item.status is Status.DELETED:
                continue  # it went with its winner
            self._store.delete_merged(self._store.delete(item, at))
        return len(before) - len(self._store.living(scope.user_id))

    async def clear_sessions(self, scope: WriteScope) -> int:
        user_id = checked_user(scope.user_id)
        for receipt in list(self._receipts.values()):
            if receipt.user_id == user_id:
                del self._receipts[receipt.receipt_id]
        _clear(self._exchanges, user_id)
        _clear(self._turns, user_id)
        _clear(self._conversations, user_id)
        return _clear(self._sessions, user_id)

    async def clear_graph(self, scope: WriteScope) -> int:
        user_id, graphs = checked_user(scope.user_id), self._graphs
        for row in self._store.rows_of(user_id):
            row.contributed = None
        kinds: tuple[MutableMapping[Any, Any], ...] = (
            graphs.routing,
            graphs.actions,
            graphs.solutions,
            graphs.edges,
            graphs.nodes,
            self._known.merges,
            self._known.statements,
            self._known.entities,
            self._known.given,
        )
        return sum(_clear(rows, user_id) for rows in kinds)

    async def clear_documents(self, scope: WriteScope) -> int:
        user_id = checked_user(scope.user_id)
        _clear(self._books.uploads, user_id)
        _clear(self._graphs.documents, user_id)
        return _clear(self._books.rows, user_id)


def _count(rows: MutableMapping[Any, Any], user_id: str) -> int:
    return sum(key[0] == user_id for key in rows)


def _clear(rows: MutableMapping[Any, Any], user_id: str) -> int:
    keys = [key for key in rows if key[0] == user_id]
    for key in keys:
        del rows[key]
    return len(keys)
