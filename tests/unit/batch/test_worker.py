"""`guideway.batch.Worker` on dicts, Arrow and pandas; in workers of Ray, Dask, Daft and Spark."""

from __future__ import annotations

import datetime
import json
import pickle
from dataclasses import dataclass
from typing import Any, Literal

import pytest

import guideway as gw
from guideway.batch import Worker, worker as worker_module
from guideway.batch.columns import _Types
from guideway.errors import InvalidConstraintError, InvalidRequestError


@dataclass
class Event:
    name: str
    day: datetime.date
    when: datetime.datetime | None
    tags: list[str]
    price: float | None
    seats: dict[str, int]
    mood: Literal["fine", "tired"]


SCHEMA = gw.JsonSchema(
    {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 9}, "age": {"type": "integer", "minimum": 0}},
        "required": ["name", "age"],
    }
)
COUNT = 40
ROWS: dict[str, list[Any]] = {
    "id": [f"r{number}" for number in range(COUNT)],
    "text": [f"Person {number} likes tea." for number in range(COUNT)],
}
OPTIONS: dict[str, Any] = {
    "prompt": "Text: {text}\nRecord:\n",
    "column": "person",
    "id_column": "id",
    "max_tokens": 40,
    "temperature": 0.8,
}


def expected() -> dict[str, Any]:
    values, errors = Worker("tiny", SCHEMA, **OPTIONS).values(ROWS, COUNT)
    assert errors == [None] * COUNT
    assert len({json.dumps(one) for one in values}) > COUNT // 2
    return dict(zip(ROWS["id"], values, strict=True))


def test_rows_as_a_dict() -> None:
    made = Worker("tiny", gw.Regex("[ab]{3}"), prompt="{id}: {text}", temperature=1.0)(ROWS)
    assert list(made) == ["id", "text", "output", "output_error"]
    assert all(set(str(one)) <= set("ab") for one in made["output"])


def test_a_row_does_not_depend_on_the_others() -> None:
    worker = Worker("tiny", gw.Regex("[ab]{12}"), temperature=1.0)
    whole, _ = worker.values(ROWS, COUNT)
    part, _ = worker.values({"text": ROWS["text"][7:9]}, 2)
    assert part == whole[7:9]
    assert len(set(whole)) > COUNT // 2


def test_errors_of_rows() -> None:
    good, bad = json.dumps(gw.to_wire(gw.Regex("[ab]{3}"))), '{"guideway": 7}'
    rows = {"text": ["a", None, "c", "d", "e"], "rule": [good, good, bad, None, '{"type": "boolean"}']}
    worker = Worker("tiny", gw.Choice(["default"]), constraint_column="rule", max_tokens=9)
    values, errors = worker.values(rows, 5)
    assert values[0] is not None
    assert set(values[0]) <= set("ab")
    assert values[3] == "default"
    assert values[4] in ("true", "false")
    assert [None if one is None else one.partition(":")[0] for one in errors] == [
        None,
        "InvalidRequestError",
        "UnsupportedError",
        None,
        None,
    ]
    with pytest.raises(InvalidRequestError, match="'text'"):
        Worker("tiny", on_error="raise").values({"text": [None]}, 1)
    with pytest.raises(InvalidRequestError, match="no column 'text'"):
        worker({"txt": ["a"]})


def test_constraints_of_rows() -> None:
    given = ['{"const": null}', "false", {"enum": ["a"], "const": None}, {"enum": object()}, "[" * 100_000, 3]
    texts, errors = Worker("tiny", prompt="x", constraint_column="c", max_tokens=9).values({"c": given}, len(given))
    assert texts == ["null", None, '"a"', None, None, None]
    assert [error is None for error in errors] == [True, False, True, False, False, False]


def test_columns_of_different_lengths() -> None:
    with pytest.raises(InvalidRequestError, match="the column 'other' has 1 rows, and another has 2"):
        Worker("tiny")({"text": ["a", "b"], "other": ["a"]})


def test_types_of_a_row_need_no_import() -> None:
    document = gw.to_wire(int)
    document["spec"]["type"] = {"path": "os:system"}
    del document["digest"]
    values, errors = Worker("tiny", constraint_column="rule").values({"text": ["a"], "rule": [document]}, 1)
    assert errors == [None]
    int(values[0])


def test_templates() -> None:
    for template in ("{text.__class__}", "{text[0]}", "{}", "{text!r}", "{text:>9}", "{0}", "{text"):
        if template == "{0}":
            assert Worker("tiny", prompt=template).fields == ("0",)  # a column may have this name
            continue
        with pytest.raises(ValueError):
            Worker("tiny", prompt=template)
    assert Worker("tiny", prompt="{{x}} {b} {a} {b}").needed == ("b", "a")


