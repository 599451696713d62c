"""Who the assistant is for a user."""
