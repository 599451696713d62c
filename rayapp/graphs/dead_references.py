"""Graph references to items that are not active any more: found a page at a time, and removed."""

from __future__ import annotations

import logging

from rayapp.core.errors import RayappError
from rayapp.graphs.ports import GraphStore
from rayapp.memory.scope import WriteScope

log = logging.getLogger("rayapp.dead_references")


async def forget_dead(
    graphs: GraphStore, limit: int, after: str | None
) -> tuple[int, int, str | None]:
    """Look at `limit` rows from `after` on.

    Returns (dead references, rows that lost some, where to go on; None ends the round).
    """
    dead, following = await graphs.dead_references(limit, after)
    points: dict[str, list[str]] = {}
    for user_id, point_id in dead:
        points.setdefault(user_id, []).append(point_id)
    cleaned = 0
    for user_id, point_ids in points.items():
        try:
            cleaned += await graphs.forget(WriteScope(user_id), point_ids)
        except RayappError as error:
            log.warning("references of one user stay for another round: %s", error.message)
    return len(dead), cleaned, following
