"""`python -m tailrace.api.cli`, for where the script `tailrace` is not on the path."""

from .main import main

main()
