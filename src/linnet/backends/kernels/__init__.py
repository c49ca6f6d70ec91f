"""Functions that generated Python modules of every framework hold copies of."""
