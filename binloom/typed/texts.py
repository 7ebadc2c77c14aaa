"""The texts of generated files: models that call the macros of `macros/typed/`, and their properties.

dbt renders both with Jinja, so names, labels and comments are written so that nothing in them is a part of Jinja, SQL
or YAML.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from binloom.typed.names import TableId, model_name
from binloom.typed.personal import personal_data
from binloom.typed.tables import SourceTable, TypedColumn
from recover.undo.tables.table import ForeignKey

_CURRENT = (
    "Rows of {table} of source {source} as they are at the end of the log. A row that nobody has changed since the log "
    "begins is here only if a baseline has it (`binloom baseline`)."
)
_HISTORY = (
    "Every version of every row of {table} of source {source} in the log, from one commit to the next. A row that "
    "existed before its first change, or that only a baseline has, has a version whose binloom_valid_from is NULL. "
    "Columns that the table had before are behind its present columns; renamed columns have their present names."
)
_CHANGES = (
    "Each committed change of {table} of source {source}, with each column before and after it. A column that the log "
    "does not contain is NULL and is listed in columns_absent_before or columns_absent_after."
)
# The embedded metastore keeps at most 32,700 characters of a view. The query of a table has about so many characters
# for itself, for each column, and for each character of a column's name.
_MOST_CHARACTERS: Final = 30_000
_SIZE_OF_HISTORY: Final = (16_500, 160, 4)
_SIZE_OF_CHANGES: Final = (2_500, 340, 8)
# For each former name of the table, and for each character of the arguments with former names of columns.
_SIZE_OF_FORMER_TABLE: Final = 1_000
_SIZE_OF_FORMER_NAMES: Final = 9
# Types of which some values of a server do not exist in Spark.
_DATES = frozenset({"date", "timestamp", "timestamp_ntz"})
_VERSION_COLUMNS = {
    "row_version_id": "Identifies the version.",
    "pk_values": "Primary key of the row, as in row_changes.",
    "version": "Number of the version of this key, from 1.",
    "operation": "INSERT, UPDATE or DELETE; NULL for a row before its first change.",
    "is_current": "Whether the row has these values at the end of the log.",
    "is_deleted": "Whether the row does not exist in this version.",
    "valid_from": "Time of the commit that made this version; NULL for a row before its first change, unless the table "
    "replaced another one before: then the time of that statement.",
    "valid_to": "Time of the commit that ended this version; NULL for the last one.",
    "change_id": "The change that made this version; key of row_changes.",
    "table_version_id": "Definition of the table when the change was made; key of table_versions.",
    "valid_from_gtid": "GTID of the transaction that made this version.",
    "unknown_columns": "Columns whose value the log does not contain; they are NULL.",
    "zero_dates": "Columns with a date that does not exist, such as 0000-00-00; they are NULL.",
    "unfit_columns": "Columns with a value that does not fit the type; they are NULL.",
}
_CHANGE_COLUMNS = {
    "change_id": "Identifies the change; key of row_changes.",
    "event_type": "INSERT, UPDATE or DELETE.",
    "committed_at": "Time of the commit.",
    "pk_values": "Primary key of the row before the change, after it for an INSERT; NULL without a primary key.",
    "pk_values_after": "Primary key after an UPDATE that changes it; NULL otherwise.",
    "changed_columns": "Columns that an UPDATE changed; NULL for INSERT and DELETE.",
    "columns_absent_before": "Columns that the log does not contain before the change; NULL for an INSERT.",
    "columns_absent_after": "Columns that the log does not contain after the change; NULL for a DELETE.",
    "zero_dates_before": _VERSION_COLUMNS["zero_dates"],
    "zero_dates_after": _VERSION_COLUMNS["zero_dates"],
    "unfit_columns_before": _VERSION_COLUMNS["unfit_columns"],
    "unfit_columns_after": _VERSION_COLUMNS["unfit_columns"],
    "thread_id": "Connection id of the client.",
    "gtid": "GTID of the transaction, NULL where the server writes none.",
    "epoch": "Number of the unbroken series of files.",
    "binlog_file": "Name of the binlog file.",
    "file_sequence": "Number of the file in its series.",
    "transaction_pos": "Offset of the transaction in the file.",
    "start_pos": "Offset of the event in the file.",
    "payload_ordinal": "Position of the event inside a compressed payload; 0 outside of one.",
    "row_ordinal": "Position of the row inside its event.",
    "event_timestamp": "Time when the statement began, in whole seconds.",
    "event_hour": "Hour of event_timestamp, such as 2026-11-17-10; a filter on it skips the files of other hours.",
}
_OF_CURRENT = (
    *("pk_values", "version", "valid_from", "change_id", "valid_from_gtid"),
    *("unknown_columns", "zero_dates", "unfit_columns"),
)


def models(table: SourceTable, stem: str, stems: Mapping[TableId, str]) -> dict[str, str]:
    """Return the texts of the files of a table, by file name.

    A table without a primary key has only its changes.

    Parameters
    ----------
    stem
        Name of the model of current rows.
    stems
        That of all tables for which foreign keys are tested.
    """
    texts = {f"{model_name(stem, 'changes')}.sql": _changes(table)}
    if table.primary_key:
        texts[f"{stem}.sql"] = _current(table, stem)
        texts[f"{model_name(stem, 'history')}.sql"] = _history(table)
    texts[f"{stem}.yml"] = "".join(f"{line}\n" for line in _properties(table, stem, stems))
    return texts


def prefix(table: SourceTable) -> str:
    """Return the beginning of the names of columns that are not columns of the table."""
    text = "binloom_"
    while any(column.name.lower().startswith(text) for column in table.columns):
        text += "_"
    return text


# Models


def _current(table: SourceTable, stem: str) -> str:
    arguments = [
        f"history=ref({_text(model_name(stem, 'history'))})",
        f"columns={_list((column.name for column in table.present_columns), 1)}",
        *_prefix_argument(table),
    ]
    return _call("typed_current", "table", arguments)


def _history(table: SourceTable) -> str:
    return _call(
        "typed_history", _materialized(table, _SIZE_OF_HISTORY), [*_table_arguments(table), *_prefix_argument(table)]
    )


def _changes(table: SourceTable) -> str:
    return _call("typed_changes", _materialized(table, _SIZE_OF_CHANGES), _table_arguments(table))


def _materialized(table: SourceTable, size: tuple[int, int, int]) -> str:
    fixed, of_column, of_character = size
    names = sum(len(_text(column.name)) for column in table.columns)
    characters = fixed + of_column * len(table.columns) + of_character * names
    characters += _SIZE_OF_FORMER_TABLE * len(table.periods[1:])
    characters += _SIZE_OF_FORMER_NAMES * sum(map(len, _former_names_argument(table)))
    return "view" if characters <= _MOST_CHARACTERS else "table"


def _call(macro: str, materialized: str, arguments: Iterable[str]) -> str:
    lines = "".join(f"    {argument},\n" for argument in arguments).rstrip(",\n")
    return (
        f"{{{{ config(materialized='{materialized}', schema='tables') }}}}\n\n{{{{ binloom.{macro}(\n{lines}\n) }}}}\n"
    )


def _table_arguments(table: SourceTable) -> Iterator[str]:
    names = {"source": table.source_id, "schema": table.schema_name, "name": table.table_name}
    yield f"table={_inline(names)}"
    yield f"columns={_dict({column.name: column.type for column in table.present_columns}, 1)}"
    if table.former_columns:
        yield f"former_columns={_dict({column.name: column.type for column in table.former_columns}, 1)}"
    yield from _former_names_argument(table)
    # The table had each of these names until the statement at this place.
    former = [(period.table, [*period.until]) for period in table.periods if period.until is not None]
    if former:
        periods = "".join(
            f"        {{{_text('schema')}: {_text(one.schema_name)}, {_text('name')}: {_text(one.table_name)},"
            f" {_text('until')}: {until}}},\n"
            for one, until in former
        )
        yield f"former_tables=[\n{periods}    ]"


def _former_names_argument(table: SourceTable) -> Iterator[str]:
    if table.former_names:
        periods = "".join(
            f"        {{{_text('table_version_ids')}: [{', '.join(map(_text, one.table_version_ids))}],"
            f" {_text('names')}: {_inline(one.names)}}},\n"
            for one in table.former_names
        )
        yield f"former_names=[\n{periods}    ]"


def _prefix_argument(table: SourceTable) -> Iterator[str]:
    if prefix(table) != "binloom_":
        yield f"prefix={_text(prefix(table))}"


def _inline(items: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{_text(name)}: {_text(value)}" for name, value in items.items()) + "}"


def _dict(items: Mapping[str, str], level: int) -> str:
    lines = "".join(f"{'    ' * (level + 1)}{_text(name)}: {_text(value)},\n" for name, value in items.items())
    return f"{{\n{lines}{'    ' * level}}}"


def _list(items: Iterable[str], level: int) -> str:
    lines = "".join(f"{'    ' * (level + 1)}{_text(item)},\n" for item in items)
    return f"[\n{lines}{'    ' * level}]"


def _text(text: str) -> str:
    """Return a literal of Jinja. Signs that could begin or end a block of Jinja are written as code points."""
    return '"' + "".join(_coded(sign) if sign in '\\"{}%#' or not sign.isprintable() else sign for sign in text) + '"'


def _coded(sign: str) -> str:
    return f"\\U{ord(sign):08x}"


# Properties


def _properties(table: SourceTable, stem: str, stems: Mapping[TableId, str]) -> Iterator[str]:
    yield "models:"
    if table.primary_key:
        yield from _model(table, stem, _CURRENT, [])
        for column in table.present_columns:
            yield from _column(column, column.name, _tests(table, column, stems), indent=6)
        yield from _version_columns(table, _OF_CURRENT, tested="pk_values" if len(table.primary_key) > 1 else None)
        history = model_name(stem, "history")
        yield from _model(table, history, _HISTORY, _unfit_test(table, history, f"{prefix(table)}unfit_columns"))
        for column in table.columns:
            yield from _column(column, column.name, [], indent=6)
        yield from _version_columns(table, _VERSION_COLUMNS, tested="row_version_id")
    changes = model_name(stem, "changes")
    # The history has the same values, except those that a transaction replaced itself.
    unfit = ("unfit_columns_before", "unfit_columns_after")
    tests = [] if table.primary_key else _unfit_test(table, changes, *unfit)
    yield from _model(table, changes, _CHANGES, tests)
    yield from _described(_CHANGE_COLUMNS)
    for column in table.columns:
        for image in ("before", "after"):
            yield from _column(column, f"{image}_{column.name}", [], indent=6)


def _model(table: SourceTable, name: str, description: str, tests: Sequence[str]) -> Iterator[str]:
    yield f"  - name: {name}"
    described = description.format(table=table.name, source=table.source_id).replace("binloom_", prefix(table))
    yield f"    description: {_yaml(described)}"
    yield from tests
    yield "    columns:"


def _unfit_test(table: SourceTable, model: str, *columns: str) -> list[str]:
    """Return a test that warns of values that do not fit their type."""
    if all(one.type == "string" for one in table.columns):
        return []
    return [
        "    data_tests:",
        "      - binloom.holds:",
        f"          name: {model}__values_fit",
        "          arguments:",
        f"            expression: {_yaml(' and '.join(f'cardinality({column}) = 0' for column in columns))}",
        "          config:",
        "            severity: warn",
    ]


def _column(column: TypedColumn, name: str, tests: Iterable[str], indent: int) -> Iterator[str]:
    margin = " " * indent
    remark = "" if column.is_present else " The table does not have this column any more."
    about = f"{column.comment.rstrip('.')}. " if column.comment else ""
    zero = " A date that does not exist is NULL." if column.type in _DATES else ""
    yield f"{margin}- name: {_yaml(name)}"
    yield f"{margin}  quote: true"
    yield f"{margin}  data_type: {_yaml(column.type)}"
    yield f"{margin}  description: {_yaml(f'{about}On the server: {column.server_type}.{zero}{remark}')}"
    if kind := personal_data(column.name, column.comment):
        yield from (f"{margin}  config:", f"{margin}    meta:", f"{margin}      personal_data: {kind}")
    lines = [f"{margin}    {line}" for line in tests]
    if lines:
        yield f"{margin}  data_tests:"
        yield from lines


def _version_columns(table: SourceTable, names: Iterable[str], tested: str | None) -> Iterator[str]:
    for name in names:
        yield f"      - name: {prefix(table)}{name}"
        yield f"        description: {_yaml(_VERSION_COLUMNS[name])}"
        if name == tested:
            yield from ("        data_tests:", "          - unique", "          - not_null")


def _described(columns: Mapping[str, str]) -> Iterator[str]:
    for name, description in columns.items():
        yield from (f"      - name: {name}", f"        description: {_yaml(description)}")


def _tests(table: SourceTable, column: TypedColumn, stems: Mapping[TableId, str]) -> Iterator[str]:
    """Yield the tests of a column of current rows. dbt puts quotes around names, but does not escape them."""
    if "`" in column.name or "{" in column.name:
        return
    if column.name in table.primary_key:
        if table.primary_key == (column.name,):
            yield "- unique"
        # A key may contain a date that does not exist, and an image may lack a column.
        yield from ("- not_null:", "    config:", "      severity: warn") if column.type in _DATES else ("- not_null",)
    if column.labels:
        # A server stores a value that is none of them as an empty text.
        yield from ("- accepted_values:", "    arguments:", "      values:")
        yield from (f"        - {_yaml(_in_literal(label))}" for label in column.labels)
        yield from ("    config:", "      severity: warn")
    for key in table.foreign_keys:
        parent = stems.get((table.source_id, *key.parent))
        if key.columns == (column.name,) and parent is not None and not {"`", "{"} & {*key.parent_columns[0]}:
            yield from _relationship(key, parent)


def _relationship(key: ForeignKey, parent: str) -> Iterator[str]:
    """Yield a test that warns: a row that the log does not contain may be the parent."""
    yield from ("- relationships:", "    arguments:")
    yield from (f"      to: ref('{parent}')", f"      field: {_yaml(f'`{key.parent_columns[0]}`')}")
    yield from ("    config:", "      severity: warn")


def _in_literal(label: str) -> str:
    """Return a label as the inside of a literal of Spark's SQL: dbt puts quotes around it, but does not escape it."""
    return "".join(_coded(sign) if sign in "\\'{}%#" or not sign.isprintable() else sign for sign in label)


def _yaml(text: str) -> str:
    """Return a text as YAML that Jinja leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("{", "{{ '{' }}")
