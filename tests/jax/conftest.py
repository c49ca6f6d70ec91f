"""JAX's tests are left out where JAX is not installed."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("jaxlib") else ["test_*.py"]
