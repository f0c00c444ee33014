"""The option ``--cluster`` of commands that fan out work, and the workers that it means."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import click

from sawtooth.errors import InputError

if TYPE_CHECKING:
    from sawtooth.cluster import Cluster

cluster_option = click.option(
    "--cluster", metavar="WHERE", help="Workers of a Dask scheduler: tcp://HOST:PORT, its JSON file, local or local:N."
)


def workers(cluster: str | None, jobs: int | None) -> AbstractContextManager[Cluster | None]:
    """Of --cluster, for the time of a command; None: processes or threads of our own, ``jobs``."""
    if cluster is None:
        return nullcontext()
    if jobs is not None:
        raise InputError("bad-usage", "a cluster has its own workers", field="--jobs", fix="leave it out, or local:N")
    from sawtooth.cluster import Cluster

    return Cluster(cluster)
