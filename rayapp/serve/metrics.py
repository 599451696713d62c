"""Metrics through `ray.util.metrics`, beside the in-process copy that diagnostics reads."""

from __future__ import annotations

from ray.util.metrics import Counter, Gauge, Histogram

from rayapp.core.metrics import METRICS, InMemoryMetrics


class RayMetrics(InMemoryMetrics):
    """Every registered metric as a Ray metric, made once per process."""

    def __init__(self) -> None:
        super().__init__()
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}
        for name, spec in METRICS.items():
            full = f"rayapp_{name}"
            if spec.kind == "counter":
                self._counters[name] = Counter(full, spec.help, spec.labels)
            elif spec.kind == "gauge":
                self._gauges[name] = Gauge(full, spec.help, spec.labels)
            else:
                self._histograms[name] = Histogram(
                    full, spec.help, boundaries=list(spec.buckets), tag_keys=spec.labels
                )

    def count(self, name: str, value: float = 1.0, **labels: str) -> None:
        super().count(name, value, **labels)
        if value > 0:  # Ray raises for zero, and a count must never end what is counted
            self._counters[name].inc(value, labels)

    def observe(self, name: str, value: float, **labels: str) -> None:
        super().observe(name, value, **labels)
        self._histograms[name].observe(value, labels)

    def gauge(self, name: str, value: float, **labels: str) -> None:
        super().gauge(name, value, **labels)
        self._gauges[name].set(value, labels)
