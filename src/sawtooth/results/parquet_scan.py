"""Parquet scan: Parquet files of runs as one Arrow dataset, of which only the needed rows and columns are read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sawtooth.errors import InputError

if TYPE_CHECKING:
    from pyarrow.dataset import FileSystemDataset


def scanned(
    files: Sequence[Path], number: str, place: str | None = None, packs: Collection[Path] = ()
) -> FileSystemDataset:
    """All columns of any file, ``number``: the index of a row's file in ``files``, and ``place``: the column of the
    run in files that are in ``packs``; in others it is 0.

    Raises SawtoothError ``bad-query`` for a file that is not Parquet.
    """
    import pyarrow as pa
    from pyarrow import dataset
    from pyarrow.fs import LocalFileSystem

    form, disk = dataset.ParquetFileFormat(), LocalFileSystem()
    fragments, schemas = [], []
    for at, path in enumerate(files):
        partition = dataset.field(number) == pa.scalar(at, pa.int32())
        if place is not None and path not in packs:
            partition &= dataset.field(place) == pa.scalar(0, pa.int32())
        fragment = form.make_fragment(str(path), filesystem=disk, partition_expression=partition)
        try:
            schemas.append(_plain(fragment.physical_schema))
        except (pa.ArrowException, OSError) as error:
            fix = "find the damaged result: sawtooth results --verify"
            raise InputError("bad-query", f"cannot be read: {error}", file=path, field="SQL", fix=fix) from None
        fragments.append(fragment)
    schema = _together(schemas)
    for name in (number, place):
        if name is not None and name not in schema.names:
            schema = schema.append(pa.field(name, pa.int32()))
    return dataset.FileSystemDataset(fragments, schema, form, disk)


def _plain(schema: Any) -> Any:
    """Without pandas's metadata; dictionary-encoded words as text."""
    import pyarrow as pa

    kinds = (field.type for field in schema)
    plain = (kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds)
    return pa.schema(list(zip(schema.names, plain, strict=True)))


def _together(schemas: Sequence[Any]) -> Any:
    """Column types that fit all files."""
    import pyarrow as pa

    try:
        return pa.unify_schemas(list(dict.fromkeys(schemas)), promote_options="permissive")
    except pa.ArrowTypeError:
        kinds: dict[str, list[Any]] = {}
        for field in (field for schema in dict.fromkeys(schemas) for field in schema):
            kinds.setdefault(field.name, []).append(field.type)
        return pa.schema([(name, _one(found)) for name, found in kinds.items()])


def _one(kinds: Sequence[Any]) -> Any:
    """Text if one is text and another a number."""
    import pyarrow as pa

    try:
        whole = pa.unify_schemas([pa.schema([("one", kind)]) for kind in kinds], promote_options="permissive")
        return whole.field("one").type
    except pa.ArrowTypeError:
        return pa.string()
