"""The stores that learning writes to, over the same rows."""

from typing import NamedTuple

from rayapp.core.runtime import Clock
from rayapp.core.settings.model import GraphSettings
from tests.support.stores import InMemoryMemoryStore
from tests.support.stores.graphs import InMemoryGraphStore
from tests.support.stores.outcomes import InMemoryOutcomeStore
from tests.support.stores.stores import InMemoryReceiptStore


class LearnedStores(NamedTuple):
    items: InMemoryMemoryStore
    receipts: InMemoryReceiptStore
    outcomes: InMemoryOutcomeStore
    graphs: InMemoryGraphStore


def learned_stores(clock: Clock, settings: GraphSettings | None = None) -> LearnedStores:
    """Empty ones; `settings` are the caps of the graphs."""
    items, receipts = InMemoryMemoryStore(clock), InMemoryReceiptStore(clock)
    outcomes = InMemoryOutcomeStore(items, receipts, clock)
    graphs = InMemoryGraphStore(items, outcomes, clock, settings or GraphSettings())
    return LearnedStores(items, receipts, outcomes, graphs)
