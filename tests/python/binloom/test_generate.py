"""The texts that `binloom generate` writes, without a warehouse: names, types, former names, files."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2 import Environment

from binloom.commands.generate import gone, what_builds
from binloom.typed.files import Outcome, compared, known_stems
from binloom.typed.names import TableId, stems
from binloom.typed.personal import personal_data
from binloom.typed.renames import FormerNames, Step, UsedVersion, former_names
from binloom.typed.tables import SourceTable, TypedColumn
from binloom.typed.texts import models, prefix
from binloom.typed.types import spark_type
from recover.selection.catalog import Column
from recover.timeline.events import Place, Table
from recover.timeline.names import Period
from recover.undo.tables.table import ForeignKey
from tests.support.models.macros import Macros
from tests.support.places import PROJECT

NASTY = "a`b' \"{{ 1 }}{% x %}{# y #}\\ \n$\x07🎂"


@pytest.mark.parametrize(
    ("column_type", "data_type", "charset", "expected"),
    [
        ("tinyint(1)", "tinyint", None, "int"),
        ("smallint unsigned", "smallint", None, "int"),
        ("mediumint(8) unsigned zerofill", "mediumint", None, "int"),
        ("int", "int", None, "int"),
        ("int(10) unsigned", "int", None, "bigint"),
        ("bigint(20)", "bigint", None, "bigint"),
        ("bigint unsigned", "bigint", None, "decimal(20,0)"),
        ("longlong 0 unsigned", "longlong", None, "decimal(20,0)"),
        ("decimal(38,10)", "decimal", None, "decimal(38,10)"),
        ("decimal(39,10)", "decimal", None, "string"),
        ("newdecimal 2562", "newdecimal", None, "decimal(10,2)"),
        ("float unsigned", "float", None, "float"),
        ("double", "double", None, "double"),
        ("bit(63)", "bit", None, "bigint"),
        ("bit(64)", "bit", None, "decimal(20,0)"),
        ("year(4)", "year", None, "int"),
        ("date", "date", None, "date"),
        ("time(6)", "time", None, "string"),
        ("datetime(6)", "datetime", None, "timestamp_ntz"),
        ("timestamp2 0", "timestamp2", None, "timestamp"),
        ("enum('unsigned')", "enum", "utf8mb4", "string"),
        ("set('a','b')", "set", "utf8mb4", "array<string>"),
        ("json", "json", None, "string"),
        ("varchar(20)", "varchar", "latin1", "string"),
        ("text", "text", "utf8mb4", "string"),
        ("binary(16)", "binary", None, "binary"),
        ("blob", "blob", None, "binary"),
        ("varchar 20", "varchar", "binary", "binary"),
        ("point", "point", None, "binary"),
        ("uuid", "uuid", None, "string"),
    ],
)
def test_types(column_type: str, data_type: str, charset: str | None, expected: str) -> None:
    assert spark_type(Column(0, "c", data_type, column_type, charset, True, False)) == expected


class TestNames:
    ORDERS: TableId = ("shop", "shop", "orders")

    def test_a_table_has_the_names_of_its_schema_and_table(self) -> None:
        assert stems([self.ORDERS, ("shop", "my-shop", "New Orders")], {}, []) == {
            self.ORDERS: "shop__orders",
            ("shop", "my-shop", "New Orders"): "my_shop__new_orders",
        }

    def test_tables_of_two_sources_have_their_source_as_a_suffix(self) -> None:
        other = ("eu-1", "shop", "orders")
        assert stems([self.ORDERS, other], {}, []) == {self.ORDERS: "shop__orders__shop", other: "shop__orders__eu_1"}

    def test_case_twins_have_a_hash(self) -> None:
        twin = ("shop", "shop", "Orders")
        names = stems([self.ORDERS, twin], {}, [])
        assert len({*names.values()}) == 2
        assert all(name.startswith("shop__orders__shop__") for name in names.values())
        assert names == stems([twin, self.ORDERS], {}, [])

    def test_a_table_may_be_called_like_the_history_of_another(self) -> None:
        twin = ("shop", "shop", "orders__history")
        assert stems([self.ORDERS, twin], {}, []) == {
            self.ORDERS: "shop__orders__shop",
            twin: "shop__orders__history__shop",
        }

    def test_a_table_keeps_the_name_of_its_files(self) -> None:
        other = ("eu", "shop", "orders")
        names = stems([self.ORDERS, other], {self.ORDERS: "shop__orders"}, [])
        assert names == {self.ORDERS: "shop__orders", other: "shop__orders__eu"}

    def test_the_name_of_another_model_is_not_taken(self) -> None:
        assert stems([self.ORDERS], {}, ["shop__orders__history"]) == {self.ORDERS: "shop__orders__shop"}


class TestFormerNames:
    def used(self, *versions: tuple[int, str]) -> list[UsedVersion]:
        return [UsedVersion(f"v{at}", (0, 1, at), tuple(names)) for at, names in versions]

    def step(self, at: int, column: str, new_name: str | None = None) -> Step:
        return Step((0, 1, at), column, new_name)

    def test_a_renamed_column_is_followed(self) -> None:
        steps = [self.step(20, "b", "c"), self.step(40, "c", "d")]
        found = former_names(self.used((10, "ab"), (30, "ac"), (50, "ad")), steps, {*"ad"})
        assert found == (FormerNames(("v10",), {"b": "d"}), FormerNames(("v30",), {"c": "d"}))

    def test_a_new_column_may_have_the_former_name_of_another(self) -> None:
        found = former_names(self.used((10, "a"), (30, "ba")), [self.step(20, "a", "b")], {*"ab"})
        assert found == (FormerNames(("v10",), {"a": "b"}),)

    def test_a_dropped_column_keeps_its_name_unless_another_has_it(self) -> None:
        assert former_names(self.used((10, "ab")), [self.step(20, "b")], {"a"}) == ()
        steps = [self.step(20, "b"), self.step(30, "a", "b")]
        found = former_names(self.used((10, "ab")), steps, {"b"})
        assert found == (FormerNames(("v10",), {"a": "b", "b": "b_dropped"}),)

    def test_names_have_no_case(self) -> None:
        found = former_names(self.used((10, "a")), [self.step(20, "A", "Total")], {"Total"})
        assert found == (FormerNames(("v10",), {"a": "Total"}),)

    def test_two_columns_that_swap_their_names(self) -> None:
        steps = [self.step(20, "a", "\0"), self.step(20, "b", "a"), self.step(20, "\0", "b")]
        found = former_names(self.used((10, "ab"), (30, "ab")), steps, {*"ab"})
        assert found == (FormerNames(("v10",), {"a": "b", "b": "a"}),)


class TestFiles:
    TABLE: TableId = (NASTY, NASTY, NASTY)

    def test_a_file_is_written_until_a_person_edits_it(self, tmp_path: Path) -> None:
        path = tmp_path / "tables" / "x.sql"
        first = compared(path, self.TABLE, "select 1\n")
        assert (first.outcome, first.write()) == (Outcome.NEW, True)
        assert compared(path, self.TABLE, "select 1\n").outcome is Outcome.SAME
        changed = compared(path, self.TABLE, "select 2\n")
        assert changed.outcome is Outcome.CHANGED
        assert {"-select 1", "+select 2"} <= {*changed.diff}
        assert changed.write() and path.read_text().endswith("select 2\n")

        path.write_text(path.read_text() + "where true\n")
        # The table is the same, so there is nothing to tell.
        assert compared(path, self.TABLE, "select 2\n").outcome is Outcome.SAME
        refused = compared(path, self.TABLE, "select 3\n")
        assert (refused.outcome, refused.write()) == (Outcome.EDITED, False)
        assert {"-where true", "+select 3"} <= {*refused.diff}
        assert path.read_text().endswith("select 2\nwhere true\n")

    def test_a_file_without_our_first_line_is_not_overwritten(self, tmp_path: Path) -> None:
        path = tmp_path / "x.sql"
        path.write_text("select 1\n")
        assert compared(path, self.TABLE, "select 1\n").outcome is Outcome.EDITED

    def test_a_file_tells_of_which_table_it_is(self, tmp_path: Path) -> None:
        compared(tmp_path / "deep" / "x.yml", self.TABLE, "models: []\n").write()
        (tmp_path / "y.yml").write_text("# binloom generate: {}\n")
        assert known_stems(tmp_path) == {self.TABLE: "x"}


def test_the_command_that_builds_the_models_is_named(tmp_path: Path) -> None:
    assert what_builds(PROJECT / "models" / "tables").startswith("`binloom build` builds")
    assert what_builds(tmp_path / "models" / "tables").startswith("`dbt build` in your project builds")


def test_files_of_tables_that_are_gone_are_found() -> None:
    files = {("shop", "s", "here"): "s__here", ("shop", "s", "gone"): "s__gone", ("eu", "s", "gone"): "s__gone__eu"}
    assert gone(files, "shop", {("s", "here"), ("s", "new")}) == {("s", "gone"): "s__gone"}


def table(**others: Any) -> SourceTable:
    columns = (
        TypedColumn("id", "decimal(20,0)", "bigint unsigned"),
        TypedColumn(NASTY, "string", f"enum('{NASTY}')", comment=NASTY, labels=(NASTY, "x'")),
        TypedColumn("customer_email", "string", "varchar(20)"),
        TypedColumn("gone", "date", "date", is_present=False),
    )
    return SourceTable(**{"source_id": NASTY, "schema_name": NASTY, "table_name": "t", "columns": columns} | others)


def calls(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls of macros in a model."""
    found: list[tuple[str, dict[str, Any]]] = []

    class Macros:
        def __getattr__(self, name: str) -> Any:
            return lambda **arguments: found.append((name, arguments)) or ""

    Environment().from_string(text).render(binloom=Macros(), config=lambda **_: "", ref=lambda name: f"ref {name}")
    return found


