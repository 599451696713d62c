"""What a memory means: how much it matters, and what is derived from it."""
