"""Client and independent verifier for svc, an action governance service. Standard library only."""

__version__ = "0.1.0"

from .client import Blocked, Client, Decision, OutcomeNotRecorded, Run, Uncertain
from .errors import InputError, Invalid
from .transport import ServiceError

__all__ = [
    "Blocked",
    "Client",
    "Decision",
    "InputError",
    "Invalid",
    "OutcomeNotRecorded",
    "Run",
    "ServiceError",
    "Uncertain",
]
