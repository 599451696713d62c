"""The stack on one machine: up and down, command line, demo."""
