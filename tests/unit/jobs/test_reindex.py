"""What the command line of a reindex asks for."""

from typing import Any

import pytest

from jobs import job_arguments
from jobs.reindex import SPEC
from rayapp.bulk.params import REINDEX
from rayapp.core.errors import InvalidInput


def params_of(*argv: str) -> dict[str, Any]:
    return job_arguments.params_of(SPEC, job_arguments.parser_of(SPEC).parse_args(argv))


@pytest.mark.parametrize(
    ("argv", "params"),
    [
        ((), {}),
        (("--switch", "auto"), {}),
        (("--drop-old",), {"drop_old": True}),
        (("--switch", "never"), {"switch": "never"}),
        (("--rollback",), {"rollback": True}),
        (
            ("--tier", "books", "--user", "dana", "--since", "2026-05-01T12:00:00+03:00"),
            {"tier": "books", "user_id": "dana", "since": "2026-05-01T09:00:00+00:00"},
        ),
    ],
)
def test_options_become_parameters(argv: tuple[str, ...], params: dict[str, Any]) -> None:
    assert params_of(*argv) == params


@pytest.mark.parametrize(
    "argv", [("--rollback", "--drop-old"), ("--rollback", "--tier", "books"), ("--since", "soon")]
)
def test_options_that_do_not_go_together_are_refused(argv: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput):
        params_of(*argv)


def test_its_workers_embed() -> None:
    assert (SPEC.kind, SPEC.embeds, SPEC.writes) == (REINDEX, True, True)
