"""Values shown in the API document."""
