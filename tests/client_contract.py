"""The client contract: what the first client sends and reads, played against any running service.

The rows are in `tests/contract/client_contract`. A row names its caller, sends what that caller
sends, and lists the fields that it reads with their types: `text` is not empty, `time` is ISO-8601
with a zone, `=x` is written x, `x|null` may be null, `name[]` is a list with at least one element.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.client_editor import keeps as editor_keeps

FOLDER = Path(__file__).parent / "contract" / "client_contract"
# In this order: what removes data comes last.
FILES = ("search", "bank", "graphs", "hooks", "books", "backup", "later", "operations")
USER = "contract-user"
# Other users by the names that rows have for them.
USERS = {"eraser": "contract-eraser", "nobody": "contract-nobody"}
Settle = Callable[[httpx.Client], None]

TEXTS = (
    ("hidden", "history", "The old phone number of Dana in Haifa is 555"),
    ("pattern", "patterns", "Restart Docker in Haifa when the build hangs"),
    ("working", "working", "Dana asked about trains from Haifa to Acre today"),
    ("hebrew", "history", "דנה גרה בחיפה ועובדת בעכו"),
    ("book", "documents", "The contract of the flat in Haifa ends in May"),
)
BANK = (
    ("bank", "The home of Dana is in Haifa", ["home"]),
    ("spare", "A fact that is not needed any more", ["spare"]),
    ("spare2", "עובדה שאין בה צורך", ["spare"]),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One call of one caller."""

    caller: str
    method: str
    template: str
    read: Mapping[str, Any]
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    form: Mapping[str, Any] = field(default_factory=dict)
    status: tuple[int, ...] = (200,)
    user: str = USER
    only: str | None = None

    @property
    def route(self) -> str:
        return f"{self.method} {self.template}"


@dataclass(slots=True)
class Report:
    """What was served and what was there, and a sentence for each thing that was not."""

    listed: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    fields: int = 0
    present: int = 0
    complaints: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        served = len(self.listed - self.failed)
        return (
            f"routes served / routes listed: {served} / {len(self.listed)}, "
            f"fields present / fields read: {self.present} / {self.fields}"
        )


def contract(stage: str) -> list[Row]:
    """All rows for a stage: `fakes` or `stack`."""
    rows = [_row(raw) for name in FILES for raw in _read(name)]
    return [row for row in rows if row.only in (None, stage)]


def seed(http: httpx.Client, settle: Settle) -> dict[str, str]:
    """Store what the rows talk about; the ids by the names that the rows use."""
    names = {"user": USER}
    headers = {"X-User-Id": USER}

    def post(path: str, body: dict[str, Any]) -> dict[str, Any]:
        answer = http.post(path, json=body, headers=headers)
        assert answer.is_success, f"POST {path}: {answer.status_code} {answer.text}"
        found: dict[str, Any] = answer.json()
        return found

    turn = {
        "text": "Dana lives in Haifa near the port",
        "tier": "history",
        "source": {"type": "tool", "tool_name": "web_search", "conversation_id": "conv-7"},
    }
    names["history"] = post("/api/memory/store", turn)["memory_id"]
    for name, tier, text in TEXTS:
        names[name] = post("/api/memory/store", {"text": text, "tier": tier})["memory_id"]
    for name, text, tags in BANK:
        names[name] = post("/api/memory/memory-bank", {"text": text, "tags": tags})["id"]
    tool = {
        "text": "The clinic of Dana opens at eight",
        "tier": "memory_bank",
        "tags": ["from-tool"],
        "importance": 0.8,
        "confidence": 0.8,
        "source": {"type": "tool", "tool_name": "datagov_query"},
    }
    names["from_tool"] = post("/api/memory/store", tool)["memory_id"]
    files = {"file": ("flat.txt", b"The contract of the flat ends in May")}
    kept = http.post("/api/memory/books", files=files, headers=headers)
    # A stack that was played before has it already.
    names["document"] = kept.json().get("book_id") or kept.json()["existing_book_id"]
    judged = {"memory_ids": [names["history"], names["pattern"]], "outcome": "worked"}
    post("/api/memory/outcomes", {**judged, "action": "web_search"})
    store = {"text": "Something that is erased", "tier": "history"}
    http.post(
        "/api/memory/store", json=store, headers={"X-User-Id": USERS["eraser"]}
    ).raise_for_status()
    settle(http)
    concept = known_concept(http)
    assert concept is not None, "the content graph knows nothing of what was stored"
    names["concept"] = concept
    return names


def play(http: httpx.Client, rows: list[Row], names: Mapping[str, str]) -> Report:
    """Make every call in order and look at every field."""
    report = Report()
    for row in rows:
        report.listed.add(row.route)
        _play(http, row, names, report)
    return report


