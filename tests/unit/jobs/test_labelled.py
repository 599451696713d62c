"""Lines of kind and text, and the scores of guesses of the kind."""

from pathlib import Path

import pytest

from jobs.labelled import KindScore, Labelled, kind_scores, macro_of, read_labelled
from rayapp.core.errors import ConfigError


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.tsv"
    path.write_text(text, encoding="utf-8")
    return path


class TestReading:
    def test_a_line_is_a_kind_and_a_text(self, tmp_path: Path) -> None:
        path = written(tmp_path, "goal\tI want to run.\r\n\n fact \t אחותי גרה בברלין \n")
        assert read_labelled(path) == [
            Labelled("goal", "I want to run.", "mine"),
            Labelled("fact", "אחותי גרה בברלין", "mine"),
        ]

    def test_a_mark_at_the_beginning_of_a_file_is_no_part_of_the_kind(self, tmp_path: Path) -> None:
        (one,) = read_labelled(written(tmp_path, "\ufeffplan\tTomorrow."))
        assert one.kind == "plan"

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("goal I want to run.", r"line 2: write kind, one tab, text\.$"),
            ("goal\t ", r"line 2: write kind, one tab, text\.$"),
            ("dream\tI want to run.", r"line 2: 'dream' is no kind: take one of remember, .*\.$"),
        ],
    )
    def test_a_wrong_line_is_named(self, tmp_path: Path, line: str, said: str) -> None:
        with pytest.raises(ConfigError, match=said):
            read_labelled(written(tmp_path, f"plan\tTomorrow.\n{line}\n"))

    def test_a_file_without_sentences_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match="holds no sentence"):
            read_labelled(written(tmp_path, "\n"))

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"none\.tsv cannot be read"):
            read_labelled(tmp_path / "none.tsv")


class TestScores:
    def test_of_each_kind(self) -> None:
        rows = kind_scores(
            [("goal", "goal"), ("goal", "plan"), ("plan", "plan"), ("fact", "small_talk")]
        )
        assert rows == [
            KindScore("goal", 2, 1.0, 0.5, pytest.approx(2 / 3)),
            KindScore("small_talk", 0, 0.0, 0.0, 0.0),
            KindScore("fact", 1, 0.0, 0.0, 0.0),
            KindScore("plan", 1, 0.5, 1.0, pytest.approx(2 / 3)),
        ]

    def test_the_mean_is_that_of_the_kinds_that_there_are(self) -> None:
        rows = kind_scores([("goal", "goal"), ("fact", "small_talk")])
        assert macro_of(rows) == 0.5
        assert macro_of([]) == 0.0
