"""Identity of a source's follower as a replica: drawn once at random, and kept in `replica.json` in the spool."""

import json
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Final

from ingest.errors import StoreError
from ingest.follow.checkpoint import spool_folder
from ingest.sources.servers.replication import HIGHEST_ID, Replica
from ingest.warehouse.files import replacing

REPLICA: Final = "replica.json"


def replica_of(source_id: str, home: Path, server_id: int | None = None) -> Replica:
    """Return the replica identity of a source in a home: always the same, and unique.

    It is random, because an identity derived from the names of source and home would be the same on every machine that
    uses these names. Only the holder of the source's lock may call this: two callers at once would draw two identities.

    Parameters
    ----------
    source_id
        Name of the source.
    home
        Folder that binloom keeps everything under. A copy of the folder has the same replica identity.
    server_id
        server_id from the user, which overrides the random one.

    Raises
    ------
    StoreError
        The file cannot be written, or has unexpected content.
    """
    folder = spool_folder(source_id, home)
    replica = _read(folder / REPLICA)
    if replica is None:
        replica = Replica.drawn()
        _write(replica, folder)
    return replica if server_id is None else Replica(server_id, replica.server_uuid)


def _read(path: Path) -> Replica | None:
    try:
        values = json.loads(path.read_bytes())
        replica = Replica(values["server_id"], str(uuid.UUID(values["server_uuid"])))
        if not (isinstance(replica.server_id, int) and 0 < replica.server_id <= HIGHEST_ID):
            raise ValueError(f"{replica.server_id!r} is not a server_id")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise StoreError(
            f"{path} cannot be read: {error}.",
            hint="Delete it: following then continues as another replica.",
            path=str(path),
        ) from error
    return replica


def _write(replica: Replica, folder: Path) -> None:
    with replacing(folder / REPLICA) as temporary:
        temporary.write_text(json.dumps(asdict(replica), indent=2) + "\n")
