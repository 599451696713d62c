"""Which episodes and thoughts are wanted. Pure."""

from rayapp.understanding.derived.ports import DerivedWanted
from rayapp.understanding.derived.records import Derived


def is_wanted(one: Derived, wanted: DerivedWanted) -> bool:
    """Whether it meets all conditions."""
    if wanted.kind not in (None, one.kind):
        return False
    if wanted.states is not None and one.state not in wanted.states:
        return False
    if wanted.types is not None and (one.pattern is None or one.pattern.type not in wanted.types):
        return False
    for allowed, value in (
        (wanted.subject_ids, one.subject_id),
        (wanted.perspective_ids, one.perspective_owner_id),
    ):
        if allowed is not None and value not in allowed:
            return False
    if wanted.node_ids is not None and not set(one.node_ids).intersection(wanted.node_ids):
        return False
    if wanted.since is not None and one.last_at < wanted.since:
        return False
    return wanted.until is None or one.first_at <= wanted.until
