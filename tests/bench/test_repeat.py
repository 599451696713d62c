"""The tests that are run again and again: what counts as a failure, and that the load ends."""

from pathlib import Path

import psutil
import pytest

from jobs.ending import BAD_ARGUMENTS, DONE, WITH_FAILURES
from tests.bench import repeat

REPORT = """<testsuites><testsuite>
<testcase classname="a.b" name="good" time="1.5"/>
<testcase classname="a.b" name="bad" time="2"><failure message="x"/></testcase>
<testcase classname="a.b" name="broken" time="0.5"><error message="x"/></testcase>
<testcase classname="a.b" name="left out" time="0"><skipped message="x"/></testcase>
</testsuite></testsuites>"""


def test_a_test_that_did_not_pass_failed() -> None:
    cases = repeat.cases_of(REPORT)
    assert [(case.name, case.seconds, case.failed) for case in cases] == [
        ("a.b::good", 1.5, False),
        ("a.b::bad", 2.0, True),
        ("a.b::broken", 0.5, True),
        ("a.b::left out", 0.0, True),
    ]


def test_the_rows_count_every_run_of_a_test() -> None:
    runs = [
        [repeat.Case("a", 1.0, False), repeat.Case("b", 9.0, True)],
        [repeat.Case("a", 3.0, False), repeat.Case("b", 5.0, False)],
        [repeat.Case("a", 2.0, False)],
    ]
    rows = repeat.rows_of(runs)
    found = [(row.name, len(row.seconds), row.failures, row.p50, max(row.seconds)) for row in rows]
    assert found == [("b", 2, 1, 7.0, 9.0), ("a", 3, 0, 2.0, 3.0)]


def test_the_cores_are_busy_only_as_long_as_they_should() -> None:
    with repeat.busy_cores(2) as pids:
        assert len(pids) == 2
        assert all(psutil.pid_exists(pid) for pid in pids)
    assert not any(psutil.pid_exists(pid) for pid in pids)


@pytest.mark.process
@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ("def test_it(): pass", DONE, "2 runs, 0 with failures"),
        # Fails in its second run alone, which is the loaded one.
        (
            "from pathlib import Path\n"
            "def test_it():\n"
            "    mark = Path(__file__).with_suffix('.ran')\n"
            "    seen = mark.exists()\n"
            "    mark.touch()\n"
            "    assert not seen\n",
            WITH_FAILURES,
            "run 2/2 (1 busy cores): 0 passed, 1 failed",
        ),
        ("import no_such_module", BAD_ARGUMENTS, "no_such_module"),
    ],
    ids=["good", "flaky", "broken"],
)
def test_two_runs_of_a_test(
    body: str, code: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "test_one.py"
    path.write_text(body, encoding="utf-8")
    assert repeat.main([str(path), "--runs", "2", "--cores", "1"]) == code
    assert says in capsys.readouterr().out
