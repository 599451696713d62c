"""The answers in `rayapp/api/examples.json`, recorded from a run.

The requests in it are sent to a service that was used for a while; what it answers is written back.
Ids are made short, long lists are cut, and what belongs to a machine stays as it is.
"""

import asyncio
import json
import re
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rayapp.api.app import ROUTES
from rayapp.api.openapi import examples
from rayapp.api.route import Route
from tests.support.example_world import EVENTS, answered, example_world

FILE = Path(__file__).resolve().parents[1] / "rayapp" / "api" / "examples.json"
# Folders, disks and what one replica measured.
OF_A_MACHINE = frozenset({"/api/system/disk-space", "/api/memory/diagnostics"})
# What keyless services do not give.
WITH_KEYS = frozenset({"/api/auth/session", "/api/auth/console"})
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
AN_ID = "0192f1c8-7a2e-7c1b-9d57-3c2f6f0b8a{:02x}"
MOST = 2  # of the entries of a list


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


def recordable(route: Route) -> bool:
    return route.path not in OF_A_MACHINE | WITH_KEYS


async def recorded(route: Route) -> Any:
    """The answer to the example of the route, as the document shows it."""
    answer = await answered(await example_world(), route)
    assert answer.status_code == route.status, f"{name_of(route)}: {answer.text}"
    seen: dict[str, str] = {}

    def short(match: re.Match[str]) -> str:
        return seen.setdefault(match[0], AN_ID.format(len(seen)))

    text = UUID.sub(short, answer.text)
    return text if route.media == EVENTS else cut(json.loads(text))


def cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: cut(one) for name, one in value.items()}
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [cut(one) for one in value[:MOST]]
    return value


def shape(value: Any) -> Any:
    """The names in an answer, whatever their values."""
    if isinstance(value, Mapping):
        return {name: shape(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value[:1] if isinstance(one, Mapping)]
    return None


async def record() -> None:
    rows = dict(examples())
    for route in filter(recordable, ROUTES):
        rows[name_of(route)] = {**rows[name_of(route)], "answer": await recorded(route)}
    lines = [f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in rows.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(rows)} examples are in {FILE.name}.")


if __name__ == "__main__":
    ArgumentParser("python -m tests.record_examples", description=__doc__).parse_args()
    sys.exit(asyncio.run(record()))
