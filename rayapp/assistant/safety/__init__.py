"""What an answer must not be taken for."""
