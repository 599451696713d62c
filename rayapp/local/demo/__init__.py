"""The demo: a bilingual conversation, asked over HTTP."""