def test_arguments() -> None:
    with pytest.raises(ValueError, match="on_error"):
        Worker("tiny", on_error="ignore")  # type: ignore[arg-type]  # the slip is the test
    with pytest.raises(TypeError, match="name of a model"):
        Worker(object())  # type: ignore[arg-type]  # the slip is the test
    with pytest.raises(TypeError, match="unknown options"):
        Worker("tiny", temprature=1)
    with pytest.raises(InvalidConstraintError, match="extract"):
        Worker("tiny", gw.Regex("a"), extract=True)
    with pytest.raises(TypeError, match="DataFrame"):
        Worker("tiny")([1])


def test_an_empty_batch_and_a_pickle_load_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr(worker_module, "load", refuse)
    worker = pickle.loads(pickle.dumps(Worker("other", Event)))
    assert worker({"text": []})["text"] == []
    with pytest.raises(AssertionError):
        worker({"text": ["a"]})


def test_extract() -> None:
    worker = Worker("tiny", SCHEMA, extract=True, max_tokens=40)
    values, _ = worker.values({"text": ["Ada is 36."]}, 1)
    assert values == [gw.extract(worker.model, "Ada is 36.", SCHEMA, max_tokens=40)]  # type: ignore[arg-type]  # a local model


@pytest.mark.engine("pyarrow")
def test_arrow_types() -> None:
    import pyarrow as pa

    worker = Worker("tiny", Event, max_tokens=200, temperature=0.8)
    assert worker.arrow_type == pa.struct(
        [
            ("name", pa.string()),
            ("day", pa.date32()),
            ("when", pa.timestamp("us", tz="UTC")),
            ("tags", pa.list_(pa.string())),
            ("price", pa.float64()),
            ("seats", pa.map_(pa.string(), pa.int64())),
            ("mood", pa.string()),
        ]
    )
    table = worker(pa.table({"text": ["A talk", "A walk", None]}))
    assert table.schema == worker.arrow_schema(pa.schema([("text", pa.string())]))
    rows = table.to_pylist()
    assert isinstance(rows[0]["output"]["day"], datetime.date)
    assert rows[2]["output"] is None
    assert rows[2]["output_error"].startswith("InvalidRequestError: ")
    batch = next(worker.arrow(pa.table({"text": ["A talk", "A walk"]}).to_batches()))
    assert isinstance(batch, pa.RecordBatch)
    assert batch.to_pylist() == rows[:2]
    assert Worker("tiny", on_error="raise")(pa.table({"text": ["a"]})).schema.names == ["text", "output"]


@pytest.mark.engine("pyarrow")
@pytest.mark.parametrize(
    ("output", "text"),
    [
        (int, "int64"),
        (float, "double"),
        (bool, "bool"),
        (str, "string"),
        (datetime.date, "date32[day]"),
        (list[int | None], "list<item: int64>"),
        (dict[str, bool], "map<string, bool>"),
        (Literal[1, 2], "int64"),
        (Literal[1, "a"], "string"),
        (int | str, "string"),
        (int | float, "double"),
        (tuple[int, str], "string"),
        (gw.Regex("a"), "string"),
        (gw.JsonSchema({}), "string"),
        (gw.JsonSchema({"const": {"a": 1}}), "string"),
        (
            gw.JsonSchema({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}}}),
            "bool",
        ),
        (None, "string"),
    ],
    ids=str,
)
def test_types_of_columns(output: Any, text: str) -> None:
    assert str(Worker("tiny", output).arrow_type) == text


def test_a_reference_by_an_anchor_is_not_the_root() -> None:
    types = _Types({"type": "object", "$defs": {"a": {"$anchor": "name", "type": "string"}, "b c": {"type": "null"}}})
    assert types._resolved({"$ref": "#name"}) is None  # so the column has JSON text
    assert types._resolved({"$ref": "other#/$defs/a"}) is None
    assert types._resolved({"$ref": "#/$defs/a"})["type"] == "string"
    assert types._resolved({"$ref": "#/$defs/b%20c"})["type"] == "null"
    assert types._resolved({"$ref": "#"})["type"] == "object"


@pytest.mark.engine("pyarrow")
def test_recursive_schemas_end() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#"}}}
    assert str(Worker("tiny", gw.JsonSchema(node)).arrow_type).startswith("struct<next: struct<next: ")


