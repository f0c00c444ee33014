"""Clusters: distributes work with Dask's distributed to the workers of a scheduler, on one machine or many."""

from sawtooth.cluster.cluster import Cluster

__all__ = ["Cluster"]
