"""`linnet.toml`, logical paths to files, and the import graph. Reads files, runs nothing."""

from linnet.packages.graph import LoadedModule, ModuleGraph, load_sources
from linnet.packages.manifest import find_package, read_package
from linnet.packages.package import Dependency, Package
from linnet.packages.resolve import Resolved, resolve_module
from linnet.packages.resources import models_root, stdlib_root

__all__ = [
    "Dependency",
    "LoadedModule",
    "ModuleGraph",
    "Package",
    "Resolved",
    "find_package",
    "load_sources",
    "models_root",
    "read_package",
    "resolve_module",
    "stdlib_root",
]
