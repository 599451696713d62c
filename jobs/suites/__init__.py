"""Retrieval suites by name. Each loads its set from a data folder; none is part of the project."""

from collections.abc import Callable, Mapping
from pathlib import Path

from jobs.suites.heq import load_heq
from jobs.suites.locomo import load_locomo
from jobs.suites.parashoot import load_parashoot
from jobs.suites.suite import Suite

SUITES: Mapping[str, Callable[[Path], Suite]] = {
    "locomo": load_locomo,
    "heq": load_heq,
    "parashoot": load_parashoot,
}
