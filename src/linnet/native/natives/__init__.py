"""Native implementations of ops: one table, a file for each family."""
