"""The stores of the data pages, in memory."""

from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

from rayapp.admin.ports import Housekeeping, LegacyBank
from rayapp.assistant.ports import PersonalityStore
from rayapp.memory.ports import UserRows
from tests.support.clock import FakeClock
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.documents import InMemoryBookStore
from tests.support.stores.graphs import InMemoryGraphStore
from tests.support.stores.housekeeping import InMemoryHousekeeping, InMemoryLegacyBank
from tests.support.stores.knowledge import InMemoryKnowledgeStore
from tests.support.stores.personality import InMemoryPersonalityStore
from tests.support.stores.stores import InMemoryReceiptStore
from tests.support.stores.user_rows import InMemoryUserRows

Sessions = MutableMapping[tuple[str, str], Any]
Exchanges = MutableMapping[tuple[str, str, str], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataStores:
    """Those of one implementation."""

    rows: UserRows
    housekeeping: Housekeeping
    legacy: LegacyBank
    personality: PersonalityStore


def data_stores(
    items: InMemoryMemoryStore,
    graphs: InMemoryGraphStore,
    receipts: InMemoryReceiptStore,
    sessions: Sessions | None = None,
    exchanges: Exchanges | None = None,
    books: InMemoryBookStore | None = None,
    *,
    turns: MutableMapping[Any, Any] | None = None,
    conversations: MutableMapping[Any, Any] | None = None,
    knowledge: InMemoryKnowledgeStore | None = None,
) -> DataStores:
    """`sessions`: rows by (user, conversation); `exchanges`: by (user, conversation, message)."""
    sessions = {} if sessions is None else sessions
    exchanges = {} if exchanges is None else exchanges
    turns = {} if turns is None else turns
    conversations = {} if conversations is None else conversations
    books = books or InMemoryBookStore(items, FakeClock())
    personality = InMemoryPersonalityStore()
    tables: dict[str, MutableMapping[Any, Any]] = {
        "memory_versions": items._versions,
        "receipts": receipts._receipts,
        "kg_nodes": graphs._rows.nodes,
        "kg_edges": graphs._rows.edges,
        "kg_routing": graphs._rows.routing,
        "kg_actions": graphs._rows.actions,
        "known_solutions": graphs._rows.solutions,
        "books": graphs._rows.documents,
        "documents": books.rows,
        "document_uploads": books.uploads,
        "personality": personality._shelves,
        "sessions": sessions,
        "exchanges": exchanges,
        "turns": turns,
        "api_keys": {},
    }
    return DataStores(
        rows=InMemoryUserRows(
            items,
            graphs,
            receipts,
            sessions,
            exchanges,
            books,
            (turns, conversations),
            (knowledge or InMemoryKnowledgeStore()).tables,
        ),
        housekeeping=InMemoryHousekeeping(items, tables, conversations),
        legacy=InMemoryLegacyBank(),
        personality=personality,
    )
