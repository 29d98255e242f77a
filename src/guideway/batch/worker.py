"""`Worker`: adds a generated column to rows of Ray Data, Spark, Dask, Daft, pandas or Arrow."""

from __future__ import annotations

import json
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from threading import Lock
from typing import Any, Literal

from pydantic_core import to_jsonable_python

from guideway.arguments import short_list, short_repr
from guideway.batch.columns import Column, column_of, pyarrow
from guideway.batch.ids import seed_of
from guideway.batch.requests import BatchRequest, shared_constraint
from guideway.batch.running import WINDOW, batch
from guideway.constraints import Constraint, JsonSchema, of
from guideway.errors import GuidewayError, InvalidConstraintError, InvalidRequestError
from guideway.generation import Generation
from guideway.generation.extraction import Extraction
from guideway.generation.options import BATCH, check_names
from guideway.generation.protocol import AnyModel, GeneratingModel
from guideway.jsontext.numbers import written_float
from guideway.loading import load

__all__ = ["Worker", "constraint_of_row", "fields_of", "filled", "is_missing", "model_named"]

_models: dict[str, AnyModel] = {}
_loading = Lock()


def model_named(name: str, options: Mapping[str, Any]) -> AnyModel:
    """Return the model with this name and these options of `load`. A process loads it only once, for all workers."""
    key = f"{name}\0{sorted(options.items(), key=str)!r}"
    with _loading:
        if key not in _models:
            _models[key] = load(name, **options)
        return _models[key]


