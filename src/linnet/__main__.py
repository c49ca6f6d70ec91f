"""`python -m linnet`."""

from linnet.cli.app import run

if __name__ == "__main__":
    run()
