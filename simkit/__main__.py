"""Let ``python -m simkit`` be the command line."""

from simkit.cli import main

if __name__ == "__main__":
    main()
