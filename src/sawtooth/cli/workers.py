"""The options that belong to ``--cluster``, for commands that distribute work, and the workers that they select."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from sawtooth.errors import InputError

if TYPE_CHECKING:
    from sawtooth.dask import Cluster


class ClusterOptions(NamedTuple):
    """The values of --cluster and its TLS options."""

    cluster: str
    ca: str | None
    certificate: str | None
    key: str | None


def cluster_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add all four options, as the parameter ``cluster``: ``ClusterOptions``, or None without --cluster."""

    @click.option(
        "--cluster",
        metavar="WHERE",
        help="Run on a Dask scheduler's workers: tls://HOST:PORT, tcp://HOST:PORT, its JSON file, local or local:N.",
    )
    @click.option(
        "--cluster-ca", metavar="FILE", help="Certificate of the authority that signed the scheduler's certificate."
    )
    @click.option("--cluster-certificate", metavar="FILE", help="Your certificate, for a scheduler with TLS.")
    @click.option("--cluster-key", metavar="FILE", help="Its key (default: in the same file).")
    @functools.wraps(command)
    def called(
        *arguments: Any,
        cluster: str | None,
        cluster_ca: str | None,
        cluster_certificate: str | None,
        cluster_key: str | None,
        **options: Any,
    ) -> Any:
        files = (cluster_ca, cluster_certificate, cluster_key)
        if cluster is None and any(files):
            fix = "add --cluster tls://HOST:PORT, or remove the certificates"
            raise InputError("bad-usage", "certificates are for a cluster", field="--cluster", fix=fix)
        where = None if cluster is None else ClusterOptions(cluster, *files)
        return command(*arguments, cluster=where, **options)

    return called


def workers(where: ClusterOptions | None, jobs: int | None) -> AbstractContextManager[Cluster | None]:
    """The workers of --cluster during a command; None for ``jobs`` processes or threads on this machine."""
    if where is None:
        return nullcontext()
    if jobs is not None:
        raise InputError(
            "bad-usage", "a cluster has its own workers", field="--jobs", fix="remove --jobs, or use --cluster local:N"
        )
    from sawtooth.dask import Cluster

    return Cluster(where.cluster, ca=where.ca, certificate=where.certificate, key=where.key)
