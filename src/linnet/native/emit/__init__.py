"""Specialised IR to readable C++ source."""
