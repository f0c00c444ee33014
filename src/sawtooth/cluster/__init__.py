"""Clusters: work fanned out by Dask's distributed over the workers of a scheduler, here or on many machines."""

from sawtooth.cluster.cluster import Cluster

__all__ = ["Cluster"]
