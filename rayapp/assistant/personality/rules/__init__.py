"""Templates, what makes one usable, and the prompt they become."""
