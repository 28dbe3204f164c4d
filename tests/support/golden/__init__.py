"""Golden values: files of ../golden, what they hold, and how they are written (__main__.py)."""
