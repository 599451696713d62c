"""The scan of raw files finds what was planted, wherever it stands, and nothing else."""

from pathlib import Path

import pytest

from tests.bench.erasure_proof import CHUNK, Scan, kind_of, main, words_of


def test_words_are_of_both_languages_and_differ() -> None:
    words = words_of(40, 7)
    assert len(set(words)) == 40
    assert [word.isascii() for word in words[:4]] == [True, False, True, False]
    assert not set(words) & set(words_of(40, 8))


def test_a_word_is_found_within_others_and_across_chunks(tmp_path: Path) -> None:
    gone, stays = words_of(10, 7), words_of(10, 8)
    scan = Scan(gone, stays)
    held = f"xx{gone[0]}yy {stays[1]}ות".encode()
    assert scan.counts(scan.of(held)) == (1, 1)
    assert scan.of(gone[1].encode()[:-1]) == set()
    path = tmp_path / "mongo" / "journal" / "WiredTigerLog.1"
    path.parent.mkdir(parents=True)
    word = gone[2].encode()
    path.write_bytes(bytes(CHUNK - 5) + word + bytes(2 * CHUNK) + stays[3].encode())
    assert scan.of_folder(tmp_path) == {"mongod: journal": {word, stays[3].encode()}}
    assert kind_of(Path("new/engine/memories/wal/0001")) == "index engine: log"


def test_a_count_below_one_is_refused() -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--words", "0"])
