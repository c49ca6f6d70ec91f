"""Loading models and running their entries."""
