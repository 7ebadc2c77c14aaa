"""Functions that mkdocs calls while it writes the documentation site (`hooks` in mkdocs.yml).

The pages are written for GitHub and for dbt. So links that leave docs/ lead to the lineage site or become plain text,
and the marks of dbt's blocks are taken out. The README is the first page.
"""

import posixpath
import re
from pathlib import Path, PurePosixPath
from typing import Any, Final

from mkdocs.structure.files import File

_LINK: Final = re.compile(r"(!?)\[((?:[^\[\]]|`[^`]*`)*)\]\(([^)\s]+)\)")
_BLOCK: Final = re.compile(r"^\{% (?:docs \w+|enddocs) %\}\n?", re.MULTILINE)


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add the README as the first page, with its links as seen from docs/."""
    readme = (Path(config["config_file_path"]).parent / "README.md").read_text()
    files.append(File.generated(config, "index.md", content=_LINK.sub(_from_docs, readme)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Return the text of a page as the site can show it, with a link to the lineage site on the first one."""
    lineage = config["extra"]["lineage_site"]

    def led(link: re.Match[str]) -> str:
        return _led(link, PurePosixPath(page.file.src_uri).parent, lineage)

    text = _LINK.sub(led, _BLOCK.sub("", markdown))
    if page.is_homepage and lineage:
        text += f'\nThe <a href="{lineage}">lineage site</a> shows the tables, their columns and the proofs.\n'
    return text


def _from_docs(link: re.Match[str]) -> str:
    return f"{link[1]}[{link[2]}]({posixpath.relpath(link[3], 'docs') if ':' not in link[3] else link[3]})"


def _led(link: re.Match[str], folder: PurePosixPath, lineage: str) -> str:
    target = link[3]
    path = PurePosixPath(posixpath.normpath(folder / target.partition("#")[0]))
    if ":" in target or target.startswith("#") or path.parts[:1] != ("..",):
        return link[0]
    if path.parts[1] == "models" and lineage:
        # mkdocs refuses a link of Markdown to a file that it does not write.
        return f'<a href="{posixpath.relpath(lineage, folder)}#table/{path.stem}">{link[2]}</a>'
    return link[2]
