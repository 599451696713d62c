"""The composition root: settings to stores, models and services."""
