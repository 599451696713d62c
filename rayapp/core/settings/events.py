"""Settings of the event stream."""

from __future__ import annotations

from pydantic import Field

from rayapp.core.settings.base import Concern

# A stream looks at its end once a second, and says goodbye before anybody cuts it, seconds.
STREAM_END_S = 5.0


class EventSettings(Concern):
    stream_s: float = Field(
        55.0, gt=0, le=600, description="The server ends a stream then; the client reconnects."
    )
    heartbeat_s: float = Field(
        10.0, gt=0, le=60, description="Between two signs of life; proxies end silent streams."
    )
    max_streams: int = Field(
        32, ge=1, le=1_000, description="Open streams per replica; each holds one connection."
    )
