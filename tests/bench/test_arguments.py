"""Arguments of the benches: a wrong one is refused in plain words before anything starts."""

from argparse import ArgumentTypeError
from collections.abc import Callable

import pytest

from tests.bench import encoder, load, peers, reindex, search_profile, server_profile
from tests.bench.arguments import not_negative, not_negative_number, positive, positive_number

PEERS = ["--data", "."]


@pytest.mark.parametrize(
    ("kind", "least", "wrong"),
    [
        (positive, "1", ["0", "-1", "1.5", "abc", ""]),
        (not_negative, "0", ["-1", "1.5", "abc"]),
        (positive_number, ".1", ["0", "-1", "nan", "inf", "abc"]),
        (not_negative_number, "0", ["-0.1", "nan", "inf", "abc"]),
    ],
)
def test_what_is_out_of_range_is_refused(
    kind: Callable[[str], float], least: str, wrong: list[str]
) -> None:
    assert kind(least) == float(least)
    for text in wrong:
        with pytest.raises(ArgumentTypeError, match=f"^use a .*, not '{text}'$"):
            kind(text)


@pytest.mark.parametrize(
    ("main", "wrong"),
    [
        (load.main, ["--users", "0"]),
        (load.main, ["--memories", "0"]),
        (load.main, ["--clients", "1", "0"]),
        (load.main, ["--seconds", "0"]),
        (load.main, ["--heavy", "-1"]),
        (load.main, ["--batch", "0"]),
        (peers.main, [*PEERS, "--users", "abc"]),
        (peers.main, [*PEERS, "--limit-s", "0"]),
        (reindex.main, ["--users", "0"]),
        (search_profile.main, ["--users", "0"]),
        (search_profile.main, ["--requests", "0"]),
        (server_profile.main, ["--queries", "0"]),
        (server_profile.main, ["--graph-from", "-1"]),
        (encoder.main, ["--rounds", "0"]),
        (encoder.main, ["--tokens", "0"]),
        (encoder.main, ["--lengths", "16", "0"]),
        (encoder.main, ["--lengths", "long"]),
        (encoder.main, ["--batch", "0"]),
        (encoder.main, ["--rerank-batch", "4097"]),
    ],
)
def test_a_bench_says_what_to_pass_instead(
    main: Callable[[list[str]], int], wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(wrong)
    assert ended.value.code == 2
    said = capsys.readouterr().err.splitlines()[-1]
    name = next(word for word in reversed(wrong) if word.startswith("--"))
    assert f"argument {name}: use " in said
    assert said.endswith(f"not {wrong[-1]!r}")
