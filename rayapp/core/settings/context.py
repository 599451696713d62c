"""Settings of what an assistant is told before it answers."""

from __future__ import annotations

from pydantic import Field

from rayapp.core.settings.base import Concern


class ContextSettings(Concern):
    timeout_s: float = Field(0.8, gt=0, le=10, description="End-to-end limit of a prefetch.")
    token_budget: int = Field(
        2_000, ge=50, le=100_000, description="Tokens of the text block when none are named."
    )
    stable_share: float = Field(
        0.5, ge=0, le=0.9, description="Share of the budget that the stable part may take."
    )
    always_inject: int = Field(20, ge=0, le=100, description="Pinned memories in the block.")
    identity: int = Field(10, ge=0, le=100, description="Memories tagged identity in the block.")
    preferences: int = Field(
        10, ge=0, le=100, description="Memories tagged preference in the block."
    )
    patterns: int = Field(5, ge=0, le=50, description="Proven patterns in the stable part.")
    small_store: int = Field(
        5, ge=0, le=50, description="Up to so many memories, all of them are context."
    )
    recent: int = Field(10, ge=0, le=50, description="Newest memories shown when nothing is found.")
    cold_start: int = Field(10, ge=1, le=50, description="Memories of a cold start.")
    receipt_ttl_days: float = Field(
        30.0, gt=0, description="Lifetime of the receipt of a prefetch, days."
    )
