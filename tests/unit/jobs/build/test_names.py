"""What is kept of the names of open collections."""

from pathlib import Path

from jobs.build.names import write_names
from jobs.build.pair_files import NAMES, PAIRS, read_pairs


def test_only_english_with_hebrew_is_kept_once_in_a_fixed_order(tmp_path: Path) -> None:
    path = tmp_path / "names.tsv"
    names = [
        ("Paris", "פריז"), ("Haifa", " חיפה"), ("paris", "פריז"), ("Paris", "Paris"),
        ("פריז", "פריז"), ("12", "י״ב"), ("New\nYork", "ניו יורק"), ("Rome", "רומא"),
    ]  # fmt: skip
    assert write_names(path, names) == 3
    assert path.read_text(encoding="utf-8") == "Haifa\tחיפה\nparis\tפריז\nRome\tרומא\n"
    assert [pair.english for pair in read_pairs(tmp_path)] == ["Haifa", "paris", "Rome"]
    first = path.read_bytes()
    write_names(path, reversed(names))
    assert path.read_bytes() == first


def test_the_committed_pairs_and_names_can_be_read() -> None:
    """Every line is a pair; `read_pairs` refuses a file that breaks a rule."""
    sentences, names = read_pairs(PAIRS), read_pairs(NAMES)
    assert len({pair.field for pair in sentences}) == 8
    assert len(sentences) > 11_000
    assert len(names) > 6_000
