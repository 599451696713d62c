"""HTTP bodies and answers."""
