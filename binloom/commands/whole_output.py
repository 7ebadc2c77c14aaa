"""Files that a command writes: each exists only when it has all of its contents."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced(output: Path) -> Iterator[Path]:
    """Give a path beside an output, for a file or a folder that replaces it if all goes well.

    An output that is no regular file, such as /dev/null, is given itself: it must not be replaced by one.

    Raises
    ------
    OSError
        It cannot be written. It names the output.
    """
    is_replaced = output.is_file() or not output.exists()
    part = output.with_name(f".{output.name}.part") if is_replaced else output
    try:
        if is_replaced:
            _remove(part)
        yield part
        if is_replaced:
            part.replace(output)
    except OSError as error:
        if error.filename in (None, str(part)):
            error.filename = str(output)
        raise
    finally:
        if is_replaced:
            _remove(part)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
