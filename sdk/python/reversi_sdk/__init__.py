"""Client and independent verifier for svc, an action governance service. Standard library only."""

__version__ = "0.1.0"

from .aio import AsyncClient, AsyncRun
from .client import Action, Blocked, Client, Decision, EffectMissing, OutcomeNotRecorded, Run, Uncertain
from .decorate import governed
from .errors import InputError, Invalid
from .reading import ReadFailed
from .transport import ServiceError

__all__ = [
    "Action",
    "AsyncClient",
    "AsyncRun",
    "Blocked",
    "Client",
    "Decision",
    "EffectMissing",
    "InputError",
    "Invalid",
    "OutcomeNotRecorded",
    "ReadFailed",
    "Run",
    "ServiceError",
    "Uncertain",
    "governed",
]
