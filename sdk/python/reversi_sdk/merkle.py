"""The RFC 6962 tree that stands beside the chain: roots and inclusion proofs over SHA-256.

Leaves and nodes are hashed with different first bytes, so that neither can be passed off as the other.
"""

from __future__ import annotations

import hashlib
from typing import List, Sequence

EMPTY_ROOT = hashlib.sha256(b"").digest()


def leaf_hash(body: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + body).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


class Frontier:
    """A growing tree that keeps only the roots of its full subtrees: one hash per bit of its size."""

    def __init__(self) -> None:
        self.size = 0
        self._peaks: List[bytes] = []

    def add(self, leaf: bytes) -> None:
        """Append a leaf hash. Each trailing one bit of the old size is a full subtree of equal height."""
        carry, full = leaf, self.size
        while full & 1:
            carry = node_hash(self._peaks.pop(), carry)
            full >>= 1
        self._peaks.append(carry)
        self.size += 1

    def root(self) -> bytes:
        """The root as of now; smaller subtrees are folded into the larger ones on their left."""
        if not self._peaks:
            return EMPTY_ROOT
        root = self._peaks[-1]
        for peak in reversed(self._peaks[:-1]):
            root = node_hash(peak, root)
        return root


def proves_inclusion(leaf: bytes, index: int, size: int, path: Sequence[bytes], root: bytes) -> bool:
    """Whether `path` shows that `leaf` is number `index` of the `size` leaves under `root`.

    The walk of RFC 9162, 2.1.3.2. It consumes the whole path and must arrive at the top exactly then,
    so a path that is too long, too short, or meant for another index or size fails.
    """
    if not 0 <= index < size:
        return False
    here, last, running = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return False
        if here & 1 or here == last:
            running = node_hash(sibling, running)
            while here and not here & 1:
                here >>= 1
                last >>= 1
        else:
            running = node_hash(running, sibling)
        here >>= 1
        last >>= 1
    return last == 0 and running == root


def proves_consistency(first: int, second: int, path: Sequence[bytes], first_root: bytes, second_root: bytes) -> bool:
    """Whether `path` shows that the tree of `first` leaves is the beginning of the tree of `second`.

    The walk of RFC 9162, 2.1.4.2. Like the one above it must use up the path and arrive exactly then.
    """
    if not 0 <= first <= second:
        return False
    if first == second:
        return not path and first_root == second_root
    if first == 0:
        return not path and first_root == EMPTY_ROOT
    here, last = first - 1, second - 1
    while here & 1:
        here >>= 1
        last >>= 1
    nodes = list(path) if here else [first_root, *path]
    if not nodes:
        return False
    left = right = nodes[0]
    for node in nodes[1:]:
        if last == 0:
            return False
        if here & 1 or here == last:
            left, right = node_hash(node, left), node_hash(node, right)
            while here and not here & 1:
                here >>= 1
                last >>= 1
        else:
            right = node_hash(right, node)
        here >>= 1
        last >>= 1
    return last == 0 and left == first_root and right == second_root
