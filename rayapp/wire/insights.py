"""Query fields of statistics, health and diagnostics."""

from __future__ import annotations

from pydantic import Field

from rayapp.wire.bases import Lenient


class GrowthQuery(Lenient):
    """Query fields of the growth curve."""

    days: int = Field(30, ge=1, le=366, description="UTC days up to today.")


class HealthQuery(Lenient):
    """Query fields of health."""

    full: bool = Field(False, description="Also the metrics snapshot.")


class DiagnosticsQuery(Lenient):
    """Query fields of diagnostics."""

    metrics: bool = Field(False, description="Also the metrics snapshot.")
