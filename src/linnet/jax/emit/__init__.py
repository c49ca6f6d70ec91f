"""From lowered functions to a readable module of `jax.numpy`."""
