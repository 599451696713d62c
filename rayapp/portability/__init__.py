"""A user's data leave, come back, and go for good."""
