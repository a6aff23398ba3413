"""Makes `python -m reversi_sdk` the command line."""

from .cli import run

run()