class Worker:
    """Generates a column of values from the rows of a batch. It runs in the worker processes of a data framework.

    The model is loaded for the first batch that is not empty, once per process. A `Worker` can be pickled; the model is
    not part of the pickle. Without the option `seed`, the seed of a row is derived from `id_column` or, if it is None,
    from the prompt, and not from other rows.

    Args:
        model: The name of a model, as for `guideway.load`.
        output: The type or constraint of the values; None: free text, unless `constraint_column` is given.
        prompt: A template with names of columns in braces, as for `str.format`. Only names are allowed in braces.
        column: The name of the new column.
        on_error: "column": an error of a row is text in the column `column + "_error"`, and its value is null. "raise":
            the first error is raised.
        constraint_column: A column with the constraint of each row: a document of `to_wire`, or a JSON Schema, as JSON
            text or as a dict. A row with null has the constraint `output`. The new column then contains texts.
        id_column: A column with identifiers from which the seeds are derived. None: they are derived from the prompt.
        extract: Put the text of `prompt` into the prompt of `guideway.extract`; `output` must have a JSON Schema.
        batch_size: The maximum number of sequences that run together.
        load_options: Arguments of `guideway.load`.
        **options: Generation options, see `guideway.generation.OPTIONS`.

    Raises:
        ValueError: An argument has an unknown value, or the template is malformed.
        TypeError: An option is unknown, or `model` is not a str.
        ConstraintError: `output` is not a constraint, or has no JSON Schema that `extract` can use.
    """

    def __init__(
        self,
        model: str,
        output: object = None,
        *,
        prompt: str = "{text}",
        column: str = "output",
        on_error: Literal["column", "raise"] = "column",
        constraint_column: str | None = None,
        id_column: str | None = None,
        extract: bool = False,
        batch_size: int = BATCH,
        load_options: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if on_error not in ("column", "raise"):
            raise ValueError(f'on_error must be "column" or "raise", got {short_repr(on_error)}')
        if not isinstance(model, str):
            raise TypeError(f'model must be the name of a model, such as "tiny", got {type(model).__name__}')
        check_names(options)
        self.model_name = model
        self.output: Constraint[Any] | None = None if output is None else of(output)
        self.prompt, self.column, self.on_error = prompt, column, on_error
        self.constraint_column, self.id_column, self.extract = constraint_column, id_column, extract
        self.batch_size, self.load_options, self.options = batch_size, dict(load_options or {}), options
        self.fields = fields_of(prompt)
        if extract and not isinstance(getattr(self.output, "schema", None), Mapping):
            raise InvalidConstraintError("extract=True needs an output with a JSON Schema that is an object")

    @property
    def model(self) -> AnyModel:
        """The model, which is loaded at the first access."""
        return model_named(self.model_name, self.load_options)

    @cached_property
    def _column(self) -> Column:
        return column_of(None if self.constraint_column is not None else self.output)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_column"}

    @property
    def error_column(self) -> str:
        """The name of the column with the error of each row, which exists if `on_error` is "column"."""
        return f"{self.column}_error"

    @property
    def arrow_type(self) -> Any:
        """The Arrow type of the new column. Needs pyarrow."""
        return self._column.type

    def arrow_schema(self, schema: Any) -> Any:
        """Return the Arrow schema of the output for an input with the schema `schema`. Needs pyarrow."""
        arrow = pyarrow()
        names = {self.column, self.error_column}
        kept = [field for field in schema if field.name not in names]
        new = [arrow.field(self.column, self.arrow_type)]
        if self.on_error == "column":
            new.append(arrow.field(self.error_column, arrow.string()))
        return arrow.schema([*kept, *new])

    # -- rows

    def __call__(self, rows: Any) -> Any:
        """Return a copy of a batch with the new columns.

        Args:
            rows: A dict of columns (lists or NumPy arrays), a pandas DataFrame, an Arrow Table or a RecordBatch.

        Returns:
            A batch of the same kind. In Arrow and pandas, the new column has the type `arrow_type`.

        Raises:
            TypeError: `rows` is of another class.
            InvalidRequestError: The batch lacks a column, or its columns have different lengths.
            GuidewayError: With `on_error="raise"`, the error of the first row that failed.
        """
        if isinstance(rows, Mapping):
            return self._dict(rows)
        kind = type(rows).__module__.partition(".")[0]
        if kind == "pandas":
            return self._frame(rows)
        if kind == "pyarrow":
            return self._table(rows)
        raise TypeError(
            f"rows must be a dict of columns, a pandas DataFrame, or an Arrow Table or RecordBatch, got {type(rows).__name__}"
        )

    def arrow(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield each Arrow RecordBatch with the new columns, for `mapInArrow` of Spark."""
        for one in batches:
            yield self._table(one)

    def values(self, columns: Mapping[str, Sequence[Any]], count: int) -> tuple[list[Any], list[str | None]]:
        """Return the values and the errors of rows.

        Args:
            columns: The columns that `needed` names, as sequences of Python values.
            count: The number of rows.

        Returns:
            The value of each row, and its error or None. A value is a str if there is no JSON Schema or if
            `constraint_column` is given, else JSON data. If pyarrow is installed, it is converted for `arrow_type`.
        """
        found: list[Any] = [None] * count
        errors: list[str | None] = [None] * count
        if not count:
            return found, errors
        model = self.model
        results = batch(
            model,
            (self._request(model, columns, number) for number in range(count)),
            batch_size=self.batch_size,
            window=max(WINDOW, count),
            **self.options,
        )
        for one in results:
            error = one.error
            if error is None:
                try:
                    found[one.position] = self._value(one.generation)
                except (GuidewayError, ValueError, OverflowError) as problem:
                    # The text is not a value of the type, or the column's type cannot represent the value.
                    error = problem
            if error is not None:
                if self.on_error == "raise":
                    raise error
                errors[one.position] = f"{type(error).__name__}: {error}"
        return found, errors

    @property
    def needed(self) -> tuple[str, ...]:
        """The names of the input columns that are read."""
        more = [name for name in (self.constraint_column, self.id_column) if name is not None]
        return tuple(dict.fromkeys([*self.fields, *more]))

    def _request(self, model: AnyModel, columns: Mapping[str, Sequence[Any]], number: int) -> Any:
        row = {name: columns[name][number] for name in columns}
        identity = str(number)
        try:
            text = filled(self.prompt, self.fields, row)
            output = constraint_of_row(row.get(self.constraint_column or ""), self.output)
            prompt: Any = text
            if self.extract:
                chat = isinstance(model, GeneratingModel) or model.tokenizer.is_instruct
                made = Extraction(output, {})
                prompt, output = made.prompt(text, chat=chat), made.bound(text)
            key = prompt if self.id_column is None else str(row[self.id_column])
            options = {} if "seed" in self.options else {"seed": _seed(key)}
            return BatchRequest(identity, prompt, output, {**options, **self.options})
        except Exception as error:  # the error of one row must not end the batch
            return error

    def _value(self, one: Generation[Any]) -> Any:
        if self.constraint_column is not None or getattr(self.output, "schema", None) is None:
            return one.text
        value = one.value if isinstance(self.output, JsonSchema) else json.loads(one.text)
        return self._column.convert(value) if _has_arrow() else to_jsonable_python(value)

    # -- kinds of batches

    def _dict(self, rows: Mapping[str, Any]) -> dict[str, Any]:
        columns = {name: list(self._taken(rows, name)) for name in self.needed}
        count = len(next(iter(columns.values()), next(iter(rows.values()), ())))
        for name, column in rows.items():
            if len(column) != count:
                raise InvalidRequestError(
                    f"the column {short_repr(name)} has {len(column)} rows, and another has {count}", name
                )
        values, errors = self.values(columns, count)
        made: dict[str, Any] = {**rows, self.column: self._array(values) if _has_arrow() else values}
        if self.on_error == "column":
            made[self.error_column] = pyarrow().array(errors, pyarrow().string()) if _has_arrow() else errors
        return made

    def _frame(self, rows: Any) -> Any:
        import pandas

        columns = {name: self._taken(rows, name).tolist() for name in self.needed}
        values, errors = self.values(columns, len(rows))
        made = rows.copy(deep=False)
        array = pandas.arrays.ArrowExtensionArray(pyarrow().chunked_array([self._array(values)]))
        made[self.column] = pandas.Series(array, index=rows.index)
        if self.on_error == "column":
            text = pandas.ArrowDtype(pyarrow().string())
            made[self.error_column] = pandas.Series(errors, index=rows.index, dtype=text)
        return made

    def _table(self, rows: Any) -> Any:
        arrow = pyarrow()
        columns = {name: self._taken(rows, name).to_pylist() for name in self.needed}
        values, errors = self.values(columns, rows.num_rows)
        schema = self.arrow_schema(rows.schema)
        new = {self.column: self._array(values)}
        if self.on_error == "column":
            new[self.error_column] = arrow.array(errors, arrow.string())
        arrays = [new[name] if name in new else rows.column(name) for name in schema.names]
        return type(rows).from_arrays(arrays, schema=schema)

    def _taken(self, rows: Any, name: str) -> Any:
        names = rows.schema.names if hasattr(rows, "schema") else list(rows)
        if name not in names:
            raise InvalidRequestError(
                f"the rows have no column {short_repr(name)}; they have {short_list(map(str, names))}", name
            )
        return rows.column(name) if hasattr(rows, "schema") else rows[name]

    def _array(self, values: list[Any]) -> Any:
        return pyarrow().array(values, self.arrow_type)


def _seed(key: Any) -> int:
    return seed_of(key if isinstance(key, str) else json.dumps(key, ensure_ascii=False))


def _has_arrow() -> bool:
    with suppress(ModuleNotFoundError):
        import pyarrow  # noqa: F401  # only its presence matters

        return True
    return False


def fields_of(template: str) -> tuple[str, ...]:
    """Return the column names in a template, each once. Raises `ValueError` for anything else in braces."""
    found = []
    for _, name, form, conversion in string.Formatter().parse(template):
        if name is None:
            continue
        if not name or form or conversion or any(sign in name for sign in ".[]"):
            raise ValueError(
                f"a template may have only names of columns in braces, got {{{name}}} in {short_repr(template)}"
            )
        found.append(name)
    return tuple(dict.fromkeys(found))


def filled(template: str, names: Sequence[str], row: Mapping[str, Any]) -> str:
    """Return a template filled with the values of a row. Raises `InvalidRequestError` for null and missing columns."""
    for name in names:
        if is_missing(row.get(name)):
            raise InvalidRequestError(f"the column {short_repr(name)} of the template has no value in this row", name)
    return template.format(**{name: row[name] for name in names})


def is_missing(value: object) -> bool:
    """Return whether a cell has no value: None, NaN, or the missing values of pandas (NA, NaT)."""
    return (
        value is None or (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")
    )


def constraint_of_row(given: object, default: Constraint[Any] | None) -> Constraint[Any] | None:
    """Return the constraint in a cell: a document of `to_wire` or a JSON Schema, as JSON text or as a dict.

    For a cell without a value, return `default`. In a dict, members that are None count as absent, because Arrow adds
    them to structs. None in members of members and null in JSON text are not removed.

    Raises:
        ConstraintError: The constraint is invalid.
    """
    if is_missing(given):
        return default
    if isinstance(given, (str, bytes)):
        try:
            given = json.loads(given, parse_float=written_float)
        except (ValueError, RecursionError) as error:
            raise InvalidConstraintError(f"the constraint of the row is not JSON: {error}") from None
    elif isinstance(given, Mapping):
        given = {name: value for name, value in given.items() if value is not None}  # Arrow fills structs with nulls
    if isinstance(given, (Mapping, bool)):
        return shared_constraint(
            "constraint" if not isinstance(given, bool) and "guideway" in given else "schema", given
        )
    raise InvalidConstraintError(f"the constraint of a row must be JSON, got {type(given).__name__}")
