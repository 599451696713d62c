"""What the event stream tells of a row: its id, nothing of its words. Pure."""

from rayapp.memory.item import derived_id
from rayapp.memory.ports import Event
from rayapp.understanding.derived.records import Derived


def news_of(user_id: str, row: Derived) -> Event:
    """One for each time that a row is new."""
    return Event(
        event_id=derived_id(user_id, row.derived_id, row.updated_at.isoformat()),
        user_id=user_id,
        kind=row.kind.value,
        at=row.updated_at,
        data={"id": row.derived_id},
    )
