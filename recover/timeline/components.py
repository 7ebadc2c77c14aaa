"""Connected components of an undirected graph."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def components(ends: "np.ndarray", other_ends: "np.ndarray") -> "tuple[np.ndarray, np.ndarray]":
    """Return each node of a graph, and a node of its component that is the same for all nodes of the component.

    Parameters
    ----------
    ends, other_ends
        Both ends of each edge.
    """
    import numpy as np

    nodes, places = np.unique(np.concatenate([ends, other_ends]), return_inverse=True)
    parents = list(range(len(nodes)))

    def root_of(node: int) -> int:
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    for one, other in zip(places[: len(ends)].tolist(), places[len(ends) :].tolist(), strict=True):
        parents[root_of(one)] = root_of(other)
    return nodes, nodes[[root_of(node) for node in range(len(nodes))]]
