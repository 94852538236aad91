"""``python -m paritydbg``: the command line, where the script itself is not on the path."""

from paritydbg.cli.main import main

if __name__ == "__main__":
    main()
