"""Generated calls against a running service: schemathesis as a process, and what it found."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.shell import ended

# One run takes one to two minutes; a run that hangs is a failure that says so.
LIMIT_S = 420
EXAMPLES = 3
USER = "conformance"

ROOT = Path(__file__).resolve().parent.parent
# Routes to come answer 501, as they are documented: no defect, though it looks like one.
LATER = "not yet"
LEFT_OUT = {
    "GET /api/memory/events": "a stream that goes on for minutes, with tests of its own",
    "GET /api/documents": "what POST answers there is not yet in the document that is kept",
}
# Replaced by those of `tests/conformance_rules.py`.
REPLACED = "positive_data_acceptance,negative_data_rejection,unsupported_method"


def document_of(url: str) -> dict[str, Any]:
    """The API document, without keys: a local service asks for none and looks at none."""
    document: dict[str, Any] = httpx.get(f"{url}/openapi.json", timeout=30).json()
    del document["components"]["securitySchemes"]
    for item in document["paths"].values():
        for operation in item.values():
            operation.pop("security")
    return document


def kept(document: dict[str, Any], *, admin: bool) -> dict[str, Any]:
    """The document with the operations that need the scope `admin`, or with the others."""
    paths: dict[str, dict[str, Any]] = {}
    for path, item in document["paths"].items():
        for method, operation in item.items():
            left_out = f"{method.upper()} {path}" in LEFT_OUT or LATER in operation["tags"]
            whole = "Scope: `admin`" in operation.get("description", "")
            if whole == admin and not left_out:
                paths.setdefault(path, {})[method] = operation
    return document | {"paths": paths}


def violations(url: str, document: dict[str, Any], folder: Path) -> tuple[int, Sequence[str]]:
    """How many calls were made, and a line for each kind of violation; none is the aim."""
    source, report = folder / "openapi.json", folder / "report.json"
    source.write_text(json.dumps(document))
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", str(source), "--url", url),
        *("--phases", "examples,coverage,fuzzing", "--max-examples", str(EXAMPLES)),
        *("--generation-deterministic", "--continue-on-failure", "--no-shrink", "--no-color"),
        *("--request-timeout", "20", "--header", f"X-User-Id:{USER}"),
        *("--exclude-checks", REPLACED, "--report", "json", "--report-json-path", str(report)),
    ]
    surroundings = os.environ | {
        "SCHEMATHESIS_HOOKS": "tests.conformance_rules",
        "PYTHONPATH": str(ROOT),
    }
    done = ended(command, folder, surroundings, LIMIT_S)
    assert report.exists(), done.stdout[-4_000:] + done.stderr[-4_000:]
    found = json.loads(report.read_text())
    assert found["complete"], done.stdout[-4_000:]
    assert found["errors"] == [], found["errors"]
    lines = [
        f"{one['title']}: {', '.join(str(name) for name in one['operations'])}"
        for one in found["failures"]
    ]
    return int(found["test_cases"]["generated"]), [*lines, *([done.stdout] if lines else [])]
