"""The parts of the page that show tables: the list of an area, and a page for each table."""

from collections.abc import Iterable
from typing import Final

from binloom.site.areas import area_of, feeding_areas, tables_by_area
from binloom.site.facts import Facts
from binloom.site.lineage import Lineage, Table
from binloom.site.markup import anchor, inline, link, prose, rows, text
from binloom.site.table_graph import TableGraph
from ingest.words import counted

# Parts of docs/overview.md.
_QUESTIONS: Final = "Where to look"
_RULES: Final = "Rules for all tables"
_KINDS: Final = {"source": "raw table", "seed": "seed", "model": "model"}


class TablePages:
    """The pages of areas and tables of a project."""

    def __init__(self, lineage: Lineage, facts: Facts) -> None:
        self._lineage = lineage
        self._facts = facts
        self._tables = {table.name: table for table in lineage.tables}
        self._graph = TableGraph(lineage)

    def is_table(self, name: str) -> bool:
        """Return whether a name is that of a table."""
        return name in self._tables

    def questions(self, overview: str) -> str:
        """Return the page of questions and the tables that answer them, and the rules for all tables."""
        _, *sections = overview.split("\n## ")
        texts = {title: content for title, _, content in (one.partition("\n") for one in sections)}
        questions = prose(texts.get(_QUESTIONS, "This project lists no questions."), self.is_table)
        rules = f"<h2>{_RULES}</h2>{prose(texts[_RULES], self.is_table)}" if _RULES in texts else ""
        return section(f"<h1>{_QUESTIONS}</h1>{questions}{rules}", _QUESTIONS, "look")

    def list_of_all(self) -> str:
        """Return the page of all tables, by area."""
        areas = "\n".join(
            f"<h2>{link(area.title, 'area', area.folder)}</h2>{self._briefly(tables)}"
            for area, tables in tables_by_area(self._lineage).items()
        )
        return section(f"<h1>All tables</h1>{areas}", "All tables", "tables")

    def areas(self) -> Iterable[str]:
        """Yield a page for each area."""
        feeding = feeding_areas(self._lineage)
        for area, tables in tables_by_area(self._lineage).items():
            reads = [link(one.title, "area", one.folder) for one in feeding[area]]
            feeds = [link(one.title, "area", one.folder) for one, found in feeding.items() if area in found]
            yield section(
                f"<p class='path'>{link('The way of the data', 'start')}</p><h1>{text(area.title)}</h1>"
                f"<p>{text(area.purpose)}</p>{_facts_of([('Reads', reads), ('Feeds', feeds)])}{self._briefly(tables)}",
                area.title,
                "area",
                area.folder,
            )

    def tables(self) -> Iterable[str]:
        """Yield a page for each table."""
        return map(self._page, sorted(self._lineage.tables, key=lambda table: table.name))

    def _briefly(self, tables: list[Table]) -> str:
        cells = [
            [link(one.name, "table", one.name), self._first_sentence(one), str(len(one.columns))] for one in tables
        ]
        return rows(["table", "contents", "#columns"], cells, "Tables")

    def _first_sentence(self, table: Table) -> str:
        line = next((line for line in table.description.split("\n") if line and not line.startswith("#")), "")
        sentence, dot, _ = line.partition(". ")
        return inline(sentence + dot.rstrip(), self.is_table)

    def _page(self, table: Table) -> str:
        area = area_of(table)
        place = [
            ("Area", [link(area.title, "area", area.folder)]),
            ("Kind", [text(_KINDS[table.kind])]),
            ("Schema", [f"<code>{text(table.schema)}</code>"] if table.schema else []),
            ("File", [f"<code>{text(table.path)}</code>"] if table.path else []),
            ("Reads", [self._link(name) for name in sorted(table.parents)]),
            ("Feeds", [self._link(name) for name in sorted(self._graph.children[table.name])]),
        ]
        return section(
            f"<p class='path'>{link('The way of the data', 'start')} / {link(area.title, 'area', area.folder)}</p>"
            f"<h1>{text(table.name)}</h1><div class='about'>{prose(table.description, self.is_table)}</div>"
            f"{_facts_of(place)}{self._way(table)}{self._columns(table)}{self._tests(table)}{_sql(table)}",
            table.name,
            "table",
            table.name,
        )

    def _link(self, name: str) -> str:
        return link(name, "table", name) if self.is_table(name) else text(name)

    def _columns(self, table: Table) -> str:
        cells = []
        for column in table.columns:
            here = ("column", table.name, column.name)
            name = link(column.name, *here, attributes=f' class="column" id="{anchor(*here)}"')
            cells.append([name, _type(column.type), inline(column.description, self.is_table)])
        are_typed = any(column.type for column in table.columns)
        untyped = "" if are_typed else " Their types are not known: the table is not stored, or was not built yet."
        return (
            "<h2>Columns</h2><p class='quiet'>Choose a column to see where its values come from and where they go."
            f"{untyped}</p>" + rows(["column", "type", "description"], cells, f"Columns of {table.name}")
        )

    def _way(self, table: Table) -> str:
        drawing = self._graph.drawing(table.name)
        if not drawing:
            return ""
        return (
            "<h2>The way of the data</h2><p class='quiet'>The tables that it is made of are on the left, back to the "
            "raw tables; those that are made of it are on the right.</p>"
            f'<div class="drawing" role="region" tabindex="0" aria-label="Drawing">{drawing}</div>'
        )

    def _tests(self, table: Table) -> str:
        """Return the tests of a table. A fault in it also shows in the tests of the tables that are made of it."""
        cells = [
            [f"<code>{text(name)}</code>", self._link(one), self._result(name)]
            for one in [table.name, *self._graph.made_of(table.name)]
            for name in sorted(self._tables[one].tests)
        ]
        if not cells:
            return ""
        return (
            "<h2>Tests</h2><p class='quiet'>The tests of this table, and of the tables that are made of it.</p>"
            f"{rows(['test', 'of table', 'last result'], cells, f'Tests of {table.name}')}"
        )

    def _result(self, name: str) -> str:
        result = self._facts.tests.get(name)
        if result is None:
            return '<span class="quiet">no result is recorded</span>'
        if result.status == "pass":
            return badge("good", "passed")
        kind = "warning" if result.status == "warn" else "bad" if result.status in ("fail", "error") else ""
        return badge(kind, result.status + (f", {counted(result.failures, 'row')}" if result.failures else ""))


def section(content: str, title: str, *parts: str) -> str:
    """Return a page of the site: the script shows one at a time, and puts its title in the window's."""
    return f'<section class="page" id="{anchor(*parts)}" data-title="{text(title)}" tabindex="-1">{content}</section>'


def badge(kind: str, label: str) -> str:
    """Return a result in a colour: `good`, `warning` or `bad`."""
    return f'<span class="badge {kind}">{text(label)}</span>'


def _facts_of(facts: list[tuple[str, list[str]]]) -> str:
    """Return lists of links with their titles, without those that are empty."""
    return (
        '<dl class="facts">'
        + "".join(f"<div><dt>{title}</dt><dd>{', '.join(values)}</dd></div>" for title, values in facts if values)
        + "</dl>"
    )


def _type(name: str) -> str:
    """Return a type that can be broken between its parts: the type of a struct is long."""
    return f'<code class="type">{text(name).replace(",", ",<wbr>").replace("&lt;", "&lt;<wbr>")}</code>'


def _sql(table: Table) -> str:
    if table.sql is None:
        return ""
    sql = text(table.sql)
    return f"<details><summary>SQL of {text(table.name)}</summary><pre><code>{sql}</code></pre></details>"
