"""From C++ source to a shared object: the compiler, its flags, and the cache of what it made."""
