"""Unit tests need neither Ray nor torch: a module of theirs that imports one is not collected."""

import sys
from collections.abc import Generator

import pytest

HEAVY = ("ray", "torch")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    before = set(sys.modules)
    report = yield
    brought = [name for name in HEAVY if name in sys.modules and name not in before]
    if brought:
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid} imports {brought[0]}: it belongs in tests/with_ray"
    return report
