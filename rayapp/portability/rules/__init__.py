"""Rules of portability: which collections there are, and what an archive may hold. Pure."""
