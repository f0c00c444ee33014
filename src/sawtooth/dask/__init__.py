"""Clusters: distributes work with Dask's distributed to the workers of a scheduler, on one machine or many."""

from sawtooth.dask.cluster import Cluster

__all__ = ["Cluster"]
