"""Datasets: a study's rows under an address, in an object store on loopback or a directory; they grow, and can be
resumed.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import pandas as pd
import pyarrow.parquet as pq
import pytest
from moto.server import ThreadedMotoServer

from expected_error import expected_error
from fake_engine import Failing, Fake, quick, study
from sawtooth.dask import Cluster
from sawtooth.study import Dataset, dataset, run_into


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    store = fsspec.filesystem("s3", skip_instance_cache=True)
    if not store.exists("results"):
        store.mkdir("results")
    return "s3://results"


def run(url: str, *, engine: Any = None, **options: Any) -> Dataset:
    with ThreadPoolExecutor(1) as executor:
        return run_into(study(), url, engine=engine or Fake(), executor=executor, quiet=True, **options)


@pytest.mark.usefixtures("patience")
def test_an_object_store_gets_the_rows_of_the_study_s_table_with_the_fields_of_its_scenarios(
    bucket: str, tmp_path: Path
) -> None:
    rows = run(f"{bucket}/one").read().sort_values("point", ignore_index=True)
    details = quick(out=tmp_path).details
    singles = details[details["seed"] != "all"].reset_index(drop=True)
    assert list(rows["mean_mbps"]) == list(singles["mean_mbps"])
    assert list(rows["loss_percent"]) == list(singles["loss_percent"])
    assert set(rows["chain.loss"]) == {"0%", "1%", "2%", "3%"}
    assert set(rows["flows.0.cc"]) == {"cubic"}
    assert rows["digest"].is_unique


@pytest.mark.usefixtures("patience")
def test_it_continues_by_what_is_there_and_counts_each_point_once(bucket: str, marks: Path) -> None:
    url = f"{bucket}/again"
    with expected_error(code="core-failed"):
        run(url, engine=Failing(str(marks)))
    before = len(list(marks.iterdir()))
    kept = run(url, engine=Fake(str(marks))).read()
    assert len(kept) == 8
    # Only the failed one of the earlier points ran again.
    assert len(list(marks.iterdir())) - before == 8 - 4
    run(url, engine=Fake(str(marks)))
    assert len(list(marks.iterdir())) - before == 8 - 4


@pytest.mark.usefixtures("patience")
def test_workers_of_a_cluster_need_no_store(bucket: str) -> None:
    with Cluster("local:1") as cluster:
        rows = run_into(study(), f"{bucket}/cluster", engine=Fake(), executor=cluster, quiet=True).read()
    assert len(rows) == 8


@pytest.mark.parametrize("where", ["directory", "object store"])
@pytest.mark.usefixtures("patience")
def test_readers_read_it_while_it_grows(
    where: str, bucket: str, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import duckdb
    import polars

    url = f"file://{tmp_path}/out" if where == "directory" else f"{bucket}/growing"
    store, root = fsspec.core.url_to_fs(url)
    options = {} if where == "directory" else {"aws_endpoint_url": endpoint, "aws_allow_http": "true"}
    connection = duckdb.connect()
    if where == "object store":
        connection.register_filesystem(store)
    monkeypatch.setattr(dataset, "ROWS", 3)
    seen: list[int] = []

    class Looking(dataset.Writer):
        def flush(self) -> None:
            super().flush()
            store.invalidate_cache()
            (place,) = (store.unstrip_protocol(path) for path in store.ls(f"{root}/small", detail=False))
            files = f"{place}/part-*.parquet".removeprefix("file://")
            seen.append(len(pd.read_parquet(place)))
            asked = connection.sql(f"SELECT count(*), count(DISTINCT digest) FROM read_parquet('{files}')").fetchall()
            assert asked == [(seen[-1], seen[-1])]
            assert polars.read_parquet(files, columns=["digest"], storage_options=options).n_unique() == seen[-1]
            assert not store.glob(f"{place}/.*")

    monkeypatch.setattr(dataset, "Writer", Looking)
    made = run(url)
    assert seen == [3, 6, 8]
    schemas = {str(pq.read_schema(store.open(file))) for file in store.glob(f"{made.url}/part-*")}
    assert len(schemas) == 1


def test_a_part_that_is_damaged_is_named(tmp_path: Path) -> None:
    made = run(f"file://{tmp_path}/out")
    (part,) = Path(made.url.removeprefix("file://")).glob("part-*")
    part.write_bytes(part.read_bytes()[:-20])
    with expected_error(code="not-a-result") as caught:
        made.read()
    assert part.name in str(caught.value)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("nosuch://bucket", "bad-usage"),
        ("file:///proc/sawtooth", "unwritable-output"),
        ("s3://no-such-bucket/x", "unwritable-output"),
    ],
)
def test_a_store_that_refuses_is_reported_before_anything_runs(bucket: str, marks: Path, url: str, code: str) -> None:
    with expected_error(code=code):
        run(url, engine=Fake(str(marks)))
    assert not list(marks.iterdir())


def test_columns_of_all_points_have_one_type() -> None:
    table = dataset.flat({"a": {"b": [1, 2], "c": [{"d": True}]}, "e": "1 ms"})
    assert table == {"a.b": "[1, 2]", "a.c.0.d": True, "e": "1 ms"}
    assert str(dataset._type({int})) == "int64"
    assert str(dataset._type({int, float})) == "double"
    assert str(dataset._type({int, str})) == "string"
    assert str(dataset._type({bool})) == "bool"
