"""What each kind of job may be asked: every answer is a normal form or a sentence."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.bulk.model import lease_of
from rayapp.bulk.params import KINDS, REINDEX, checked_params, known_kind
from rayapp.core.errors import InvalidInput
from rayapp.local.cli.app import job_names

NAMES = sorted({name for kind in KINDS.values() for name in kind.model_fields})
VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=12)
    | st.sampled_from(
        ["books", "documents", "dana", "ckan", "2026-05-01", "9999-12-31T23:59-14:00"]
    )
    | st.lists(st.integers(), max_size=2)
)


def outcome(kind: str, params: dict[str, Any]) -> dict[str, Any] | InvalidInput:
    try:
        return checked_params(kind, params)
    except InvalidInput as refused:
        return refused


@given(st.sampled_from(sorted(KINDS)), st.dictionaries(st.sampled_from([*NAMES, "junk"]), VALUES))
def test_anything_is_a_stable_normal_form_or_a_sentence(kind: str, params: dict[str, Any]) -> None:
    checked = outcome(kind, params)
    if isinstance(checked, InvalidInput):
        assert checked.message.endswith(".")
        assert checked.details["field"] in {*params, "sample", "quarantine", "rollback", "kind"}
        return
    assert checked_params(kind, checked) == checked
    assert json.loads(json.dumps(checked)) == checked
    assert checked.keys() <= params.keys()
    assert None not in checked.values()
    assert not any(value is False for value in checked.values())


@given(
    st.datetimes(min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1)),
    st.integers(min_value=-12 * 60, max_value=14 * 60),
)
def test_one_moment_is_one_parameter_in_every_zone(moment: datetime, offset: int) -> None:
    there = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=offset)))
    found = [
        checked_params(REINDEX, {"since": text})
        for text in (there.isoformat(), moment.isoformat(), f"{moment.isoformat()}Z")
    ]
    assert found[0] == found[1] == found[2]


def test_every_kind_is_a_module_of_jobs() -> None:
    assert set(KINDS) <= set(job_names())


@pytest.mark.parametrize(
    "name", ["", "Reindex", "jobs.reindex", "reindex\n", "../reindex", "dictionary"]
)
def test_no_other_kind_exists(name: str) -> None:
    with pytest.raises(InvalidInput, match="use one of"):
        known_kind(name)


def test_each_kind_has_a_lease_of_its_own() -> None:
    assert len({lease_of(kind) for kind in KINDS}) == len(KINDS)
