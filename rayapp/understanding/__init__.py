"""Understanding: what a stored text means, and what follows from it."""
