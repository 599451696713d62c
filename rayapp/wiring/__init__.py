"""Parts of the composition root, one module per concern."""
