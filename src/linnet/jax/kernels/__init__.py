"""Functions that generated modules hold a copy of, where they use them."""
