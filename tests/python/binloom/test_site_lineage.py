"""The columns that the columns of a model are made of, for each construct of SQL."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from binloom.site.lineage import Column, Lineage, Table, read_lineage
from ingest.errors import StoreError
from tests.support.manifests import write_project

EVENTS = {"id": "bigint", "kind": "string", "at": "timestamp", "before": "array", "after": "array", "names": "array"}
FILES = {"id": "bigint", "name": "string", "size": "bigint", "parts": "array<struct<name:string,pos:bigint>>"}
SOURCES = {"events": EVENTS, "files": FILES}


def made_of(target: Path, sql: str, sources: Mapping[str, Mapping[str, str]] = SOURCES) -> dict[str, str]:
    """Return the columns of a model with the sorted columns of raw tables that each is made of.

    All edges must be exact.
    """
    lineage = read_lineage(write_project(target, sources, {"model": sql}))
    assert [edge for edge in lineage.edges if not edge.is_exact] == []
    return {column: " ".join(sources) for column, sources in by_column(lineage, "model").items()}


def by_column(lineage: Lineage, model: str) -> dict[str, list[str]]:
    columns = {column.name: [] for column in table_of(lineage, model).columns}
    for edge in lineage.edges:
        if edge.target[0] == model:
            columns[edge.target[1]].append(".".join(edge.source).removeprefix("raw."))
    return columns


def table_of(lineage: Lineage, name: str) -> Table:
    (table,) = (table for table in lineage.tables if table.name == name)
    return table


# A query and what its columns are made of.
CONSTRUCTS = {
    "names and aliases": (
        "select id, kind as k, e.at from raw.events e",
        {"id": "events.id", "k": "events.kind", "at": "events.at"},
    ),
    "name with the table": (
        "select events.id, raw.files.size from raw.events, raw.files",
        {"id": "events.id", "size": "files.size"},
    ),
    "upper case": (
        "SELECT ID, E.Kind AS k FROM RAW.EVENTS AS E",
        {"ID": "events.id", "k": "events.kind"},
    ),
    "literals and count": (
        "select 1 as one, 'x' as x, count(*) as n, current_date() as d from raw.events",
        {"one": "", "x": "", "n": "", "d": ""},
    ),
    "expression": (
        "select concat(kind, cast(id as string)) as label, sum(size) over () as total from raw.events "
        "join raw.files using (id)",
        {"label": "events.id events.kind", "total": "files.size"},
    ),
    "case": (
        "select case when kind = 'a' then id else null end as c, case kind when 'b' then at end as d, if(id > 1, "
        "kind, 'x') as e "
        "from raw.events",
        {"c": "events.id events.kind", "d": "events.at events.kind", "e": "events.id events.kind"},
    ),
    "conditions choose rows": (
        "select e.id from raw.events e left "
        "join raw.files f on e.kind = f.name where e.at is not null and f.size > (select max(size) "
        "from raw.files)",
        {"id": "events.id"},
    ),
    "grouping": (
        "select kind, max(id) as newest from raw.events group by kind having count(at) > 1 order by min(at)",
        {"kind": "events.kind", "newest": "events.id"},
    ),
    "star": (
        "select e.*, f.* except (id, parts) from raw.events as e cross join raw.files as f",
        {**{name: f"events.{name}" for name in EVENTS}, "name": "files.name", "size": "files.size"},
    ),
    "star of using": (
        "select * except (parts) from raw.files f left join (select id, kind from raw.events) e using (id)",
        {"id": "files.id", "name": "files.name", "size": "files.size", "kind": "events.kind"},
    ),
    "full join with using": (
        "select id, size from raw.files full outer join raw.events using (id)",
        {"id": "events.id files.id", "size": "files.size"},
    ),
    "right join with using": (
        "select id from raw.files right join raw.events using (id)",
        {"id": "events.id"},
    ),
    "natural join": (
        "select * from (select id, size from raw.files) natural join (select id, kind from raw.events)",
        {"id": "files.id", "size": "files.size", "kind": "events.kind"},
    ),
    "semi and anti join": (
        "select * from (select id, size from raw.files) f left semi join raw.events e on f.id = e.id left anti "
        "join raw.events x on f.id = x.id",
        {"id": "files.id", "size": "files.size"},
    ),
    "named queries": (
        "with a as (select id as x from raw.events), b(y) as (select x + 1 "
        "from a), c as (with d as (select y as z from b) select z from d) select z, x from c, a",
        {"z": "events.id", "x": "events.id"},
    ),
    "named query hides a table": (
        "with events as (select size as id from raw.files) select id from events",
        {"id": "files.size"},
    ),
    "recursive query": (
        "with recursive r(n, m) as (select id, size from raw.files union all select m, n from r where n < 9) "
        "select n, m from r",
        {"n": "files.id files.size", "m": "files.id files.size"},
    ),
    "subqueries": (
        "select (select max(f.size) from raw.files f where f.id = e.id) as largest, e.id in (select id "
        "from raw.files) as known, s.k from raw.events e join (select kind as k, id "
        "from raw.events) as s on s.id = e.id",
        {"largest": "files.size", "known": "events.id files.id", "k": "events.kind"},
    ),
    "subquery reads the query around it": (
        "select (select e.kind) as k from raw.events e",
        {"k": "events.kind"},
    ),
    "lateral subquery": (
        "select t.double from raw.events e, lateral (select e.id * 2 as double) as t",
        {"double": "events.id"},
    ),
    "alias of the same select": (
        "select id as i, i + 1 as j, concat(kind, j) as k from raw.events",
        {"i": "events.id", "j": "events.id", "k": "events.id events.kind"},
    ),
    "a column before an alias": (
        "select at as id, id as other from raw.events",
        {"id": "events.at", "other": "events.id"},
    ),
    "union by position": (
        "select id as a, kind as b from raw.events union all select size, name from raw.files",
        {"a": "events.id files.size", "b": "events.kind files.name"},
    ),
    "union by name": (
        "select id, kind as name from raw.events union all by name select name, id from raw.files",
        {"id": "events.id files.id", "name": "events.kind files.name"},
    ),
    "except compares": (
        "select id from raw.events except select id from raw.files",
        {"id": "events.id"},
    ),
    "window": (
        "select row_number() over (partition by kind order by at desc) as newest, lag(id) "
        "over w as previous, max(id) over (w rows between 1 preceding and current row) as m from raw.events "
        "window w as (partition by kind order by at)",
        {
            "newest": "events.at events.kind",
            "previous": "events.at events.id events.kind",
            "m": "events.at events.id events.kind",
        },
    ),
    "filter of an aggregate": (
        "select max(id) filter (where kind = 'x') as m, max_by(kind, at) as k from raw.events",
        {"m": "events.id events.kind", "k": "events.at events.kind"},
    ),
    "field of a struct": (
        "select s.a, s.b, s from (select struct(id as a, kind as b) as s from raw.events)",
        {"a": "events.id", "b": "events.kind", "s": "events.id events.kind"},
    ),
    "named_struct, star of a struct": (
        "select s.*, t.s.low as l from (select named_struct('low', id, 'high', at) as s from raw.events) t",
        {"low": "events.id", "high": "events.at", "l": "events.id"},
    ),
    "unnamed fields": (
        "select inline(array(struct(id, kind))) from raw.events",
        {"id": "events.id", "kind": "events.kind"},
    ),
    "case of structs": (
        "select s.a, s.b "
        "from (select case when at is null then struct(id as a, kind as b) else struct(1 as a, 'x' as b) end as "
        "s "
        "from raw.events)",
        {"a": "events.at events.id", "b": "events.at events.kind"},
    ),
    "structs of other names": (
        "select s.a from (select struct(id as a) as s from raw.events union all select struct(size as b) "
        "from raw.files)",
        {"a": "events.id files.size"},
    ),
    "cast of a struct": (
        "select s.x from (select cast(struct(id as a, kind as b) as struct<x: bigint, y: string>) as s "
        "from raw.events)",
        {"x": "events.id events.kind"},
    ),
    "inline": (
        "select id, inline(array(struct(kind as word, at as moment), struct(name as word, null as moment))) as "
        "(w, m) "
        "from raw.events join raw.files using (id)",
        {"id": "events.id", "w": "events.kind files.name", "m": "events.at"},
    ),
    "inline of a column with a type": (
        "select inline(parts) from raw.files",
        {"name": "files.parts", "pos": "files.parts"},
    ),
    "lateral view": (
        "select p, q, t.w from raw.events lateral view inline(array(struct(id, at))) as p, q "
        "lateral view outer explode(array(kind, p)) t as w",
        {"p": "events.id", "q": "events.at", "w": "events.id events.kind"},
    ),
    "explode": (
        "select explode(names) as name, kind from raw.events",
        {"name": "events.names", "kind": "events.kind"},
    ),
    "explode of structs": (
        "select e.a from (select explode(collect_list(struct(id as a, kind as b))) as e from raw.events)",
        {"a": "events.id"},
    ),
    "comparison of structs": (
        "select m.a, s[0].b as b, l.a as c from (select max(struct(id as a, kind as b)) as m, "
        "array_sort(collect_list(struct(id as a, kind as b))) as s, last(struct(id as a, kind as b)) as l "
        "from raw.events)",
        {"a": "events.id events.kind", "b": "events.id events.kind", "c": "events.id"},
    ),
    "explode of a map": (
        "select explode(map(kind, id)) as (k, v) from raw.events",
        {"k": "events.id events.kind", "v": "events.id events.kind"},
    ),
    "posexplode": (
        "select posexplode(names) from raw.events",
        {"pos": "events.names", "col": "events.names"},
    ),
    "stack": (
        "select stack(2, 'i', id, 'k', kind) as (label, value) from raw.events",
        {"label": "", "value": "events.id events.kind"},
    ),
    "function in the from clause": (
        "select r.id as n, x.c, e.id from raw.events e, range(3) r, explode(array(1, 2)) as x(c)",
        {"n": "", "c": "", "id": "events.id"},
    ),
    "values": (
        "select v.a, f.b from (values (1, 'x'), (2, 'y')) as v(a, b), (select size as b from raw.files) f",
        {"a": "", "b": "files.size"},
    ),
    "transform": (
        "select transform(before, (value, place) -> concat(value, after[place], kind)) as t from raw.events",
        {"t": "events.after events.before events.kind"},
    ),
    "transform to structs": (
        "select inline(transform(names, name -> struct(name as n, id as i))) from raw.events",
        {"n": "events.names", "i": "events.id"},
    ),
    "filter of an array": (
        "select filter(names, (name, place) -> not before[place] <=> after[place]) as changed from raw.events",
        {"changed": "events.after events.before events.names"},
    ),
    "aggregate": (
        "select r.u, r.v "
        "from (select aggregate(before, named_struct('u', id, 'v', kind), (known, item) -> named_struct('u', "
        "item, 'v', known.u), known -> known) as r "
        "from raw.events)",
        {"u": "events.before events.id", "v": "events.before events.id events.kind"},
    ),
    "nested lambda functions": (
        "select transform(before, b -> filter(after, a -> a = b and a != kind)) as t from raw.events",
        {"t": "events.after events.before events.kind"},
    ),
    "zip_with, exists, forall, map_filter": (
        "select zip_with(before, after, (b, a) -> a) as z, exists(before, b -> b = kind) as e, forall(before, b "
        "-> b is null) as f, map_filter(map(kind, id), (k, v) -> at is null) as m "
        "from raw.events",
        {
            "z": "events.after",
            "e": "events.before events.kind",
            "f": "events.before",
            "m": "events.at events.id events.kind",
        },
    ),
    "unknown function": (
        "select my_function(kind, id).field as f from raw.events",
        {"f": "events.id events.kind"},
    ),
}


@pytest.mark.parametrize("construct", CONSTRUCTS)
def test_each_construct_is_followed(construct: str, tmp_path: Path) -> None:
    sql, expected = CONSTRUCTS[construct]
    assert made_of(tmp_path, sql) == expected


# Queries with something whose columns are not known.
NOT_FOLLOWED = {
    "no such column": "select missing from raw.events",
    "ambiguous column": "select id from raw.events, raw.files",
    "table of another project": "select e.id from raw.events e join elsewhere.other o on o.id = e.id",
    "pivot": "select * from raw.events pivot (max(id) for kind in ('a', 'b'))",
    "generator of an unknown struct": "select inline(before) from raw.events",
    "union of different widths": "select id, kind from raw.events union all select id from raw.events",
    "star inside an expression": "select struct(*) as s from raw.events",
    "renamed star": "select * replace (1 as id) from raw.events",
    "statement that is no query": "insert into raw.events select 1",
    "broken SQL": "select ((id from raw.events",
    "recursion without end": "with recursive r as (select id as s from raw.events union all select struct(s) from r) "
    "select s from r",
    "aggregate without end": "select aggregate(before, id, (known, item) -> struct(known)) as a from raw.events",
    "too deep": f"select {'abs(' * 2000}id{')' * 2000} from raw.events",
    "unknown window": "select max(id) over w as m from raw.events",
}


@pytest.mark.parametrize("construct", NOT_FOLLOWED)
def test_a_query_that_cannot_be_followed_is_made_of_all_columns_of_its_parents(construct: str, tmp_path: Path) -> None:
    stored = {"model": {"m": "int", "n": "int"}}
    lineage = read_lineage(write_project(tmp_path, SOURCES, {"model": NOT_FOLLOWED[construct]}, stored=stored))
    read = table_of(lineage, "model").parents
    assert read
    of_parents = [f"{parent}.{column.name}" for parent in read for column in table_of(lineage, parent).columns]
    of_parents = [column.removeprefix("raw.") for column in of_parents]
    assert by_column(lineage, "model") == {"m": of_parents, "n": of_parents}
    assert not any(edge.is_exact for edge in lineage.edges)


def test_a_column_that_the_sql_does_not_give_is_not_exact(tmp_path: Path) -> None:
    stored = {"model": {"id": "bigint", "older": "string"}}
    models = {"model": "select id, size from raw.files"}
    lineage = read_lineage(write_project(tmp_path, {"files": FILES}, models, stored=stored))
    assert by_column(lineage, "model") == {
        "id": ["files.id"],
        "older": [f"files.{name}" for name in FILES],
        "size": ["files.size"],
    }
    assert {edge.target[1] for edge in lineage.edges if not edge.is_exact} == {"older"}


def test_a_table_without_known_columns_has_one_that_stands_for_all(tmp_path: Path) -> None:
    models = {
        "model": "select f.id, f.size, e.kind as k from raw.files f, raw.events e",
        "star": "select * from raw.files",
    }
    lineage = read_lineage(write_project(tmp_path, {"files": {}, "events": EVENTS}, models))
    assert [column.name for column in table_of(lineage, "raw.files").columns] == ["*"]
    assert by_column(lineage, "model") == {"id": ["files.*"], "size": ["files.*"], "k": ["events.kind"]}
    assert by_column(lineage, "star") == {"*": ["files.*"]}
    assert {edge.source for edge in lineage.edges if not edge.is_exact} == {("raw.files", "*")}


def test_models_are_steps_between_columns(tmp_path: Path) -> None:
    models = {
        "zero": "with __dbt__cte__hidden as (select id as h, array(struct(kind as word)) as words from raw.events) "
        "select w.word, h.h from __dbt__cte__hidden h lateral view explode(words) as w",
        "hidden": "select id as h, array(struct(kind as word)) as words from raw.events",
        "last": "with final as (select *, upper(word) as loud from marts.zero) select * from final",
    }
    lineage = read_lineage(write_project(tmp_path, {"events": EVENTS}, models, ephemeral=("hidden",)))
    assert [table.name for table in lineage.tables] == ["raw.events", "hidden", "zero", "last"]
    assert by_column(lineage, "hidden") == {"h": ["events.id"], "words": ["events.kind"]}
    assert by_column(lineage, "zero") == {"word": ["hidden.words"], "h": ["hidden.h"]}
    assert by_column(lineage, "last") == {"word": ["zero.word"], "h": ["zero.h"], "loud": ["zero.word"]}
    assert all(edge.is_exact for edge in lineage.edges)


def test_a_table_has_what_dbt_knows_of_it(tmp_path: Path) -> None:
    write_project(
        tmp_path,
        {"events": EVENTS},
        {"model": "\nselect id, kind from raw.events\n", "other": "select id from marts.model"},
        stored={"model": {"id": "bigint", "kind": "string"}},
        tests={"singular": ["model", "other"], "unique_model_id": ["model"]},
    )
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["nodes"]["model.demo.model"]["columns"] = {"ID": {"name": "ID", "description": "The key."}}
    # A generic test such as relationships reads another model too.
    manifest["nodes"]["test.demo.singular"]["attached_node"] = None
    manifest["nodes"]["test.demo.unique_model_id"]["attached_node"] = "model.demo.model"
    manifest["nodes"]["test.demo.unique_model_id"]["depends_on"]["nodes"].append("model.demo.other")
    manifest["unit_tests"] = {"unit_test.demo.x": {"resource_type": "unit_test", "name": "x"}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    lineage = read_lineage(tmp_path)
    assert table_of(lineage, "model") == Table(
        name="model",
        schema="marts",
        kind="model",
        description="About model.",
        columns=(Column("id", "bigint", "The key."), Column("kind", "string", "")),
        sql="select id, kind from raw.events",
        path="models/core/model.sql",
        parents=("raw.events",),
        tests=("singular", "unique_model_id"),
        group="core",
    )
    assert table_of(lineage, "other").tests == ("singular",)
    assert (table_of(lineage, "raw.events").group, table_of(lineage, "raw.events").sql) == ("raw", None)


def test_models_of_one_name_keep_apart(tmp_path: Path) -> None:
    write_project(tmp_path, {"events": EVENTS}, {"model": "select id from raw.events"})
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest["nodes"]["model.package.model"] = {**manifest["nodes"]["model.demo.model"], "schema": "package"}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    lineage = read_lineage(tmp_path)
    assert [table.name for table in lineage.tables] == ["raw.events", "model", "model.package.model"]
    assert [edge.target for edge in lineage.edges] == [("model", "id"), ("model.package.model", "id")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("manifest.json", None, "There is no manifest.json in"),
        ("manifest.json", "{", "manifest.json is not valid JSON"),
        ("manifest.json", "[]", "does not contain an object"),
        ("manifest.json", "{}", "has no 'nodes'"),
        ("catalog.json", "{", "catalog.json is not valid JSON"),
    ],
)
def test_a_file_that_is_not_dbts_is_named(name: str, content: str | None, message: str, tmp_path: Path) -> None:
    write_project(tmp_path, SOURCES, {})
    (tmp_path / name).unlink() if content is None else (tmp_path / name).write_text(content)
    with pytest.raises(StoreError, match=message):
        read_lineage(tmp_path)


def test_the_project_can_lack_a_catalog(tmp_path: Path) -> None:
    write_project(tmp_path, {"events": EVENTS}, {"model": "select 1 as one"})
    (tmp_path / "catalog.json").unlink()
    assert by_column(read_lineage(tmp_path), "model") == {"one": []}


def test_a_manifest_that_nothing_was_compiled_for_is_refused(tmp_path: Path) -> None:
    write_project(tmp_path, SOURCES, {"model": "", "other": ""})
    with pytest.raises(StoreError, match=r"has no compiled SQL of any model\. Run `binloom docs`"):
        read_lineage(tmp_path)


def test_models_of_a_project_that_uses_binloom_are_grouped_by_its_name(tmp_path: Path) -> None:
    folder = write_project(tmp_path, SOURCES, dict.fromkeys(("own", "typed", "ours"), "select id from raw.events"))
    manifest = json.loads((folder / "manifest.json").read_text())
    for name, package, path in (
        ("own", "shop", "own.sql"),
        ("typed", "shop", "tables/t.sql"),
        ("ours", "binloom", "marts/o.sql"),
    ):
        manifest["nodes"][f"model.demo.{name}"] |= {"package_name": package, "path": path}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    lineage = read_lineage(folder)
    assert [table_of(lineage, name).group for name in ("own", "typed", "ours")] == ["shop", "tables", "marts"]
