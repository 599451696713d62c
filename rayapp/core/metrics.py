"""Every metric name, once. Ray's Prometheus endpoint exports them with the prefix `rayapp_`."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "histogram", "gauge"]

LATENCY_BUCKETS_S = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0)
SIZE_BUCKETS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; histograms carry their bucket bounds."""

    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


def _latency(help_text: str, *labels: str) -> Metric:
    return Metric("histogram", help_text, labels, LATENCY_BUCKETS_S)


METRICS: dict[str, Metric] = {
    "http_requests": Metric("counter", "HTTP requests.", ("route", "status")),
    "http_latency_s": _latency("HTTP request time, seconds.", "route"),
    "http_in_flight": Metric("gauge", "HTTP requests in work in this replica."),
    "stage_latency_s": _latency("Search stage time, seconds.", "stage"),
    "prefetch_latency_s": _latency("Time of a prefetch, seconds."),
    "views": Metric("counter", "Searches by what answered: a held view or the index.", ("kind",)),
    "view_bytes": Metric("gauge", "Memory of the users that this replica holds."),
    "search_hits": Metric("counter", "Hits shown, by tier.", ("tier",)),
    "datagov_intent": Metric(
        "counter", "Searches that turned to open data by their words.", ("reason",)
    ),
    "degraded": Metric("counter", "Stages skipped, by reason.", ("reason",)),
    "drift": Metric("counter", "Differences between truth and index, by kind.", ("kind",)),
    "empty_search_looks": Metric(
        "counter", "Looks for lost points after a search found nothing.", ("found",)
    ),
    "stored": Metric("counter", "Store results.", ("status",)),
    "documents": Metric("counter", "Documents, by what became of them.", ("result",)),
    "tool_results": Metric("counter", "Answers of tools, by what became of them.", ("status",)),
    "event_streams": Metric("gauge", "Open event streams of this replica."),
    "events_told": Metric("counter", "Events told to followers.", ("kind",)),
    "webhook_deliveries": Metric("counter", "Events sent to programs, by outcome.", ("outcome",)),
    "outcomes": Metric("counter", "Outcomes answered.", ("outcome", "result")),
    "tool_calls": Metric("counter", "Tools called, by what came of it.", ("tool", "result")),
    "learned": Metric("counter", "What came of exchanges, by task.", ("task", "result")),
    "reactions": Metric("counter", "Answers judged by the next question, by result.", ("result",)),
    "commands": Metric("counter", "Orders in messages, by what came of them.", ("kind", "status")),
    "chats": Metric("counter", "Chats with a model, by what memory was there.", ("memory",)),
    "chats_lost": Metric("counter", "Turns of chats that were not kept.", ("reason",)),
    "model_asks": Metric("counter", "Questions of helpers to a model.", ("helper", "result")),
    "model_latency_s": _latency("Time of a question to a model, seconds.", "helper"),
    "model_tokens": Metric("counter", "Tokens asked and answered.", ("helper", "kind")),
    "model_rows_lost": Metric("counter", "Model calls that the ledger could not take."),
    "exchanges_waiting": Metric("gauge", "Exchanges that were not learned from yet."),
    "understanding_stage_s": _latency("Time of a stage of understanding, seconds.", "stage"),
    "understanding_waiting": Metric("gauge", "Memories that are not understood yet."),
    "understanding_decisions": Metric(
        "counter", "Memories by what their importance decided.", ("fate", "source")
    ),
    "understanding_failed": Metric("counter", "Memories whose understanding failed.", ("end",)),
    "transitions": Metric("counter", "Items moved or archived by rule.", ("kind",)),
    "retention_removed": Metric("counter", "Rows that went by their age, by kind.", ("kind",)),
    "pending_items": Metric("gauge", "Items that wait for the index."),
    "pending_age_s": Metric("gauge", "Age of the oldest waiting item, seconds."),
    "indexed": Metric("counter", "Items the indexer finished.", ("op", "result")),
    "prefixes": Metric("counter", "New texts, by whether a model placed them.", ("result",)),
    "encoded": Metric("counter", "Items given the encoder's vectors, by why.", ("why",)),
    "index_delay_s": _latency("Store to searchable in the index, seconds."),
    "effects_settled": Metric("counter", "Effects of outcomes and changed items done.", ("kind",)),
    "effects_failed": Metric("counter", "Effects that failed and will be tried again.", ("kind",)),
    "effects_backlog": Metric("gauge", "Outcome events that still owe an effect."),
    "embed_cache_hits": Metric("counter", "Vectors found in a cache.", ("layer",)),
    "embed_cache_misses": Metric("counter", "Vectors that had to be computed."),
    "embed_cache_errors": Metric("counter", "Cache calls that failed and were bypassed."),
    "embed_coalesced": Metric("counter", "Texts that joined an equal text in flight."),
    "embed_batch_size": Metric("histogram", "Texts per backend call.", (), SIZE_BUCKETS),
    "embed_latency_s": _latency("Backend call time, seconds."),
    "embed_oom": Metric("counter", "Embedding batches that did not fit in memory."),
    "embed_bad_vectors": Metric("counter", "Vectors refused: wrong size, NaN or zero norm."),
    "embed_overloaded": Metric("counter", "Calls refused because the queue is full.", ("kind",)),
    "rerank_oom": Metric("counter", "Reranking batches that did not fit in memory."),
    "rerank_latency_s": _latency("Reranker call time, seconds."),
    "breaker_open": Metric(
        "gauge", "1 while the breaker of a dependency is open.", ("dependency",)
    ),
}


def metric(name: str, kind: Kind, labels: tuple[str, ...]) -> Metric:
    """The registered metric; KeyError or ValueError when name, kind or labels do not fit."""
    found = METRICS[name]
    if found.kind != kind or set(found.labels) != set(labels):
        raise ValueError(f"metric {name} is a {found.kind} with labels {found.labels}")
    return found


# A metric and its labels with their values, in order.
Series = tuple[str, tuple[tuple[str, str], ...]]


class InMemoryMetrics:
    """Counts in process: the fake of tests and the source of the diagnostics snapshot."""

    def __init__(self) -> None:
        self.counters: dict[Series, float] = defaultdict(float)
        self.gauges: dict[Series, float] = {}
        self.samples: dict[Series, list[float]] = defaultdict(list)

    def samples_of(self, name: str) -> list[float]:
        """Whatever the labels."""
        return [value for (one, _), kept in self.samples.items() if one == name for value in kept]

    def cache_hit_rate(self) -> float | None:
        """Share of vectors that a cache had; None before any was asked for."""
        counted = {"embed_cache_hits": 0.0, "embed_cache_misses": 0.0}
        for (name, _), value in self.counters.items():
            if name in counted:
                counted[name] += value
        asked = sum(counted.values())
        return counted["embed_cache_hits"] / asked if asked else None

    def count(self, name: str, value: float = 1.0, **labels: str) -> None:
        metric(name, "counter", tuple(labels))
        self.counters[name, tuple(sorted(labels.items()))] += value

    def observe(self, name: str, value: float, **labels: str) -> None:
        metric(name, "histogram", tuple(labels))
        kept = self.samples[name, tuple(sorted(labels.items()))]
        kept.append(value)
        if len(kept) > 2_000:  # the newest thousand are enough for a snapshot
            del kept[:1_000]

    def gauge(self, name: str, value: float, **labels: str) -> None:
        metric(name, "gauge", tuple(labels))
        self.gauges[name, tuple(sorted(labels.items()))] = value
