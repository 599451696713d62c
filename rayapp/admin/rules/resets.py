"""What a reset of all data leaves alone. Pure."""

from __future__ import annotations

# Keys, so that the caller can still call; leases and jobs, which running processes stand on.
KEPT_IN_RESET = ("api_keys", "job_partitions", "jobs", "leases")
# Memories go page by page, each with its points; everything else is emptied after them.
ITEMS = "memory_items"
# Facts of the first client's old memory bank would move in again after a reset.
LEGACY_BANK = "memoryBank"  # client contract
