"""The open-data catalogue in the shared tenant."""
