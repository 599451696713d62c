"""The command that fits and judges importance."""

from pathlib import Path

import pytest

from jobs.build.importance import main
from jobs.ending import BAD_ARGUMENTS, DONE, WITH_FAILURES

WRONG = """
fitting: {en: {above: [My son is ill.], below: [What is inflation]}}
held_out: {en: {above: [What is inflation now, Who won it], below: [My mother died last week.]}}
"""


def test_it_prints_each_part_and_language(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--wrong"]) == DONE
    told = capsys.readouterr().out
    assert all(name in told for name in ("fitting en", "fitting he", "held_out en", "held_out he"))


def test_it_fails_where_sides_are_wrong_and_fits_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "texts.yaml"
    file.write_text(WRONG, encoding="utf-8")
    assert main(["--file", str(file), "--fit", "--wrong"]) == WITH_FAILURES
    told = capsys.readouterr().out
    assert "tables: {'emotional'" in told
    assert "above: What is inflation now" in told


def test_what_is_no_corpus_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "texts.yaml"
    file.write_text("- a\n", encoding="utf-8")
    assert main(["--file", str(file)]) == BAD_ARGUMENTS
