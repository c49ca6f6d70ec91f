"""What `linnet.passes.bounds` is made of: abstract values, host expressions, the analysis."""
