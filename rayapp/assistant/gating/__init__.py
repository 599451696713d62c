"""Which tools the assistant may call this turn."""
