"""What backends that print Python source share.

A backend is a `Writer`, which adds to the base what its framework calls things, and a
`ModuleWriter`; what it prints in its own way (members, branches, device loops) stands in its own
`emit` folder.
"""
