"""`python -m fogscale` is the command line."""

from fogscale.cli import main

main()
