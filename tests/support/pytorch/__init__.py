"""PyTorch, as tests of fastlinalg.torch use it."""
