"""Good and bad advice that only outcomes can tell apart, and old facts beside newer ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from jobs.suites.suite import read_json, rows_of
from rayapp.core.errors import ConfigError
from rayapp.text.language import detect_language

ADVERSARIAL = Path("outcomes") / "adversarial-30.json"
NAME = "The adversarial set"
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

    Raises ConfigError: the file is missing, is not JSON or has no such rows.
    """
    rows = read_json(data / ADVERSARIAL, NAME)
    with rows_of(data / ADVERSARIAL, NAME):
        found = tuple(
            Scenario(
                scenario_id=f"adv-{row['id']}",
                good=str(row["good_advice"]),
                bad=str(row["bad_advice"]),
                query=str(row["query"]),
            )
            for row in rows
        )
        if not found:
            raise ValueError("no scenario")
    return found


def load_contradictions(path: Path = CONTRADICTIONS) -> tuple[Scenario, ...]:
    """Our own pairs of an outdated and a current fact, in both languages.

    Raises ConfigError: the file cannot be read, a row lacks a field or repeats an id.
    """
    try:
        rows: list[Mapping[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{path.name} cannot be read ({error}): restore the file.") from None
    with rows_of(path, "contradictions"):
        ids = [row.get("id") for row in rows]
        whole = all({"id", "old", "new", "query"} == row.keys() for row in rows)
    if len(set(ids)) != len(ids) or not whole:
        raise ConfigError(
            f"{path.name}: every row needs id, old, new, query, and an id of its own."
        )
    return tuple(
        Scenario(
            scenario_id=f"con-{row['id']}", good=row["new"], bad=row["old"], query=row["query"]
        )
        for row in rows
    )
