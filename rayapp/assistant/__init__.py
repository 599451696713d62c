"""What an assistant is given and tells: context, conversations, tools, personality."""
