"""Passes that are replayed answer as those that are launched, and shapes that cannot be stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.inference.backends.recorded_passes import (
    MOST_TOKENS,
    ROOMS,
    RecordedPasses,
    Replay,
    filled,
    room_for,
)

PAD = 9


class Output(np.ndarray[Any, Any]):
    """What a model gives, with the methods of a tensor that are used."""

    def float(self) -> Output:
        return self

    cpu = numpy = float

    def clone(self) -> Output:
        return self.copy()


class Model:
    """Sums what it may read of each text. `launched` and `recorded`: shapes, in order."""

    def __init__(self, broken: Callable[[np.ndarray[Any, Any]], Any] | None = None) -> None:
        self.launched: list[tuple[int, ...]] = []
        self.recorded: list[tuple[int, ...]] = []
        self.replayed = 0
        self._broken = broken

    def output(self, feed: Any) -> Output:
        assert feed["modality"] == "text"
        assert (feed["input_ids"][feed["attention_mask"] == 0] == PAD).all()
        sums: Output = (feed["input_ids"] * feed["attention_mask"]).sum(1, keepdims=True)
        return sums.view(Output)

    def launch(self, feed: Any) -> Output:
        self.launched.append(feed["input_ids"].shape)
        return self.output(feed)

    def record(self, feed: Any) -> Replay:
        shape = feed["input_ids"].shape
        self.recorded.append(shape)
        output = np.zeros((shape[0], 1)).view(Output)

        def replay(again: Any) -> Output:
            assert again["input_ids"].shape == shape
            self.replayed += 1
            # In one place, as a graph writes.
            output[:] = self.output(again)
            return output

        return replay if self._broken is None else self._broken(output)


def feed_of(*texts: int) -> dict[str, Any]:
    """Texts of so many tokens, padded behind."""
    mask = np.array([[at < size for at in range(max(texts))] for size in texts], dtype=np.int64)
    ids = np.where(mask == 1, np.arange(mask.size).reshape(mask.shape) % 5, PAD)
    return {"modality": "text", "input_ids": ids, "attention_mask": mask}


def passes_of(model: Model) -> RecordedPasses:
    return RecordedPasses(model.launch, model.record, {"input_ids": PAD})


@given(st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=9), min_size=1, max_size=12))
def test_every_pass_answers_as_the_model(batches: list[list[int]]) -> None:
    model = Model()
    passes = passes_of(model)
    # Kept while the others are computed: a replay must not write over an answer.
    feeds = [feed_of(*texts) for texts in batches * 3]
    given_ = [passes(feed) for feed in feeds]
    for answer, feed in zip(given_, feeds, strict=True):
        assert answer.tolist() == model.output(feed).tolist()
    rooms = {room_for(len(texts), max(texts)) for texts in batches}
    assert set(model.recorded) == rooms
    assert len(model.recorded) == len(rooms)


def test_a_shape_is_recorded_when_it_comes_again_and_never_launched_after() -> None:
    model = Model()
    passes = passes_of(model)
    passes(feed_of(5, 7))
    assert (model.launched, model.recorded) == ([(2, 7)], [])
    passes(feed_of(6, 9))  # fills the same room
    assert (len(model.launched), model.recorded) == (2, [(2, 16)])
    passes(feed_of(16, 3))
    assert len(model.launched) == 2


def _refuses(_output: Output) -> Replay:
    raise RuntimeError("operation not permitted when stream is capturing")


def _forgets(output: Output) -> Replay:
    """A step that depended on what was read is missing."""
    return lambda _feed: output


@pytest.mark.parametrize("broken", [_refuses, _forgets])
def test_a_shape_that_cannot_be_recorded_is_launched_for_good(
    broken: Callable[[Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    model = Model(broken)
    passes = passes_of(model)
    for _ in range(4):
        feed = feed_of(5, 7)
        assert passes(feed).tolist() == model.output(feed).tolist()
    assert len(model.recorded) == 1
    assert "passes of 2 x 16 tokens are not recorded" in caplog.text


@given(st.integers(1, 600), st.integers(1, 600))
def test_a_room_holds_the_pass_and_is_not_much_larger(rows: int, length: int) -> None:
    room = room_for(rows, length)
    if room is None:
        assert max(rows, length) > ROOMS[-1] or rows * max(16, length) * 2.25 > MOST_TOKENS
    else:
        assert rows <= room[0] <= 1.5 * rows
        assert length <= room[1] <= max(16, 1.5 * length)
        assert room[0] * room[1] <= MOST_TOKENS


def test_rows_behind_the_texts_repeat_the_first() -> None:
    assert filled(np.array([[1, 2], [3, PAD]]), (3, 3), PAD).tolist() == [
        [1, 2, PAD],
        [3, PAD, PAD],
        [1, 2, PAD],
    ]
