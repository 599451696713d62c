"""Pure rules: scenes, patterns, support, wording, hints."""
