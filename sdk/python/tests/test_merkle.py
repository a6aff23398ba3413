"""The tree, against its recursive definition and the known roots of RFC 6962's first leaves."""

from __future__ import annotations

import hashlib
import unittest

from reversi_sdk.merkle import EMPTY_ROOT, Frontier, leaf_hash, node_hash, proves_inclusion

from .support import tree_path, tree_root

LEAVES = [leaf_hash(bytes([n])) for n in range(40)]


class Tree(unittest.TestCase):
    def test_empty_and_single(self) -> None:
        self.assertEqual(EMPTY_ROOT.hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        self.assertEqual(leaf_hash(b"").hex(), "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d")
        self.assertEqual(Frontier().root(), EMPTY_ROOT)

    def test_roots_at_every_size(self) -> None:
        tree = Frontier()
        for size, leaf in enumerate(LEAVES, start=1):
            tree.add(leaf)
            self.assertEqual(tree.size, size)
            self.assertEqual(tree.root(), tree_root(LEAVES[:size]))

    def test_leaf_and_node_are_told_apart(self) -> None:
        left, right = LEAVES[:2]
        self.assertNotEqual(node_hash(left, right), leaf_hash(left + right))
        self.assertEqual(node_hash(left, right), hashlib.sha256(b"\x01" + left + right).digest())


class Inclusion(unittest.TestCase):
    def test_every_leaf_of_every_size(self) -> None:
        for size in range(1, len(LEAVES)):
            root = tree_root(LEAVES[:size])
            for index in range(size):
                path = tree_path(index, LEAVES[:size])
                self.assertTrue(proves_inclusion(LEAVES[index], index, size, path, root))

    def test_games(self) -> None:
        for size in range(1, 20):
            root = tree_root(LEAVES[:size])
            for index in range(size):
                leaf, path = LEAVES[index], tree_path(index, LEAVES[:size])
                self.assertFalse(proves_inclusion(leaf, index, size, path + [root], root), "too long")
                if path:
                    self.assertFalse(proves_inclusion(leaf, index, size, path[:-1], root), "too short")
                    self.assertFalse(proves_inclusion(leaf, index, size, path[1:], root), "too short")
                    # A node shown as though it were a leaf one level down.
                    parent = node_hash(leaf, path[0]) if index % 2 == 0 else node_hash(path[0], leaf)
                    self.assertFalse(proves_inclusion(parent, index // 2, size, path[1:], root), "node for leaf")
                self.assertFalse(proves_inclusion(LEAVES[index + 1], index, size, path, root), "another leaf")
                for other in range(size + 3):
                    if other != index:
                        self.assertFalse(proves_inclusion(leaf, other, size, path, root), "another index")
                self.assertFalse(proves_inclusion(leaf, index, 0, path, root), "size 0")
                self.assertFalse(proves_inclusion(leaf, -1, size, path, root), "negative index")
                for step in range(len(path)):
                    changed = list(path)
                    changed[step] = LEAVES[30]
                    self.assertFalse(proves_inclusion(leaf, index, size, changed, root), "another sibling")


if __name__ == "__main__":
    unittest.main()
