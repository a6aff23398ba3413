"""Makes `python -m reversi_sdk` the command line."""

import sys

from .cli import main

sys.exit(main())
