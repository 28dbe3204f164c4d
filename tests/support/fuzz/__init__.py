"""Random calls and a soak, which tools/fuzz runs."""
