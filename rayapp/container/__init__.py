"""The composition root, one module per concern."""
