"""Record which server writes which epoch of a followed source."""

from ingest.follow.handover import Decision
from ingest.landing.held import StreamLanding
from ingest.sources.servers.server import ServerIdentity
from ingest.warehouse.record import SourceRecord


def record_identity(landing: StreamLanding, decision: Decision, identity: ServerIdentity) -> None:
    """Record the epoch that a decision opens, or the server of its epoch if that has changed."""
    row = {
        "epoch": decision.epoch,
        "server_uuid": identity.server_uuid,
        "server_id": identity.server_id,
        "host": identity.host,
        "port": identity.port,
        "flavor": identity.flavor,
        "server_version": identity.version,
    }
    # An earlier run may have opened the epoch and been killed before it received anything. Since then the earlier epoch
    # may have gone on, so this decision counts: its GTIDs include what was landed meanwhile.
    if decision.opens and not landing.record.has_begun(decision.epoch):
        starts = {name: getattr(decision, name) for name in ("start_file", "start_pos", "gtids_before")}
        landing.open_epoch({**row, **starts})
    elif not is_known(landing.record, decision, identity):
        landing.record_identity(row)


def is_known(record: SourceRecord, decision: Decision, identity: ServerIdentity) -> bool:
    """Return whether this identity is the last recorded identity of the decision's epoch."""
    known = record.identity(decision.epoch)
    names = ("server_uuid", "server_id", "host", "port", "server_version")
    return known is not None and tuple(known[name] for name in names) == (
        identity.server_uuid,
        identity.server_id,
        identity.host,
        identity.port,
        identity.version,
    )
