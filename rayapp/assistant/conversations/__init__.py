"""The turns of a conversation: kept once, scored, never learned as an echo."""
