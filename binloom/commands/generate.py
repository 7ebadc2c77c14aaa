"""`binloom generate`: write typed models of the tables of a source."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from binloom.commands.output import print_line, say
from binloom.commands.project import clone_dir, project_dir
from binloom.typed.files import Generated, Outcome, compared, known_stems
from binloom.typed.names import TableId, model_name, stems
from binloom.typed.tables import Catalog, SourceTable
from binloom.typed.texts import models
from ingest.errors import EXIT_CHECK_FAILED, EXIT_DONE, UsageError
from ingest.warehouse.home import binloom_home
from ingest.words import counted
from recover.selection.catalog import unknown_source, unknown_table
from recover.selection.condition import is_filtered_table
from recover.selection.filters import Filters
from recover.sources.cluster.thrift import Cluster, is_cluster_target

# A snapshot shows it, and some servers log changes of its tables.
_SYSTEM_SCHEMA: Final = "mysql"


def generate_models(source_id: str, patterns: Sequence[str], folder: Path | None, check: bool) -> int:
    """Write the models of the tables that fit a pattern, print what changed, and return the exit code.

    Parameters
    ----------
    patterns
        Names of tables, as in `--table`. Without any, all tables but those that the server has for itself.
    folder
        Default: `models/tables` of the dbt project.
    check
        Write nothing; the exit code is 1 if a file would be written, or is edited and no longer fits.
    """
    catalog = (
        Catalog.of_cluster(Cluster.of_environment()) if is_cluster_target() else Catalog.of_warehouse(binloom_home())
    )
    project = _own_project()
    folder = folder or _default_folder(project)
    names = catalog.table_names()
    if source_id not in names:
        raise unknown_source(source_id, names)
    for pattern in patterns:
        if not any(is_filtered_table(Filters(tables=(pattern,)), *name) for name in names[source_id]):
            raise unknown_table(pattern, names[source_id])
    wanted = Filters(tables=tuple(patterns))

    def is_wanted(schema: str, table: str) -> bool:
        return is_filtered_table(wanted, schema, table) if patterns else schema != _SYSTEM_SCHEMA

    tables = catalog.tables(source_id, is_wanted)
    known = known_stems(folder)
    everything: list[TableId] = [(source, *name) for source, listed in names.items() for name in listed]
    chosen = stems(everything, known, _other_models(project or project_dir(), folder))
    keyed = {_id(table) for table in tables if table.primary_key}
    parents = {one: stem for one, stem in chosen.items() if one in keyed or (folder / f"{stem}.sql").is_file()}
    found = [
        compared(folder / name, _id(table), body)
        for table in tables
        for name, body in models(table, chosen[_id(table)], parents).items()
    ]
    _report(found, check)
    for table in tables:
        if not table.primary_key:
            say(f"{table.name} has no primary key, so only its changes have a model: no version of a row is one row.")
    for name, stem in sorted(gone(known, source_id, names[source_id]).items()):
        if is_wanted(*name):
            later = catalog.later_name(source_id, *name)
            fate = "does not exist any more" if later is None else f"is {later} now"
            say(f"{'.'.join(name)} {fate}: the models {stem}* end with it. Delete their files if nothing reads them.")
    if not check:
        for one in found:
            one.write()
        if any(one.outcome is not Outcome.SAME for one in found):
            say(what_builds(folder))
        return EXIT_DONE
    return EXIT_DONE if all(one.outcome is Outcome.SAME for one in found) else EXIT_CHECK_FAILED


def gone(
    known: Mapping[TableId, str], source_id: str, present: Collection[tuple[str, str]]
) -> dict[tuple[str, str], str]:
    """Return the tables of a source that have files and do not exist any more, with the names of their models."""
    return {
        (schema, table): stem
        for (source, schema, table), stem in known.items()
        if source == source_id and (schema, table) not in present
    }


def what_builds(folder: Path) -> str:
    """Return which command builds the models in a folder."""
    if folder.resolve().is_relative_to((project_dir() / "models").resolve()):
        return "`binloom build` builds these models."
    return "`dbt build` in your project builds these models, after `binloom build`."


def _report(files: Sequence[Generated], check: bool) -> None:
    for one in files:
        if one.outcome is Outcome.NEW:
            print_line(f"{'missing' if check else 'new'}: {one.path}")
        elif one.outcome is not Outcome.SAME:
            print_line(f"{one.outcome}: {one.path}")
            for line in one.diff:
                print_line(f"    {line}")
    counts = Counter(one.outcome for one in files)
    print_line(", ".join(f"{counted(number, 'file')} {outcome}" for outcome, number in counts.items()))


def _id(table: SourceTable) -> TableId:
    return table.source_id, table.schema_name, table.table_name


def _own_project() -> Path | None:
    """Return the dbt project of the current folder or a parent, else the clone of binloom."""
    here = Path.cwd()
    own = (folder for folder in (here, *here.parents) if (folder / "dbt_project.yml").is_file())
    return next(own, None) or clone_dir()


def _default_folder(project: Path | None) -> Path:
    if project is None:
        raise UsageError(
            f"There is no dbt project in {Path.cwd()} or above it, which the models could be written to.",
            hint="Make one with `binloom init DIR` and change to it, or name a folder with --dir.",
        )
    return project / "models" / "tables"


def _other_models(project: Path, folder: Path) -> set[str]:
    """Return the names of models that were not generated."""
    generated = {model_name(stem, kind) for stem in known_stems(folder).values() for kind in ("", "history", "changes")}
    return {path.stem.lower() for path in (project / "models").rglob("*.sql")} - generated
