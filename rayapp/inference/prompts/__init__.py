"""What language models are asked: one file per question and language, versioned."""
