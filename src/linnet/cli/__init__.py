"""The command line. One module a command, each imported only when it is asked for."""
