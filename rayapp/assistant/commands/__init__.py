"""What a person orders of their memory in a message, and its doing."""
