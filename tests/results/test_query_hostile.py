"""Hostile SQL: whatever a query says, it writes nothing and reads nothing but results."""

import hashlib
from pathlib import Path

import duckdb
import pandas as pd
import pytest

from expected_error import expected_error
from fake_engine import quick
from sawtooth.results.parquet_scan import scanned
from sawtooth.results.query import query

SECRET = "what only this file says"
HOSTILE = [
    # Writing.
    "COPY (SELECT 42) TO '{run}'",
    "copy summary to '{run}' (format json)",
    "/* one */ COPY -- two\n (SELECT 42) TO '{run}'",
    "EXPLAIN COPY (SELECT 42) TO '{run}'",
    "EXPLAIN ANALYZE COPY (SELECT 42) TO '{run}'",
    "EXPLAIN/**/ANALYZE/**/COPY (SELECT 42) TO '{run}'",
    "EXPLAIN ANALYZE -- SELECT 1\n COPY (SELECT 42) TO '{run}'",
    "EXPLAIN (FORMAT json) COPY (SELECT 42) TO '{run}'",
    "SELECT '\udc9b' AS a",
    "EXPLAIN (ANALYZE, FORMAT json) COPY (SELECT 42) TO '{run}'",
    "EXPLAIN ANALYZE (FORMAT json) COPY (SELECT 42) TO '{run}'",
    "WITH x AS (COPY (SELECT 42) TO '{run}') SELECT * FROM x",
    "WITH x AS MATERIALIZED (COPY (SELECT 42) TO '{run}') SELECT 1 FROM x",
    "WITH RECURSIVE y AS (SELECT 1), x AS (COPY (SELECT 42) TO '{run}') SELECT * FROM x, y",
    "SELECT * FROM (WITH x AS (COPY (SELECT 42) TO '{run}') SELECT * FROM x)",
    "EXPLAIN ANALYZE WITH x AS (COPY (SELECT 42) TO '{run}') SELECT * FROM x",
    "SELECT 1 UNION ALL (WITH x AS (COPY (SELECT 42) TO '{run}') SELECT * FROM x)",
    "WITH x AS (COPY (SELECT 42 a, 1 b) TO '{outside}/new' (PARTITION_BY (a), FORMAT csv)) SELECT * FROM x",
    "SELECT * FROM query('COPY (SELECT 42) TO ''{run}''')",
    "SELECT 1; COPY (SELECT 42) TO '{run}'",
    "PREPARE p AS COPY (SELECT 42) TO '{run}'",
    "EXPLAIN ANALYZE PREPARE p AS COPY (SELECT 42) TO '{run}'",
    "EXECUTE IMMEDIATE 'COPY (SELECT 42) TO ''{run}'''",
    "EXPORT DATABASE '{outside}/all'",
    "EXPLAIN ANALYZE EXPORT DATABASE '{outside}/all'",
    "ATTACH '{outside}/new.db'",
    "ATTACH '{outside}/new.db' AS n; CREATE TABLE n.x AS SELECT 1",
    "EXPLAIN ANALYZE ATTACH '{outside}/new.db'",
    "USE memory",
    "CREATE TABLE x AS SELECT 1",
    "EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1",
    "CREATE VIEW summary AS SELECT 1",
    "CREATE OR REPLACE MACRO avg(x) AS 0",
    "CREATE SECRET s (TYPE s3)",
    "CREATE PERSISTENT SECRET s (TYPE s3)",
    "INSERT INTO summary SELECT * FROM summary",
    "EXPLAIN ANALYZE INSERT INTO summary SELECT * FROM summary",
    "WITH x AS (INSERT INTO summary SELECT * FROM summary RETURNING *) SELECT * FROM x",
    "UPDATE summary SET mean_mbps = 0",
    "DELETE FROM summary",
    "DROP VIEW summary",
    "VACUUM",
    "CHECKPOINT",
    # Settings that write, or that unlock what is locked.
    "SET enable_external_access = true",
    "RESET lock_configuration",
    "EXPLAIN ANALYZE SET disabled_filesystems = ''",
    "SET profile_output = '{run}'",
    "PRAGMA enable_profiling = 'json'",
    "PRAGMA database_list",
    "CALL enable_logging(storage = 'file', storage_path = '{outside}')",
    "SELECT * FROM enable_logging('QueryLog', storage = 'file', storage_path = '{outside}')",
    "SELECT * FROM enable_profiling(save_location = '{run}')",
    # Reading elsewhere.
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_csv('{outside}/secret.csv')",
    "SELECT * FROM read_text('{outside}/secret.csv')",
    "SELECT * FROM read_blob('{outside}/secret.csv')",
    "SELECT * FROM read_json('{run}')",
    "SELECT * FROM read_text('file://{outside}/secret.csv')",
    "SELECT * FROM '{outside}/secret.csv'",
    "SELECT * FROM read_parquet('{outside}/*.parquet')",
    "SELECT * FROM parquet_metadata('{outside}/x.parquet')",
    "SELECT * FROM sniff_csv('{outside}/secret.csv')",
    "SELECT * FROM glob('/*')",
    "SELECT * FROM read_duckdb('{outside}/x.db')",
    "SELECT * FROM read_csv('/dev/stdin')",
    "SELECT * FROM read_csv('/proc/self/environ')",
    "EXPLAIN ANALYZE SELECT * FROM read_text('{outside}/secret.csv')",
    "SELECT getenv('HOME')",
    # Extensions, the network, and this process.
    "INSTALL httpfs",
    "FORCE INSTALL httpfs FROM community",
    "LOAD httpfs",
    "LOAD '{outside}/x.duckdb_extension'",
    "EXPLAIN ANALYZE LOAD httpfs",
    "SELECT * FROM read_csv('https://example.org/x.csv')",
    "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
    "SELECT * FROM found",
    "SELECT * FROM sys",
    # No question.
    ";",
    "EXPLAIN",
    "EXPLAIN ANALYZE",
    "EXPLAIN (",
    "EXPLAIN )(",
    "SELECT 1; SELECT 2",
    "BEGIN",
    "\x00",
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result, and beside it a file that no query may touch."""
    out = tmp_path_factory.mktemp("hostile")
    quick(out=out / "results")
    (out / "outside").mkdir()
    (out / "outside" / "secret.csv").write_text(f"a\n{SECRET}\n")
    return out


def digests(home: Path) -> dict[str, str]:
    files = [path for path in home.rglob("*") if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("sql", HOSTILE)
def test_what_wants_more_than_results_is_a_documented_error_and_changes_no_file(
    home: Path, sql: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    before = digests(home)
    run = next((home / "results").glob("small/2*/points/*/run.json"))
    with expected_error(code="bad-query") as caught:
        query(sql.format(run=run, outside=home / "outside"), home / "results")
    assert SECRET not in str(caught.value)
    assert digests(home) == before
    assert query("SELECT count(*) FROM summary", home / "results").num_rows == 1


@pytest.mark.usefixtures("patience")
@pytest.mark.parametrize("how", ["file", "directory"])
def test_a_link_out_of_the_results_is_not_followed(home: Path, how: str, tmp_path: Path) -> None:
    result = quick(out=tmp_path / "results").directory
    run = next(result.glob("points/[0-9]*"))
    moved = tmp_path / "elsewhere"
    place = run / "intervals.parquet" if how == "file" else run
    place.rename(moved)
    place.symlink_to(moved)
    sql = "SELECT count(DISTINCT point) AS n FROM intervals"
    with pytest.warns(match="left out: intervals.parquet is outside of the result"):
        assert query(sql, tmp_path / "results").to_pylist() == [{"n": 7}]


@pytest.mark.parametrize(
    "sql",
    [
        "EXPLAIN SELECT * FROM summary",
        "EXPLAIN ANALYZE SELECT * FROM summary",
        "EXPLAIN (FORMAT json) SELECT * FROM summary",
        "EXPLAIN ANALYZE (SELECT 1) UNION SELECT 2",
        "explain /* why */ analyze -- it\n from summary",
        "EXPLAIN (SELECT 1)",
        "DESCRIBE summary",
        "SUMMARIZE summary",
        "(SELECT 1)",
        "VALUES (1)",
        "SHOW TABLES",
        "SELECT ';' -- COPY",
    ],
)
def test_questions_of_every_form_are_answered(home: Path, sql: str) -> None:
    assert query(sql, home / "results").num_rows > 0


@pytest.mark.parametrize("table", ["intervals", "tcp_info"])
def test_tables_have_the_rows_and_types_that_duckdb_reads_from_the_files_itself(home: Path, table: str) -> None:
    files = sorted((home / "results").glob(f"small/2*/points/*/{table}.parquet"))
    assert files
    with duckdb.connect() as itself:
        whole = f"read_parquet({[str(path) for path in files]}, union_by_name = true)"
        wanted = itself.sql(f"SELECT * FROM {whole} ORDER BY ALL").fetchall()
        kinds = [row[:2] for row in itself.sql(f"DESCRIBE FROM {whole}").fetchall()]
    columns = ", ".join(f'"{name}"' for name, _ in kinds)
    found = query(f"SELECT {columns} FROM {table} ORDER BY ALL", home / "results")
    assert repr([tuple(row.values()) for row in found.to_pylist()]) == repr(wanted)
    told = query(f"DESCRIBE SELECT {columns} FROM {table}", home / "results").to_pylist()
    assert [(row["column_name"], row["column_type"]) for row in told] == kinds


def test_columns_of_files_that_differ_are_those_that_duckdb_makes_of_them(tmp_path: Path) -> None:
    one = {"a": [1, 2], "b": [1.5, None], "c": [None, None], "d": ["x", "y"], "e": [True, False], "f": [None, None]}
    other = {"a": [0.5], "b": [None], "c": ["z"], "e": [True], "f": [None], "g": [7]}
    kinds = {"d": "category", "g": "uint16"}
    for number, table in enumerate((one, other)):
        frame = pd.DataFrame(table)
        frame.astype({name: kind for name, kind in kinds.items() if name in table}).to_parquet(
            tmp_path / f"{number}.parquet", index=False
        )
    files = sorted(tmp_path.glob("*.parquet"))
    with duckdb.connect() as itself:
        itself.register("data", scanned(files, "#file"))
        whole = f"SELECT * FROM read_parquet({[str(path) for path in files]}, union_by_name = true)"
        parts = 'SELECT * EXCLUDE ("#file") FROM data'
        assert itself.sql(f"DESCRIBE {parts}").fetchall() == itself.sql(f"DESCRIBE {whole}").fetchall()
        assert itself.sql(f"{parts} ORDER BY ALL").fetchall() == itself.sql(f"{whole} ORDER BY ALL").fetchall()
        assert itself.sql('SELECT "#file", count(*) FROM data GROUP BY 1 ORDER BY 1').fetchall() == [(0, 2), (1, 1)]


def test_a_column_of_numbers_in_one_file_and_of_words_in_another_is_text(tmp_path: Path) -> None:
    for number, values in enumerate(([1, 2], ["x"])):
        pd.DataFrame({"a": values}).to_parquet(tmp_path / f"{number}.parquet", index=False)
    with duckdb.connect() as itself:
        itself.register("data", scanned(sorted(tmp_path.glob("*.parquet")), "#file"))
        assert itself.sql("SELECT a FROM data ORDER BY 1").fetchall() == [("1",), ("2",), ("x",)]
