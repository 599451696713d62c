"""All rows of a user in process memory. It passes the contract suite of MongoDB's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

from bson import BSON

from rayapp.assistant.extraction.rules.facts import LearnedExchange
from rayapp.assistant.history.rules import turn_terms
from rayapp.assistant.personality.rules import Template, TemplateLibrary
from rayapp.assistant.ports import Conversation, KeptTurn, PersonalityStore, Session
from rayapp.core.ids import org_of
from rayapp.core.runtime import Clock
from rayapp.documents.ports import Book
from rayapp.graphs.records import Contribution
from rayapp.graphs.rules.content import Refused
from rayapp.learning.records import OutcomeEvent
from rayapp.learning.rules.verdicts import counts
from rayapp.memory.item import ChangeType, IndexOp, IndexState, MemoryItem, Status, point_id_of
from rayapp.memory.rules.creation import open_scope
from rayapp.memory.rules.filtering import checked_user
from rayapp.memory.rules.lifecycle import ANOTHER_PERIOD, as_periods
from rayapp.memory.rules.revision import replaced_state, requeued, revised, revived, touch
from rayapp.memory.scope import ReadScope, WriteScope
from rayapp.memory.tiers import FOLLOWED_TIERS, Tier
from rayapp.portability.ports import ALL_ROWS, ImportState, PutCounts, Putting, RowsSize, RowsWanted
from rayapp.portability.rules.archive import RENEWED, Row
from rayapp.portability.rules.collections import (
    BY_NAME,
    EXPORTED,
    ITEMS,
    PARTS,
    Collection,
    Erasing,
    names_of,
    of_user,
)
from rayapp.portability.rules.kinds import Part
from rayapp.storage.mongo import convert, graph_convert, outcome_convert
from rayapp.storage.mongo.rows import from_row, to_row
from tests.support.clock import FakeClock
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores import rows as item_rows
from tests.support.stores.conversations import InMemoryConversationStore
from tests.support.stores.derived import InMemoryDerivedStore
from tests.support.stores.documents import InMemoryBookStore
from tests.support.stores.documents import _Row as BookRow
from tests.support.stores.exchanges import InMemoryExchangeQueue
from tests.support.stores.exchanges import _Kept as KeptExchange
from tests.support.stores.graphs import InMemoryGraphStore
from tests.support.stores.knowledge import InMemoryKnowledgeStore
from tests.support.stores.outcomes import EventRow, InMemoryOutcomeStore
from tests.support.stores.personality import InMemoryWindowStore
from tests.support.stores.stores import InMemoryEventStore, InMemoryReceiptStore

Rows = MutableMapping[Any, Any]


@dataclass(frozen=True, slots=True)
class Table:
    """One collection: its rows, whose each is, and both ways between a row and a document."""

    rows: Rows
    owner: Callable[[Any, Any], str]
    to_doc: Callable[[Any, Any], Row]
    of_doc: Callable[[str, Row, Putting], tuple[Any, Any]]


def _first_of_key(key: Any, row: Any) -> str:
    return str(key[0])


def _own_user(key: Any, row: Any) -> str:
    return str(row.user_id)


def _graph(name: str, rows: Rows, read: Callable[[Row], Any], grown: str = "") -> Table:
    """Documents keep lists in the order in which they grew."""
    keys = BY_NAME[name].key

    def to_doc(key: Any, row: Any) -> Row:
        doc = to_row(row)
        return doc | {grown: doc[grown][::-1]} if grown else doc

    def of_doc(user_id: str, doc: Row, how: Putting) -> tuple[Any, Any]:
        return (user_id, *(doc[one] or "" for one in keys if one != "relation")), read(doc)

    return Table(rows, _first_of_key, to_doc, of_doc)


class InMemoryUserArchive:
    """Implements `portability.ports.UserArchive` over the rows of the other stores."""

    def __init__(
        self,
        items: InMemoryMemoryStore,
        graphs: InMemoryGraphStore,
        receipts: InMemoryReceiptStore,
        outcomes: InMemoryOutcomeStore,
        events: InMemoryEventStore,
        sessions: MutableMapping[tuple[str, str], Session],
        exchanges: InMemoryExchangeQueue,
        books: InMemoryBookStore,
        personality: PersonalityStore,
        clock: Clock | None = None,
        knowledge: InMemoryKnowledgeStore | None = None,
        derived: InMemoryDerivedStore | None = None,
    ) -> None:
        self._items = items
        self._graphs = graphs
        self._clock = clock or FakeClock()
        self._kept: Rows = {}
        self._states: dict[tuple[str, str], ImportState] = {}
        held = graphs._rows
        known = (knowledge or InMemoryKnowledgeStore()).tables
        in_graphs: tuple[tuple[str, Rows, Callable[[Row], Any], str], ...] = (
            ("kg_nodes", held.nodes, graph_convert.content_node, "memory_ids"),
            ("kg_edges", held.edges, graph_convert.content_edge, ""),
            ("kg_routing", held.routing, graph_convert.routing_row, "examples"),
            ("kg_actions", held.actions, graph_convert.action_row, "examples"),
            ("known_solutions", held.solutions, graph_convert.known_solution, ""),
            ("books", held.documents, graph_convert.document_effect, ""),
        )
        self._tables: dict[str, Table] = {
            **{one[0]: _graph(*one) for one in in_graphs},
            "kg_given": _keyed("kg_given", known.given),
            "kg_entities": _keyed("kg_entities", known.entities),
            "kg_statements": _keyed("kg_statements", known.statements),
            "derived": _keyed("derived", (derived or InMemoryDerivedStore()).rows),
            "kg_merges": _keyed("kg_merges", known.merges),
            "memory_versions": _keyed("memory_versions", _Versions(items._versions), _version_doc),
            "memory_outcomes": Table(outcomes._events, _first_of_key, _outcome_doc, _outcome_of),
            "documents": Table(books.rows, _first_of_key, _book_doc, _book_of),
            "document_uploads": Table(books.uploads, _first_of_key, _upload_doc, _upload_of),
            "sessions": _keyed("sessions", sessions),
            "exchanges": Table(exchanges._rows, _first_of_key, _exchange_doc, _exchange_of),
            "personality": Table(
                personality._shelves,  # type: ignore[attr-defined]
                lambda key, row: str(key),
                _library_doc,
                _library_of,
            ),
            "memory_deletions": Table(
                items._deletions, _first_of_key, _deletions_doc, _deletions_of
            ),
            "events": Table(events._events, _own_user, _plain_doc, _by_id("events")),
            "receipts": Table(receipts._receipts, _own_user, _plain_doc, _by_id("receipts")),
            "imports": Table(self._states, _first_of_key, _plain_doc, _never),
        }

    def also(self, name: str, rows: Rows, to_doc: Callable[[Any, Any], Row] | None = None) -> None:
        """Another collection, whose keys begin with the user; it is not exported."""
        self._tables[name] = Table(rows, _first_of_key, to_doc or _plain_doc, _never)

    def keeping(
        self, conversations: InMemoryConversationStore, windows: InMemoryWindowStore
    ) -> None:
        """The kept conversations, whose rows are those of sessions, and the windows of models."""
        kept, table = conversations._rows, self._tables["sessions"]
        sessions = table.rows
        self._kept = kept

        def to_doc(key: Any, row: Session) -> Row:
            found = to_row(kept[key]) if key in kept else {}
            # Turns are counted in the session: the conversation here has no number of its own.
            found.pop("exchanges", None)
            return to_row(row) | {name: one for name, one in found.items() if one is not None}

        def of_doc(user_id: str, doc: Row, how: Putting) -> tuple[Any, Any]:
            key, row = table.of_doc(user_id, doc, how)
            if "last_at" in doc and not how.dry_run:
                new = from_row(Conversation, {**doc, "user_id": user_id})
                old = kept.setdefault(key, new)
                if key in sessions and (old is new or old.last_at < new.last_at):
                    kept[key] = replace(old, last_at=new.last_at)
                    here = sessions[key]
                    known = row if old is new else here
                    grown = max(here.exchanges, row.exchanges)
                    sessions[key] = replace(known, **_set_in(here) | {"exchanges": grown})
            return key, row

        self._tables["sessions"] = Table(sessions, _first_of_key, to_doc, of_doc)
        self._tables["turns"] = _keyed("turns", conversations.words, _turn_doc)
        self._tables["model_windows"] = _keyed("model_windows", windows.rows)

    @asynccontextmanager
    async def snapshot(self, scope: ReadScope) -> AsyncIterator[_Reader]:
        user_id = checked_user(scope.user_id)
        yield _Reader({one.name: self._docs(user_id, one) for one in EXPORTED})

    async def sizes(self, scope: ReadScope, wanted: RowsWanted) -> dict[str, RowsSize]:
        user_id = checked_user(scope.user_id)
        found: dict[str, RowsSize] = {}
        for one in EXPORTED:
            docs = [doc for doc in self._docs(user_id, one) if _is_wanted(one, doc, wanted)]
            found[one.name] = RowsSize(len(docs), sum(len(BSON.encode(doc)) for doc in docs))
        return found

    async def put(
        self, scope: WriteScope, collection: Collection, rows: Sequence[Row], how: Putting
    ) -> PutCounts:
        user_id, counts = checked_user(scope.user_id), PutCounts()
        if collection.name == ITEMS:
            # Those that are there first: their newer state may give a text free.
            for row in sorted(rows, key=lambda row: not self._is_there(user_id, row)):
                counts += self._put_item(user_id, row, how)
            return counts
        for row in rows:
            table = self._tables[collection.name]
            key, value = table.of_doc(user_id, row, how)
            present = key in table.rows
            counts += PutCounts(present=1) if present else PutCounts(added=1)
            if not present and not how.dry_run:
                table.rows[key] = value
        return counts

    async def clear(
        self, scope: WriteScope, collection: Collection, limit: int, wanted: RowsWanted = ALL_ROWS
    ) -> int:
        user_id = checked_user(scope.user_id)
        if collection.erasing is not Erasing.MEMORIES:
            if collection.name == "kg_nodes":
                for place in self._items.rows_of(user_id):
                    place.contributed = None
            table = self._tables.get(collection.name)
            rows: Rows = {} if table is None else table.rows
            gone = [] if table is None else self._of(user_id, table)
            for key in gone:
                del rows[key]
                if collection.name == "sessions":
                    self._kept.pop(key, None)
            return len(gone)
        living = self._items.living(user_id)
        page = [one for one in living if _is_wanted(collection, to_row(one), wanted)][:limit]
        winners = {item.memory_id for item in page}
        page += [one for one in living if one.merged_into in winners and one not in page]
        for item in page:
            self._items.delete(item, self._clock.now())
        return len(page)

    async def left_of(self, scope: ReadScope, part: Part, part_id: str) -> dict[str, int]:
        user_id, found = checked_user(scope.user_id), {}
        for name, path in PARTS[part].items():
            if name == ITEMS:
                docs = [self._item_doc(row) for row in self._items.rows_of(user_id)]
            else:
                table = self._tables[name]
                docs = [table.to_doc(key, table.rows[key]) for key in self._of(user_id, table)]
            found[name] = sum(
                not set(_at(doc, path)).isdisjoint(names_of(part, part_id)) for doc in docs
            )
        return found

    async def left(self, scope: ReadScope) -> dict[str, int]:
        user_id = checked_user(scope.user_id)
        found = {ITEMS: len(self._items.rows_of(user_id))}
        for one in of_user(*Erasing):
            if one.name in self._tables:
                found[one.name] = len(self._of(user_id, self._tables[one.name]))
            else:
                found.setdefault(one.name, 0)
        return found

    async def owners(self, org_id: str) -> dict[str, int]:
        rows = [row.item for row in self._items._rows.values()]
        names = {item.user_id for item in rows}
        for table in self._tables.values():
            names |= {table.owner(key, row) for key, row in table.rows.items()}
        return {
            name: sum(one.user_id == name and one.status is not Status.DELETED for one in rows)
            for name in names
            if org_of(name) == org_id
        }

    async def last_state(self, scope: ReadScope) -> ImportState | None:
        mine = [one for (user, _), one in self._states.items() if user == scope.user_id]
        return mine[-1] if mine else None

    async def keep_state(self, scope: WriteScope, state: ImportState) -> None:
        key = checked_user(scope.user_id), state.archive
        self._states.pop(key, None)  # the last one is at the end
        self._states[key] = state

    # --- inside

    def _of(self, user_id: str, table: Table) -> list[Any]:
        return [key for key, row in table.rows.items() if table.owner(key, row) == user_id]

    def _docs(self, user_id: str, collection: Collection) -> list[Row]:
        left_out = {*RENEWED, *collection.renewed}
        if collection.name == ITEMS:
            rows = self._items.rows_of(user_id)
            docs = [self._item_doc(row) for row in rows if row.item.status is not Status.DELETED]
        else:
            table = self._tables[collection.name]
            docs = [table.to_doc(key, table.rows[key]) for key in self._of(user_id, table)]
        return [{name: doc[name] for name in doc if name not in left_out} for doc in docs]

    def _item_doc(self, row: item_rows.Row) -> Row:
        refused = self._graphs._refused.get(row.item.point_id, Refused())
        contributed = row.contributed or Contribution()
        return convert.to_document(row.item) | {
            "follow_up_at": row.follow_up_at,
            "contribution": graph_convert.contribution_document(contributed, refused),
        }

    def _put_item(self, user_id: str, doc: Row, how: Putting) -> PutCounts:
        op = IndexOp.DELETE if doc["status"] == Status.ARCHIVED.value else IndexOp.VECTOR
        state = IndexState(op=op, next_attempt_at=how.at)
        index = convert.index_document(state, pending_since=how.at)
        item = convert.from_document({**doc, "user_id": user_id, "index": index})
        old = self._items._rows.get(item.point_id)
        if old is None:
            placed = self._placed(item, how)
            if placed is None:
                return PutCounts(same_text=1)
            if not how.dry_run:
                self._items._rows[item.point_id] = self._row(placed, doc, how)
            return PutCounts(added=1)
        dead = old.item.status is Status.DELETED
        older = (old.item.version, old.item.updated_at) < (item.version, item.updated_at)
        if not dead and not (how.newer and older):
            return PutCounts(present=1)
        placed = self._placed(item, how)
        if placed is None:
            return PutCounts(same_text=1)
        if not how.dry_run:
            index_state = (
                revived(old.item, item).index if dead else requeued(old.item.index, op, how.at)
            )
            new = self._row(replace(placed, index=index_state), doc, how)
            if how.derive and old.contributed is not None:
                new.contributed, new.follow_up_at = old.contributed, how.at
            self._items._rows[item.point_id] = new
        return PutCounts(added=1) if dead else PutCounts(changed=1)

    def _is_there(self, user_id: str, doc: Row) -> bool:
        return point_id_of(user_id, doc["memory_id"]) in self._items._rows

    def _said(self, item: MemoryItem) -> MemoryItem | None:
        for scope in (item.dedup_scope, open_scope(item)):
            other = self._items._same_text(replace(item, dedup_scope=scope))
            if other is not None and other.point_id != item.point_id:
                return other
        return None

    def _placed(self, item: MemoryItem, how: Putting) -> MemoryItem | None:
        """Beside what says the same of another period; None: it is known."""
        other = self._said(item) if item.status is Status.ACTIVE else None
        if other is None:
            return item
        beside = as_periods(item, other)
        if beside is None:
            return None
        new, changed = beside
        if new.dedup_scope != item.dedup_scope and self._said(new) != other:
            return None
        if changed != other and not how.dry_run:
            row = replaced_state(other, ChangeType.UPDATE, ANOTHER_PERIOD, how.at)
            self._items._rows[other.point_id].revise(
                revised(other, touch(changed, IndexOp.PAYLOAD, how.at), row)
            )
            self._items.keep_version(row)
        return new

    def _row(self, item: Any, doc: Row, how: Putting) -> item_rows.Row:
        known = doc.get("contribution")
        if how.derive:
            followed = how.at if item.tier in FOLLOWED_TIERS else None
            return item_rows.Row(item, how.at, followed, understand_at=how.at)
        contributed, refused = graph_convert.contribution_of_document(known)
        if known is not None:
            self._graphs._refused[item.point_id] = refused
        return item_rows.Row(
            item,
            how.at,
            doc.get("follow_up_at"),
            contributed if known is not None else None,
            understand_at=how.at,
        )


def _set_in(row: Session) -> dict[str, Any]:
    """Fields that differ from their defaults: a document holds no others."""
    values = ((one, getattr(row, one.name)) for one in fields(row))
    return {one.name: value for one, value in values if value != one.default}


def _at(doc: Any, path: str) -> list[Any]:
    """All that stands at a path: in a list it is in each of its members."""
    found = [doc]
    for name in path.split("."):
        met = [(one or {}).get(name) for one in found]
        found = [each for one in met for each in (one if isinstance(one, list) else [one])]
    return found


def _is_wanted(collection: Collection, doc: Row, wanted: RowsWanted) -> bool:
    if collection.name != ITEMS:
        return True
    tiers = None if wanted.tiers is None else {tier.value for tier in wanted.tiers}
    alive = wanted.archived or doc["status"] == Status.ACTIVE.value
    return alive and (tiers is None or doc["tier"] in tiers)


class _Reader:
    def __init__(self, docs: dict[str, list[Row]]) -> None:
        self._docs = docs

    async def pages(
        self, collection: Collection, wanted: RowsWanted
    ) -> AsyncIterator[Iterable[Row]]:
        rows = self._docs[collection.name]
        if docs := [doc for doc in rows if _is_wanted(collection, doc, wanted)]:
            yield docs


class _Versions(dict[Any, Any]):
    """Rows by (user, memory, version), over lists by (user, memory)."""

    def __init__(self, lists: dict[tuple[str, str], list[Any]]) -> None:
        super().__init__()
        self._lists = lists

    def items(self) -> Any:
        return {
            (*key, row.version): row for key, rows in self._lists.items() for row in rows
        }.items()

    def __getitem__(self, key: Any) -> Any:
        return dict(self.items())[key]

    def __contains__(self, key: Any) -> bool:
        return key in dict(self.items())

    def __setitem__(self, key: Any, row: Any) -> None:
        rows = self._lists.setdefault(key[:2], [])
        rows.append(row)
        rows.sort(key=lambda one: one.version, reverse=True)

    def __delitem__(self, key: Any) -> None:
        rows = self._lists[key[:2]]
        rows[:] = [row for row in rows if row.version != key[2]]


def _plain_doc(key: Any, row: Any) -> Row:
    return to_row(row)


def _keyed(name: str, rows: Rows, to_doc: Callable[[Any, Any], Row] = _plain_doc) -> Table:
    """Rows by their user and the fields that name them."""
    kind: Any = BY_NAME[name].row

    def of_doc(user_id: str, doc: Row, how: Putting) -> tuple[Any, Any]:
        row = from_row(kind, {**doc, "user_id": user_id})
        return (user_id, *(getattr(row, one) for one in BY_NAME[name].key)), row

    return Table(rows, _first_of_key, to_doc, of_doc)


def _by_id(name: str) -> Callable[[str, Row, Putting], tuple[Any, Any]]:
    kind: Any = BY_NAME[name].row
    (key,) = BY_NAME[name].key
    return lambda user_id, doc, how: (doc[key], from_row(kind, {**doc, "user_id": user_id}))


def _never(user_id: str, doc: Row, how: Putting) -> tuple[Any, Any]:
    raise AssertionError("It is not exported.")


def _turn_doc(key: Any, row: KeptTurn) -> Row:
    words = list(turn_terms(row.question, row.answer))
    return to_row(row) | {"words": words, "point_id": point_id_of(row.user_id, row.memory_id)}


def _version_doc(key: Any, row: Any) -> Row:
    return convert.version_document(row)


def _outcome_doc(key: Any, row: EventRow) -> Row:
    doc = outcome_convert.event_document(row.event, "")
    return doc | {"effects": {name: name in row.owed for name in ("graph", "promotion")}}


def _outcome_of(user_id: str, doc: Row, how: Putting) -> tuple[Any, Any]:
    event: OutcomeEvent = outcome_convert.event_from_document({**doc, "user_id": user_id})
    owed: set[Any] = {name for name, owes in doc.get("effects", {}).items() if owes}
    if how.derive:
        owed = {"graph"} if counts(event) else set()
    return (user_id, event.idempotency_key), EventRow(event, owed)


def _book_doc(key: Any, row: BookRow) -> Row:
    return to_row(row.book) | {"title_key": row.title_key, "due_at": row.due_at}


def _book_of(user_id: str, doc: Row, how: Putting) -> tuple[Any, Any]:
    due = how.at if doc.get("due_at") is not None else None
    book = from_row(Book, {**doc, "user_id": user_id})
    return (user_id, book.book_id), BookRow(book, due, title_key=doc.get("title_key"))


def _upload_doc(key: Any, row: bytes) -> Row:
    return {"upload_id": key[1], "part": 0, "data": row}


def _upload_of(user_id: str, doc: Row, how: Putting) -> tuple[Any, Any]:
    return (user_id, doc["upload_id"]), doc["data"]


WORK = ("state", "attempts", "plan", "notes", "error")


def _exchange_doc(key: Any, row: KeptExchange) -> Row:
    work = {name: getattr(row, name) for name in WORK}
    said = {} if row.at == row.exchange.at else {"said_at": row.exchange.at}
    return to_row(row.exchange) | work | {"at": row.at, "due_at": row.due, **said}


def _exchange_of(user_id: str, doc: Row, how: Putting) -> tuple[Any, Any]:
    said = {"user_id": user_id, "at": doc.get("said_at", doc["at"])}
    exchange = from_row(LearnedExchange, {**doc, **said})
    work = {name: doc[name] for name in WORK if name in doc}
    return exchange.key, KeptExchange(exchange, doc["at"], how.at, **work)


def _library_doc(key: Any, row: TemplateLibrary) -> Row:
    found: Row = {}
    for name, template in row.templates.items():
        doc = to_row(template)
        found[name] = {one: doc[one] for one in doc if one not in ("template_id", "preset")}
    return {"templates": found, "kept": list(found), "active": row.active}


def _library_of(user_id: str, doc: Row, how: Putting) -> tuple[Any, Any]:
    known = {one.name for one in fields(Template)}
    templates = {
        name: from_row(
            Template, {k: v for k, v in row.items() if k in known} | {"template_id": name}
        )
        for name, row in doc.get("templates", {}).items()
    }
    return user_id, TemplateLibrary(templates=templates, active=doc.get("active"))


def _deletions_doc(key: Any, row: int) -> Row:
    return {"tier": key[1].value, "count": row}


def _deletions_of(user_id: str, doc: Row, how: Putting) -> tuple[Any, Any]:
    return (user_id, Tier(doc["tier"])), doc["count"]
