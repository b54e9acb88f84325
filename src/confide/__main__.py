"""`python -m confide`: the same as the command `confide`."""

import sys

from confide.cli import main

sys.exit(main())
