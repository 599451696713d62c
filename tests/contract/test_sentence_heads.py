"""The shipped heads over the real encoder, and the report as a user calls it."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jobs import language_report
from jobs.labelled import LANGUAGE, SentenceReader, kind_scores, macro_of, read_labelled
from rayapp.inference.sentence_heads import SentenceHeads, SentenceKind, load_heads

# What was asked of sentences that others wrote; ours lie above.
LEAST = {"en": 0.85, "he": 0.78}


@pytest.fixture(scope="module")
def reader() -> SentenceReader:
    return SentenceReader()


@pytest.fixture(scope="module")
def heads(reader: SentenceReader) -> SentenceHeads:
    return load_heads(reader.encoder)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Please remember that my landlord is called Ivo.", "remember"),
        ("תמחק את מה שאמרתי על הבוס", "forget"),
        ("Remember when we talked about my landlord? What was his name?", "past"),
        ("מה כתוב במסמך על פיצויים?", "documents"),
        ("forget it, never mind", "small_talk"),
        ("מה בירת פורטוגל?", "general"),
    ],
)
def test_a_clear_sentence_is_told(
    reader: SentenceReader, heads: SentenceHeads, text: str, kind: SentenceKind
) -> None:
    (reading,) = reader.read([text])
    shares = heads.probabilities(reading)
    assert max(shares, key=shares.__getitem__) == kind
    assert sum(shares.values()) == pytest.approx(1.0)


@pytest.mark.takes(12)
@pytest.mark.parametrize("language", ["en", "he"])
def test_held_out_sentences_are_told_as_surely_as_it_says(
    reader: SentenceReader, heads: SentenceHeads, language: str
) -> None:
    sentences = read_labelled(LANGUAGE / "held_out" / f"{language}.tsv")
    pairs, sure = [], []
    for one, reading in zip(sentences, reader.read([s.text for s in sentences]), strict=True):
        shares = heads.probabilities(reading)
        guess = max(shares, key=shares.__getitem__)
        pairs.append((one.kind, guess))
        sure.append(shares[guess])
    assert macro_of(kind_scores(pairs)) >= LEAST[language]
    right = np.mean([kind == guess for kind, guess in pairs])
    assert float(np.mean(sure)) == pytest.approx(float(right), abs=0.08)


@pytest.mark.process
@pytest.mark.takes(150)
def test_the_job_makes_the_shipped_heads(heads: SentenceHeads, tmp_path: Path) -> None:
    """Within what another processor may move: the file itself is equal where it was made."""
    out = tmp_path / "heads.npz"
    command = [sys.executable, "-m", "jobs.build.heads", "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=900)
    made = load_heads(heads.encoder, out)
    assert made.metadata["sha256"] == heads.metadata["sha256"]
    assert np.abs(made.weights - heads.weights).max() < 0.05
    assert np.abs(made.means - heads.means).max() < 0.001


@pytest.mark.process
class TestReport:
    def ask(self, path: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "jobs.language_report", "--file", str(path)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    def test_a_file_is_told_by_language(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.tsv"
        path.write_text(
            "forget\tDelete the note about my old job.\n"
            "past\tWhat did I tell you about my old job?\n"
            "goal\tאני רוצה ללמוד לנגן בכינור\n",
            encoding="utf-8",
        )
        found = self.ask(path)
        assert (found.returncode, found.stderr) == (0, "")
        assert "en, 2 sentences" in found.stdout
        assert "he, 1 sentences" in found.stdout
        assert found.stdout.count("macro F1 1.000") == 2

    def test_a_wrong_line_is_one_sentence(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.tsv"
        path.write_text("goal\tI want to run.\nno tab here\n", encoding="utf-8")
        found = self.ask(path)
        assert found.returncode == 2
        assert found.stdout == ""
        assert found.stderr == "mine.tsv, line 2: write kind, one tab, text.\n"


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert language_report.main([]) == 2
    assert capsys.readouterr().err == (
        "The encoder needs onnxruntime: install it, or set embedding.encoder.enabled to false.\n"
    )
