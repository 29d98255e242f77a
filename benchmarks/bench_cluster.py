"""`guideway.batch.Worker` with two worker processes of Ray Data, Dask, Daft and Spark, against one process with two threads.

    python benchmarks/bench_cluster.py [--rows 1000] [--rounds 3] [--frameworks ray dask daft spark] [--record]

The model is `tiny`; the rows have a JSON Schema with two properties and are sampled. In one process, `guideway.batch` runs
all rows: in one call with two threads of ONNX Runtime, or in two threads of Python with a model each; the faster of the two
counts. In a framework, each worker process has one thread. Each worker
reports when each of its batches began and ended, and its processor time: "rows/s" is the number of rows by the time from the
first beginning to the last end, so starting the framework and loading the model do not count, but its idle times do. "rows
per CPU second" counts the processor time of the workers only. Rounds alternate between the process and the framework,
because other programs share the machine; the ratio is the median of the ratios of the rounds.

Bar: at least 0.9 of the throughput of the one process.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import Any

import guideway as gw
from guideway.batch import BatchRequest, Worker
from guideway.engines.onnx import OnnxEngine
from harness.report import Report

SCHEMA = gw.JsonSchema(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 12},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
        },
        "required": ["name", "age"],
    }
)
OPTIONS: dict[str, Any] = {
    "prompt": "Text: {text}\nRecord:\n",
    "id_column": "id",
    "max_tokens": 40,
    "temperature": 0.8,
    "batch_size": 16,
}
FOLDER = Path(gw.__file__).parent / "tiny"
TIMES = ("begin", "end", "cpu")


class TimedWorker(Worker):
    """A worker that adds the begin and end of its batch, and the processor time of its process, to each row."""

    def arrow_schema(self, schema: Any) -> Any:
        import pyarrow as pa

        made = super().arrow_schema(schema)
        return pa.schema([*made, *(pa.field(name, pa.float64()) for name in TIMES)])

    def _table(self, rows: Any) -> Any:
        import pyarrow as pa

        if rows.num_rows:
            _ = self.model  # loading does not count
        begin, cpu = time.time(), time.process_time()
        values, errors = self.values({name: rows.column(name).to_pylist() for name in self.needed}, rows.num_rows)
        times = begin, time.time(), time.process_time() - cpu
        schema = self.arrow_schema(rows.schema)
        new = {self.column: self._array(values), self.error_column: pa.array(errors, pa.string())}
        new |= {name: pa.array([one] * rows.num_rows, pa.float64()) for name, one in zip(TIMES, times, strict=True)}
        arrays = [new[name] if name in new else rows.column(name) for name in schema.names]
        return type(rows).from_arrays(arrays, schema=schema)


def rows_of(count: int) -> list[dict[str, str]]:
    return [{"id": f"r{number}", "text": f"Person {number} likes tea."} for number in range(count)]


def rates(table: list[dict[str, Any]]) -> tuple[float, float]:
    """Rows per second, and rows per second of processor time."""
    if any(isinstance(one["output_error"], str) for one in table):  # pandas writes NaN where there is no error
        raise SystemExit("a row has an error")
    calls = {(one["begin"], one["end"], one["cpu"]) for one in table}
    seconds = max(end for _, end, _ in calls) - min(begin for begin, _, _ in calls)
    return len(table) / seconds, len(table) / sum(cpu for _, _, cpu in calls)


def one_process(rows: list[dict[str, str]]) -> tuple[float, float]:
    """Returns rows per second, and per second of processor time, of the faster of two modes with two threads."""
    return max(two_threads_of_the_engine(rows), two_threads_of_python(rows))


def requests_of(rows: list[dict[str, str]]) -> list[BatchRequest]:
    options = {"max_tokens": 40, "temperature": 0.8}
    return [BatchRequest(one["id"], OPTIONS["prompt"].format(**one), SCHEMA, options) for one in rows]


def generated(model: gw.Model, rows: list[dict[str, str]]) -> int:
    return sum(one.generation is not None for one in gw.batch(model, requests_of(rows), batch_size=16))


def timed(work: Callable[[], object], count: int) -> tuple[float, float]:
    begin, cpu = time.perf_counter(), time.process_time()
    work()
    return count / (time.perf_counter() - begin), count / (time.process_time() - cpu)


def two_threads_of_the_engine(rows: list[dict[str, str]]) -> tuple[float, float]:
    with gw.Model(OnnxEngine(FOLDER, threads=2), gw.Tokenizer.of(FOLDER), name="tiny") as model:
        return timed(lambda: generated(model, rows), len(rows))


def two_threads_of_python(rows: list[dict[str, str]]) -> tuple[float, float]:
    """Each thread has half the rows and a model with one thread."""
    with gw.load("tiny") as one, gw.load("tiny") as other, ThreadPoolExecutor(2) as pool:
        halves = rows[::2], rows[1::2]
        return timed(lambda: list(pool.map(generated, (one, other), halves)), len(rows))


def with_ray(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    import ray
    import ray.data

    made = (
        ray.data.from_items(rows)
        .repartition(8)
        .map_batches(
            TimedWorker,
            fn_constructor_args=("tiny", SCHEMA),
            fn_constructor_kwargs=OPTIONS,
            batch_format="pyarrow",
            batch_size=None,
            compute=ray.data.ActorPoolStrategy(size=2),
        )
    )
    return made.take_all()  # type: ignore[no-any-return]  # Ray has no types


def with_dask(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    import dask.dataframe as dd
    import pandas as pd
    import pyarrow as pa

    worker = TimedWorker("tiny", SCHEMA, **OPTIONS)

    def part(frame: Any) -> Any:
        return worker(pa.Table.from_pandas(frame, preserve_index=False)).to_pandas()

    frame = dd.from_pandas(pd.DataFrame(rows), npartitions=8)
    meta = worker(pa.table({"id": pa.array([], pa.string()), "text": pa.array([], pa.string())})).to_pandas()
    return frame.map_partitions(part, meta=meta).compute().to_dict("records")  # type: ignore[no-any-return]


def with_daft(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    import daft
    import pyarrow as pa

    worker = TimedWorker("tiny", SCHEMA, **OPTIONS)
    text, number = daft.DataType.string(), daft.DataType.float64()
    kinds = {"output": daft.DataType.from_arrow_type(worker.arrow_type), "output_error": text}
    kinds |= dict.fromkeys(TIMES, number)

    class Generated:
        def __init__(self, worker: Worker) -> None:
            self.worker = worker

        @daft.method.batch(return_dtype=daft.DataType.struct(kinds), unnest=True, batch_size=len(rows) // 8)
        def __call__(self, text: Any, id: Any) -> Any:
            made = self.worker(pa.table({"text": text.to_arrow(), "id": id.to_arrow()}))
            return pa.StructArray.from_arrays([made.column(one).combine_chunks() for one in kinds], names=list(kinds))

    function: Any = daft.cls(Generated, use_process=True, max_concurrency=2)(worker)
    frame = daft.from_pylist(rows)
    return frame.select("id", function(daft.col("text"), daft.col("id"))).to_pylist()


def with_spark(rows: list[dict[str, str]]) -> list[dict[str, Any]]:
    from guideway.batch.frameworks import spark_schema

    worker = TimedWorker("tiny", SCHEMA, **OPTIONS)
    frame = STATE["spark"].createDataFrame([tuple(one.values()) for one in rows], ["id", "text"]).repartition(8)
    made = frame.mapInArrow(worker.arrow, spark_schema(worker, frame.schema)).collect()
    return [one.asDict() for one in made]


STATE: dict[str, Any] = {}
FRAMEWORKS: dict[str, tuple[Callable[[list[dict[str, str]]], list[dict[str, Any]]], tuple[str, ...]]] = {
    "ray": (with_ray, ("ray",)),
    "dask": (with_dask, ("dask", "distributed", "pandas")),
    "daft": (with_daft, ("daft",)),
    "spark": (with_spark, ("pyspark", "pandas")),
}


def start(name: str) -> Callable[[], None]:
    """Start a framework. Returns the function that ends it."""
    if name == "ray":
        import ray

        ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="error")
        return ray.shutdown  # type: ignore[no-any-return]  # Ray has no types
    if name == "dask":
        from dask.distributed import Client, LocalCluster

        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        client = Client(cluster)
        return lambda: (client.close(), cluster.close())  # type: ignore[func-returns-value, return-value]
    if name == "spark":
        from pyspark.sql import SparkSession

        os.environ["PYSPARK_PYTHON"] = sys.executable
        settings = {
            "spark.ui.enabled": "false",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
        STATE["spark"] = SparkSession.builder.master("local[2]").config(map=settings).getOrCreate()
        return lambda: STATE["spark"].stop()  # type: ignore[no-any-return]
    return lambda: None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--frameworks", nargs="*", default=list(FRAMEWORKS))
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    about = (
        f"two workers against one process with two threads: tiny, {given.rows:,} rows, {given.rounds} rounds, medians"
    )
    report = Report("cluster", [about])
    rows = rows_of(given.rows)
    one_process(rows[:64])
    table: list[list[str]] = []
    bars: list[tuple[str, float]] = []
    for name in given.frameworks:
        run, libraries = FRAMEWORKS[name]
        if missing := [one for one in libraries if importlib.util.find_spec(one) is None]:
            report.line(f"{name}: {', '.join(missing)} is not installed, so not run")
            continue
        end = start(name)
        try:
            pairs = [(one_process(rows), rates(run(rows))) for _ in range(given.rounds)]
        finally:
            end()
        wall, cpu = (median(there[kind] / here[kind] for here, there in pairs) for kind in (0, 1))
        medians = [median(side[kind] for side in sides) for sides in zip(*pairs, strict=True) for kind in (0, 1)]
        table.append([name, *(f"{one:.1f}" for one in medians), f"{wall:.2f}", f"{cpu:.2f}"])
        bars.append((name, wall))
    report.table(
        "throughput",
        ["framework", "process rows/s", "per CPU s", "workers rows/s", "per CPU s", "ratio", "ratio per CPU s"],
        table,
    )
    for name, ratio in bars:
        report.line(
            f"bar: {name}: {ratio:.2f} of the rows/s of the process, at least 0.9: {'met' if ratio >= 0.9 else 'MISSED'}"
        )
    report.done(given.record)


if __name__ == "__main__":
    main()
