"""Pure rules around language models: what is asked, what an answer says, what it may cost."""
