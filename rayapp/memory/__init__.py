"""The memory item: scope, tiers, store, edits, versions, memory bank, user data."""
