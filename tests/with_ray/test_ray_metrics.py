"""Metrics as Ray takes them."""

from rayapp.serve.deployments.process import RayMetrics


def test_counting_nothing_is_no_error() -> None:
    """Ray's own counter raises for zero; a call that cost no tokens is counted all the same."""
    metrics = RayMetrics()
    labels = {"helper": "fact_extraction", "kind": "answer"}
    metrics.count("model_tokens", 0, **labels)
    metrics.count("model_tokens", 3, **labels)
    assert metrics.counters["model_tokens", tuple(sorted(labels.items()))] == 3
