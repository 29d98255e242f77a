"""Use of a `Worker` in Spark and Daft: the Spark schema of its output, and a function of Daft columns."""

from __future__ import annotations

import importlib
from typing import Any

from guideway.batch.columns import pyarrow
from guideway.batch.worker import Worker
from guideway.errors import MissingDependencyError

__all__ = ["daft_function", "spark_schema"]


def spark_schema(worker: Worker, schema: Any) -> Any:
    """Return the Spark schema of the rows that `worker.arrow` yields, for the second argument of `mapInArrow`.

    Args:
        worker: The worker.
        schema: The schema of the input, `df.schema`.

    Returns:
        A `StructType`.
    """
    types = _module("pyspark.sql.pandas.types", "pyspark")
    return types.from_arrow_schema(worker.arrow_schema(types.to_arrow_schema(schema)))


def daft_function(worker: Worker, **resources: Any) -> Any:
    """Return a function of Daft columns. Its arguments are the columns that `worker.needed` names, in this order.

    Its result has the field `worker.column` and, if `on_error` is "column", `worker.error_column`. In a `select`, the
    fields become columns.

    Args:
        worker: The worker.
        **resources: Arguments of `daft.cls`, such as `max_concurrency=2` for two processes.
    """
    daft = _module("daft", "daft")
    arrow = pyarrow()
    names = worker.needed
    kinds = {worker.column: daft.DataType.from_arrow_type(worker.arrow_type)}
    if worker.on_error == "column":
        kinds[worker.error_column] = daft.DataType.string()

    class Generated:
        def __init__(self, worker: Worker) -> None:
            self.worker = worker

        @daft.method.batch(return_dtype=daft.DataType.struct(kinds), unnest=True)  # type: ignore[untyped-decorator, unused-ignore]  # daft may be missing
        def __call__(self, *columns: Any) -> Any:
            arrays = [one.to_arrow() for one in columns]
            made = self.worker(arrow.table(dict(zip(names, arrays, strict=True))))
            new = [made.column(name).combine_chunks() for name in kinds]
            return arrow.StructArray.from_arrays(new, names=list(kinds))

    return daft.cls(Generated, **{"use_process": True, **resources})(worker)


def _module(name: str, package: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise MissingDependencyError(f"this function needs {package}: pip install {package} ({error})") from error
