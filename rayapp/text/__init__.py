"""Hebrew and English text: normal forms, tokens, lemmas, concepts, secrets."""