@pytest.mark.engine("pyarrow")
def test_values_that_do_not_fit_a_column() -> None:
    import pyarrow as pa

    schema = gw.JsonSchema({"enum": [2**70]})
    (row,) = Worker("tiny", schema)(pa.table({"text": ["a"]})).to_pylist()
    assert row["output"] is None
    assert "does not fit a column of 64 bits" in row["output_error"]


@pytest.mark.engine("pandas", "pyarrow")
def test_pandas() -> None:
    import pandas as pd

    frame = pd.DataFrame({**ROWS}).iloc[5:9]
    made = Worker("tiny", SCHEMA, **OPTIONS)(frame)
    assert made.index.tolist() == [5, 6, 7, 8]
    assert dict(zip(made["id"], made["person"], strict=True)).items() <= expected().items()
    assert str(made["person"].dtype) == "struct<name: string, age: int64>[pyarrow]"
    missing = Worker("tiny")(pd.DataFrame({"text": [None, float("nan"), pd.NA]}))
    assert missing["output"].isna().all()


# -- frameworks: `make test-cluster`


@pytest.mark.engine("ray", "pyarrow")
@pytest.mark.filterwarnings("ignore")
def test_ray_data() -> None:
    import ray
    import ray.data

    from guideway.batch.ray import check_nodes, versions

    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        assert list(check_nodes().values()) == [versions()]
        rows = ray.data.from_items([{"id": i, "text": t} for i, t in zip(ROWS["id"], ROWS["text"], strict=True)])
        made = rows.repartition(4).map_batches(
            Worker,
            fn_constructor_args=("tiny", SCHEMA),
            fn_constructor_kwargs=OPTIONS,
            batch_format="pyarrow",
            batch_size=10,
            compute=ray.data.ActorPoolStrategy(size=2),
        )
        table = made.take_all()
        assert str(made.schema().base_schema.field("person").type) == "struct<name: string, age: int64>"
        numpy = rows.limit(3).map_batches(Worker, fn_constructor_args=("tiny", SCHEMA), fn_constructor_kwargs=OPTIONS)
        some = numpy.take_all()
    finally:
        ray.shutdown()
    assert {one["id"]: one["person"] for one in table} == expected()
    assert {one["id"]: one["person"] for one in some}.items() <= expected().items()


@pytest.mark.engine("dask", "distributed", "pandas", "pyarrow")
@pytest.mark.filterwarnings("ignore")
def test_dask() -> None:
    import dask.dataframe as dd
    import pandas as pd
    from dask.distributed import Client, LocalCluster

    worker = Worker("tiny", SCHEMA, **OPTIONS)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        frame = dd.from_pandas(pd.DataFrame(ROWS), npartitions=4)
        made = frame.map_partitions(worker, meta=worker(frame._meta))
        assert str(made.dtypes["person"]) == "struct<name: string, age: int64>[pyarrow]"
        table = made.compute()
    assert dict(zip(table["id"], table["person"], strict=True)) == expected()


@pytest.mark.engine("daft", "pyarrow")
@pytest.mark.filterwarnings("ignore")
def test_daft() -> None:
    import daft

    from guideway.batch.frameworks import daft_function

    generated = daft_function(Worker("tiny", SCHEMA, **OPTIONS), max_concurrency=2)
    frame = daft.from_pydict(ROWS).select("id", generated(daft.col("text"), daft.col("id")))
    assert frame.schema()["person"].dtype == daft.DataType.struct(
        {"name": daft.DataType.string(), "age": daft.DataType.int64()}
    )
    assert {one["id"]: one["person"] for one in frame.to_pylist()} == expected()


@pytest.mark.engine("pyspark", "pandas", "pyarrow")
@pytest.mark.filterwarnings("ignore")
def test_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil
    import sys

    from pyspark.sql import SparkSession

    from guideway.batch.frameworks import spark_schema

    if shutil.which("java") is None:
        pytest.skip("Spark needs a Java runtime")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    session = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
    try:
        worker = Worker("tiny", SCHEMA, **OPTIONS)
        rows = list(zip(ROWS["id"], ROWS["text"], strict=True))
        frame = session.createDataFrame(rows, ["id", "text"]).repartition(4)
        made = frame.mapInArrow(worker.arrow, spark_schema(worker, frame.schema))
        assert made.schema["person"].dataType.simpleString() == "struct<name:string,age:bigint>"
        table = made.collect()
    finally:
        session.stop()
    assert {one["id"]: one["person"].asDict() for one in table} == expected()
