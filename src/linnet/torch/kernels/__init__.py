"""Functions that generated PyTorch modules hold a copy of: see `linnet.backends.sources`."""
