"""All settings, one module per concern."""
