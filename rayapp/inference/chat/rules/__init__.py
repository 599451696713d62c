"""What an answer of a model says and may cost. Pure."""
