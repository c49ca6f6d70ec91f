"""Measurements: each file or folder here is a command of its own."""
