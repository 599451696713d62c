"""What is learned from stored exchanges: a model proposes, rules decide."""
