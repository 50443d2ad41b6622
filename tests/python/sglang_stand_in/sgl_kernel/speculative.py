# SPDX-License-Identifier: Apache-2.0
"""The kernel that reads the trees of the method NGRAM from their masks."""

from __future__ import annotations

from typing import Any


def reconstruct_indices_from_tree_mask(
    mask: Any, lengths: Any, positions: Any, index: Any, children: Any, siblings: Any, count: int, width: int
) -> None:
    """Writes the position, the number, the first child and the next sibling of each node; -1: there is none."""
    trees = mask[: count * width * width].view(count, width, width).tolist()
    for i, tree in enumerate(trees):
        above = [[node for node in range(row) if tree[row][node]] for row in range(width)]
        parents = [nodes[-1] if nodes else -1 for nodes in above]
        for row in range(width):
            at = i * width + row
            positions.view(-1)[at] = int(lengths[i]) + len(above[row])
            index.view(-1)[at] = at
            after = [node for node in range(row + 1, width) if parents[node] == row]
            children.view(-1)[at] = after[0] if after else -1
            others = [node for node in range(row + 1, width) if parents[row] >= 0 and parents[node] == parents[row]]
            siblings.view(-1)[at] = others[0] if others else -1
