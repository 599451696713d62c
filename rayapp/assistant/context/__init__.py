"""What an assistant is told before it answers."""
