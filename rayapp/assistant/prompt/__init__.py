"""The whole prompt of a turn: its parts in one order, within half of a window."""
