"""Good and bad advice that only outcomes can tell apart, and old facts beside newer ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from jobs.suites.suite import read_json
from rayapp.domain.text.language import detect_language
from rayapp.errors import ConfigError

ADVERSARIAL = Path("outcomes") / "adversarial-30.json"
CONTRADICTIONS = Path(__file__).with_name("contradictions.yaml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A question worded like the bad memory; `good` is what helped."""

    scenario_id: str
    good: str
    bad: str
    query: str

    @property
    def lang(self) -> str:
        return detect_language(self.query)

    @property
    def good_id(self) -> str:
        return f"{self.scenario_id}-good"

    @property
    def bad_id(self) -> str:
        return f"{self.scenario_id}-bad"


def load_adversarial(data: Path) -> tuple[Scenario, ...]:
    """The adversarial set of the data folder.

    Raises:
        ConfigError: the file is missing or is not JSON.
    """
    return tuple(
        Scenario(
            scenario_id=f"adv-{row['id']}",
            good=row["good_advice"],
            bad=row["bad_advice"],
            query=row["query"],
        )
        for row in read_json(data / ADVERSARIAL, "The adversarial set")
    )


def load_contradictions(path: Path = CONTRADICTIONS) -> tuple[Scenario, ...]:
    """Our own pairs of an outdated and a current fact, in both languages.

    Raises:
        ConfigError: a row lacks a field or repeats an id.
    """
    rows: list[Mapping[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    ids = [row.get("id") for row in rows]
    if len(set(ids)) != len(ids) or any(
        {"id", "old", "new", "query"} != row.keys() for row in rows
    ):
        raise ConfigError(
            f"{path.name}: every row needs id, old, new, query, and an id of its own."
        )
    return tuple(
        Scenario(
            scenario_id=f"con-{row['id']}", good=row["new"], bad=row["old"], query=row["query"]
        )
        for row in rows
    )
