"""`python -m dovetail.parallel` runs a script in several workers."""

import sys

from .script_runner import main

if __name__ == "__main__":
    sys.exit(main())