def _play(http: httpx.Client, row: Row, names: Mapping[str, str], report: Report) -> None:
    parts = {name: _filled(value, names) for name, value in row.path.items()}
    form = dict(row.form)
    sent: dict[str, Any] = {"json": _filled(row.body, names)}
    if form:
        sent = {"files": {"file": tuple(form.pop("file"))}, "data": form}
    answer = http.request(
        row.method,
        row.template.format(**parts),
        params=_filled(dict(row.query), names) or None,
        headers={"X-User-Id": row.user},
        **sent,
    )
    wanted = sum(1 for _ in _leaves(row.read))
    report.fields += wanted
    where = f"{row.caller}: {row.route}"
    if answer.status_code not in row.status:
        report.failed.add(row.route)
        report.complaints.append(f"{where}: {answer.status_code} {answer.text[:200]}")
        return
    try:
        body = answer.json()
    except ValueError:
        report.failed.add(row.route)
        report.complaints.append(f"{where}: not JSON: {answer.text[:200]}")
        return
    wrong = list(_check(row.read, body, ""))
    report.present += wanted - len(wrong)
    report.complaints += [f"{where}: {one}" for one in wrong]


def _check(wanted: Mapping[str, Any], found: Any, above: str) -> Iterator[str]:
    """A sentence per leaf that is missing or of another type."""
    for name, kind in wanted.items():
        key, many = name.removesuffix("[]"), name.endswith("[]")
        where = f"{above}.{key}".strip(".") if key else above
        if key and (not isinstance(found, dict) or key not in found):
            yield from (f"{where or 'answer'} is missing" for _ in _leaves({name: kind}))
            continue
        value = found[key] if key else found
        if many:
            yield from _check_list(kind, value, f"{where}[]")
        elif isinstance(kind, Mapping):
            yield from _check(kind, value, where)
        elif not _fits(kind, value):
            yield f"{where} is {_short(value)}, not {kind}"


def _check_list(kind: Any, value: Any, where: str) -> Iterator[str]:
    """Every element must fit; each leaf is complained about once."""
    if not isinstance(value, list) or not value:
        yield from (f"{where} is {_short(value)}, not a list of some" for _ in _leaves({"": kind}))
        return
    seen: dict[str, str] = {}
    for one in value:
        for complaint in _check(kind, one, where):
            seen.setdefault(complaint.split(" is ")[0], complaint)
    yield from seen.values()


def _leaves(wanted: Mapping[str, Any]) -> Iterator[str]:
    for name, kind in wanted.items():
        if isinstance(kind, Mapping):
            yield from _leaves(kind)
        else:
            yield name


def _fits(kind: str, value: Any) -> bool:
    if kind == "any":
        return True
    if kind.startswith("="):
        return str(value) == kind[1:]
    if kind in {"true", "false", "null"}:
        return value is {"true": True, "false": False, "null": None}[kind]
    if kind.endswith("|null"):
        return value is None or _fits(kind.removesuffix("|null"), value)
    return _KINDS[kind](value)


def _is_time(value: Any) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except (TypeError, ValueError):
        return False


_KINDS: dict[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str) and value != "",
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "list": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "time": _is_time,
    "template": lambda value: isinstance(value, str) and editor_keeps(value),
}


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    """`$name` replaced by the id that the seed gave it."""
    if isinstance(value, str) and value.startswith("$"):
        return names[value[1:]]
    if isinstance(value, list):
        return [_filled(one, names) for one in value]
    if isinstance(value, dict):
        return {key: _filled(one, names) for key, one in value.items()}
    return value


def known_concept(http: httpx.Client) -> str | None:
    """The id of a concept that the stored texts share, once the graph knows it."""
    path = "/api/memory/kg/concept/haifa/definition"
    answer = http.get(path, headers={"X-User-Id": USER})
    if answer.status_code == 404:
        return None
    body = answer.json()
    return str(body["concept"]["id"]) if body["definition"]["related"]["memories"] else None


def _read(name: str) -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text("utf-8"))
    return loaded


def _row(raw: dict[str, Any]) -> Row:
    method, template = raw["route"].split(" ")
    status = raw.get("status", 200)
    return Row(
        caller=raw["caller"],
        method=method,
        template=template,
        read=raw["read"],
        path=raw.get("path", {}),
        query=raw.get("query", {}),
        body=raw.get("body"),
        form=raw.get("form", {}),
        status=(status,) if isinstance(status, int) else tuple(status),
        user=USERS[raw["user"]] if "user" in raw else USER,
        only=raw.get("only"),
    )
