"""Retrieval suites by name. Each loads its set from a data folder; none is part of the project."""

from collections.abc import Callable, Mapping
from pathlib import Path

from jobs.suites.beam import load_beam, load_beam_exchanges
from jobs.suites.heq import load_heq
from jobs.suites.locomo import load_locomo
from jobs.suites.mixed import load_mixed
from jobs.suites.parashoot import load_parashoot
from jobs.suites.suite import Suite

SUITES: Mapping[str, Callable[[Path], Suite]] = {
    "locomo": load_locomo,
    "heq": load_heq,
    "parashoot": load_parashoot,
    "beam": load_beam,
    "beam-exchanges": load_beam_exchanges,
    "mixed": load_mixed,
}