class TestTexts:
    FORMER = (FormerNames(("v1", "v2"), {NASTY: "id"}),)

    def texts(self) -> dict[str, str]:
        key = ForeignKey("fk", (NASTY, "t"), ("id",), (NASTY, "parent"), ("id",))
        one = table(primary_key=("id",), foreign_keys=(key,), former_names=self.FORMER)
        return models(one, "s__t", {(NASTY, NASTY, "parent"): "s__parent"})

    def test_a_renamed_table_has_its_former_names(self) -> None:
        former = Period(Table(NASTY, "old {{ schema }}", NASTY), None, Place(1, 2, 3))
        periods = (Period(Table(NASTY, NASTY, "t"), Place(1, 2, 3)), former)
        texts = models(table(primary_key=("id",), periods=periods), "s__t", {})
        expected = [{"schema": "old {{ schema }}", "name": NASTY, "until": [1, 2, 3]}]
        for kind in ("history", "changes"):
            ((_, arguments),) = calls(texts[f"s__t__{kind}.sql"])
            assert arguments["former_tables"] == expected

    def test_names_are_data(self) -> None:
        texts = self.texts()
        types = {"id": "decimal(20,0)", NASTY: "string", "customer_email": "string"}
        arguments = {
            "table": {"source": NASTY, "schema": NASTY, "name": "t"},
            "columns": types,
            "former_columns": {"gone": "date"},
            "former_names": [{"table_version_ids": ["v1", "v2"], "names": {NASTY: "id"}}],
        }
        assert calls(texts["s__t__history.sql"]) == [("typed_history", arguments)]
        assert calls(texts["s__t__changes.sql"]) == [("typed_changes", arguments)]
        assert calls(texts["s__t.sql"]) == [("typed_current", {"history": "ref s__t__history", "columns": [*types]})]

    def test_properties_describe_each_column(self) -> None:
        document = yaml.safe_load(self.texts()["s__t.yml"])
        by_name = {one["name"]: one for one in document["models"]}
        assert [*by_name] == ["s__t", "s__t__history", "s__t__changes"]
        columns = by_name["s__t"]["columns"]
        rendered = Environment().from_string(columns[1]["description"]).render()
        assert rendered == f"{NASTY}. On the server: enum('{NASTY}')."
        assert Environment().from_string(columns[1]["name"]).render() == NASTY
        assert columns[2]["config"]["meta"] == {"personal_data": "email"}
        assert [*by_name["s__t"]["columns"][0]["data_tests"]][:2] == ["unique", "not_null"]
        assert columns[0]["data_tests"][2]["relationships"]["arguments"] == {
            "to": "ref('s__parent')",
            "field": "`id`",
        }
        assert "gone" not in json.dumps(columns)
        assert all(column["description"] for one in document["models"] for column in one["columns"])

    def test_a_query_that_is_too_long_for_a_view_becomes_a_table(self) -> None:
        def materialized(columns: int) -> list[str]:
            wide = tuple(TypedColumn(f"column_{number}", "int", "int") for number in range(columns))
            texts = models(table(columns=wide, primary_key=("column_0",)), "s", {})
            return [texts[f"s__{kind}.sql"].split("'")[1] for kind in ("history", "changes")]

        assert [materialized(columns) for columns in (10, 65, 200)] == [
            ["view", "view"],
            ["view", "table"],
            ["table", "table"],
        ]

    @pytest.mark.parametrize("type", ["decimal(12,2)", "timestamp"])
    @pytest.mark.parametrize(("columns", "former"), [(50, 0), (66, 0), (12, 3)])
    def test_a_view_is_short_enough_for_the_metastore(self, columns: int, former: int, type: str) -> None:
        many = tuple(TypedColumn(f"column_{number}", type, "text") for number in range(columns))
        names = {f"before_{number}": f"column_{number}" for number in range(3)}
        places = [Place(0, 1, 100 * number) for number in range(former, 0, -1)]
        one = table(
            columns=many,
            primary_key=("column_0",),
            former_names=tuple(FormerNames(("0" * 32, f"{number:032}"), names) for number in range(former)),
            periods=(
                Period(Table(NASTY, NASTY, "t"), next(iter(places), None)),
                *(Period(Table(NASTY, "shop", f"orders_{place.pos}"), None, place) for place in places),
            ),
        )
        texts = models(one, "s", {})
        macros = Macros({}, ref=lambda name: f"`binloom`.`{name}`")
        for kind in ("history", "changes"):
            text = texts[f"s__{kind}.sql"]
            if "materialized='view'" in text:
                ((macro, arguments),) = calls(text)
                assert len(macros.value(macro, **arguments)) < 32_700
        assert "materialized='view'" in texts["s__history.sql"] or columns == 66

    def test_a_table_without_a_key_has_its_changes_only(self) -> None:
        texts = models(table(), "s__t", {})
        assert [*texts] == ["s__t__changes.sql", "s__t.yml"]
        assert [one["name"] for one in yaml.safe_load(texts["s__t.yml"])["models"]] == ["s__t__changes"]

    def test_a_column_may_begin_like_those_of_binloom(self) -> None:
        one = table(columns=(TypedColumn("BINLOOM_version", "int", "int"),), primary_key=("BINLOOM_version",))
        assert prefix(one) == "binloom__"
        assert calls(models(one, "s", {})["s__history.sql"])[0][1]["prefix"] == "binloom__"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("email", "email"),
        ("billing_email", "email"),
        ("fullName", "name"),
        ("user_name", "name"),
        ("birthday", "birth"),
        ("ip_address", "network"),
        ("description", None),
        ("ship_to", None),
        ("name", None),
        ("sexagesimal", None),
        ("mailing", None),
    ],
)
def test_columns_that_look_like_personal_data(name: str, kind: str | None) -> None:
    assert personal_data(name) == kind


def test_a_comment_tells_of_personal_data() -> None:
    assert personal_data("note2", "E-mail of the customer") == "email"
    assert personal_data("ip", "zip file") == "network"
