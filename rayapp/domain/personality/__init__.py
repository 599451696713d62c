"""Who the assistant is for a user: templates, what makes one usable, and the prompt they become."""
