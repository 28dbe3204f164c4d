"""What several tests have in common. A test imports it as `from support.shapes import SGEMM`, wherever it lies."""
