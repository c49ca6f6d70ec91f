"""Specialised IR to readable Python source."""
