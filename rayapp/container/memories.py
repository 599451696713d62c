"""The service of memories of a process: whoever stores, stores through the same rules."""

from __future__ import annotations

from rayapp.container.parts import Parts
from rayapp.memory.rules.creation import TextLimits
from rayapp.memory.service import MemoriesService


def build_memories(parts: Parts) -> MemoriesService:
    """Limits and capacity are those of the settings."""
    runtime, settings = parts.runtime, parts.runtime.settings
    return MemoriesService(
        parts.stores.items,
        clock=runtime.clock,
        metrics=runtime.metrics,
        limits=TextLimits(
            text=settings.http.text_limit_chars, memory_bank=settings.memory_bank.text_limit_chars
        ),
        capacity=settings.memory_bank.capacity,
        new_id=runtime.new_id,
    )
