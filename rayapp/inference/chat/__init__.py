"""Questions to a language model: budget, breaker, prompt, reading of the answer."""
