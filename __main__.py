"""`python -m tailrace`: the command line, for where the script `tailrace` is not on the path."""

from .api.cli import main

main()
