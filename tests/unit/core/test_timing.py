"""Times of stages that overlap, and that they add up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayapp.core.deadline import Span, exclusive_ms

MOMENTS = st.floats(0, 100, allow_nan=False)


@st.composite
def requests(draw: st.DrawFn) -> tuple[list[Span], float, float]:
    begun, ended = sorted((draw(MOMENTS), draw(MOMENTS)))
    spans = []
    for name in draw(st.lists(st.sampled_from("abcd"), max_size=8)):
        first, last = sorted((draw(MOMENTS), draw(MOMENTS)))
        spans.append(Span(name, first, last))
    return spans, begun, ended


@given(requests())
def test_stages_add_up_to_the_request_and_none_is_negative(
    request: tuple[list[Span], float, float],
) -> None:
    spans, begun, ended = request
    found = exclusive_ms(spans, begun, ended)
    assert sum(found.values()) == pytest.approx((ended - begun) * 1000, abs=0.0005 * len(found))
    assert min(found.values()) >= 0


def test_an_inner_stage_has_its_own_time_and_the_outer_one_the_rest() -> None:
    spans = [Span("search", 0.010, 0.050), Span("dense", 0.020, 0.040)]
    assert exclusive_ms(spans, 0.0, 0.060) == {
        "search_ms": 20.0,
        "dense_ms": 20.0,
        "other_ms": 20.0,
    }


def test_what_runs_side_by_side_is_counted_once() -> None:
    spans = [Span("dense", 0.0, 0.040), Span("pending", 0.0, 0.030), Span("text", 0.001, 0.030)]
    found = exclusive_ms(spans, 0.0, 0.040)
    assert found == {"dense_ms": 10.0, "pending_ms": 1.0, "text_ms": 29.0, "other_ms": 0.0}


def test_a_stage_of_another_request_is_left_out() -> None:
    assert exclusive_ms([Span("search", 0.0, 0.010)], 0.020, 0.030) == {"other_ms": 10.0}
