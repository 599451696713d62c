"""The routing, content and action graphs."""
