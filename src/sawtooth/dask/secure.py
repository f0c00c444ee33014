"""TLS in both directions, with certificates that the user names, or one made for a single run whose key is never on
disk.

A peer without a certificate of the same authority is refused before anything it sends is read.
"""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from sawtooth.errors import InputError, SawtoothError, install_extra


class Files(NamedTuple):
    """The user's PEM files: the authority's certificate, this client's, and its key (None: in the second file)."""

    ca: str | os.PathLike[str] | None = None
    certificate: str | os.PathLike[str] | None = None
    key: str | os.PathLike[str] | None = None

    def security(self) -> Any:
        """The object that distributed expects; None without files: Dask's own configuration applies.

        Raises SawtoothError: ``bad-usage`` if a file is missing or does not fit the others.
        """
        import distributed

        if not any(self):
            return None
        for name in ("ca", "certificate"):
            if getattr(self, name) is None:
                fix = "give --cluster-ca, --cluster-certificate and --cluster-key (in Python ca, certificate and key)"
                raise InputError("bad-usage", f"TLS needs the {name}, too", field="cluster", fix=fix)
        ca, certificate, key = (None if one is None else os.fspath(one) for one in self)
        for one in filter(None, (ca, certificate, key)):
            if not Path(one).is_file():
                fix = "name a PEM file that you may read"
                raise InputError("file-not-found", "there is no such file", file=one, field="cluster", fix=fix)
        make: Any = distributed.Security
        found = make(require_encryption=True, tls_ca_file=ca, tls_client_cert=certificate, tls_client_key=key)
        try:
            found.get_connection_args("client")
        except (OSError, ValueError) as error:
            why = error.reason if isinstance(error, ssl.SSLError) and error.reason else str(error)
            fix = "give the authority's certificate, your certificate and its key, each as PEM and not encrypted"
            message = f"these files are not a TLS certificate with its key: {why}"
            raise InputError("bad-usage", message, file=certificate, field="cluster", fix=fix) from error
        return found


class Pair(NamedTuple):
    """A self-signed certificate and its key, in PEM."""

    certificate: str
    key: str

    @classmethod
    def made(cls) -> Pair:
        """Makes a new pair. Raises SawtoothError ``tool-missing`` without the package cryptography."""
        import distributed

        try:
            make: Any = distributed.Security.temporary
            new = make()
        except ImportError as error:
            message = "cryptography is not installed, which --cluster local needs for TLS"
            fix = install_extra("cluster")
            raise SawtoothError("tool-missing", message, fix=fix) from error
        return cls(new.tls_ca_file, new.tls_worker_key)

    @contextlib.contextmanager
    def held(self) -> Iterator[Any]:
        """The object that distributed expects, for all roles. OpenSSL reads keys from files: this file is in memory,
        only this process and user can see it, and it ends with the block or the process."""
        import distributed

        make: Any = distributed.Security
        memory = os.memfd_create("certificate")
        try:
            with open(memory, "w", encoding="ascii", closefd=False) as file:
                file.write(self.certificate + self.key)
            both = f"/proc/self/fd/{memory}"
            roles = dict.fromkeys(("tls_client_cert", "tls_scheduler_cert", "tls_worker_cert"), both)
            keys = dict.fromkeys(("tls_client_key", "tls_scheduler_key", "tls_worker_key"))
            yield make(require_encryption=True, tls_ca_file=self.certificate, **roles, **keys)
        finally:
            os.close(memory)
