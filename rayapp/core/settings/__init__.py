"""All settings: the models, their rules, and the page of reference."""
