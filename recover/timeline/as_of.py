"""A moment in the log of a source: a time, a GTID or `file:position`, resolved to one place in commit order."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import UsageError
from recover.timeline.events import Place

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_GTID: Final = re.compile(
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}(:\w+)?:[0-9]+|[0-9]+-[0-9]+-[0-9]+", re.IGNORECASE
)
_POSITION: Final = re.compile(r"(?:(?P<epoch>[0-9]+)/)?(?P<file>.+):(?P<pos>[0-9]+)")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# A prepared transaction has the time of its XA COMMIT, which is a transaction of its own, later in the log.
_COMMITTED: Final = "committed_at is not null and xa_end_transaction_id is null"


class UnknownMomentError(UsageError):
    """A time, GTID or position is not in the log."""


@dataclass(frozen=True)
class Moment:
    """A place between two transactions of a source.

    Attributes
    ----------
    place
        Transactions that begin before it are included.
    binlog_file
        Its file.
    gtid, committed_at
        Of the last transaction before it.
    remarks
        Sentences on what is included, if the given text leaves a doubt.
    is_end
        Whether it is the end of the known log only because nothing is known after it.
    """

    place: Place
    binlog_file: str
    gtid: str | None
    committed_at: datetime | None
    remarks: tuple[str, ...] = ()
    is_end: bool = False

    def __str__(self) -> str:
        gtid = f", after {self.gtid}" if self.gtid else ""
        at = f", committed {_utc(self.committed_at)}" if self.committed_at is not None else ""
        return f"{self.binlog_file}:{self.place.pos}{gtid}{at}"


def moment_of(connection: "DuckDBPyConnection", source_id: str, text: str | None) -> Moment:
    """Return the moment that a text names; without a text, the end of the log.

    Parameters
    ----------
    connection
        It has the marts `transactions`.
    source_id
        The source whose log it is.
    text
        A time (ISO 8601, UTC without an offset), a GTID, or `file:position`, with `epoch/` before it if the file name
        is in several epochs.

    Raises
    ------
    UnknownMomentError
        The text is none of these, or the log does not contain it.
    """
    log = _Log(connection, source_id)
    if text is None:
        return log.end()
    # A date such as 2026-11-17 may also be a GTID of MariaDB.
    is_date = _DATE.match(text) is not None
    if _GTID.fullmatch(text) and not (is_date and not log.has_gtid(text)):
        return log.after_gtid(text)
    if is_date:
        return log.at_time(_time(text))
    if match := _POSITION.fullmatch(text):
        return log.at_position(match["file"], int(match["pos"]), match["epoch"])
    raise UnknownMomentError(
        f"{text!r} is not a time, a GTID or a position.",
        hint="Give for example 2026-11-17T10:00:00, a GTID, or binlog.000001:1234.",
    )


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UnknownMomentError(
            f"{text!r} is not a time.", hint="Write it as 2026-11-17T10:00:00, in UTC or with an offset such as +02:00."
        ) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


@dataclass(frozen=True)
class _Log:
    connection: "DuckDBPyConnection"
    source_id: str

    @property
    def _log(self) -> str:
        from recover.sources.files.file_log import SOURCE

        # Files that are not landed have no source that people know.
        return "log" if self.source_id == SOURCE else f"log of source {self.source_id}"

    def end(self) -> Moment:
        last = self._one("true order by epoch desc, file_sequence desc, start_pos desc limit 1")
        if last is None:
            raise UnknownMomentError(
                f"The {self._log} has no transactions.",
                hint="Land its binlog and run `binloom build`, or give other files with --files.",
            )
        return replace(self._before(Place(last[0], last[1], last[4]), last[2]), is_end=True)

    def has_gtid(self, gtid: str) -> bool:
        return self._one("gtid = $gtid limit 1", gtid=gtid) is not None

    def after_gtid(self, gtid: str) -> Moment:
        found = self._all("lower(gtid) = lower($gtid) order by epoch, file_sequence, start_pos", gtid=gtid)
        if not found:
            raise UnknownMomentError(f"The {self._log} does not contain {gtid}.", hint=self._near(gtid))
        if len(found) > 1:
            places = ", ".join(f"{epoch}/{file}:{end}" for epoch, _, file, _, end, *_ in found[:5])
            raise UnknownMomentError(
                f"{gtid} is in the log {len(found)} times.", hint=f"Give a position instead: {places}."
            )
        epoch, file_sequence, file, _, end, *_ = found[0]
        return self._before(Place(epoch, file_sequence, end), file)

    def at_position(self, file: str, pos: int, epoch: str | None) -> Moment:
        where = "binlog_file = $file" if epoch is None else "binlog_file = $file and epoch = $epoch"
        names: dict[str, Any] = {"file": file} if epoch is None else {"file": file, "epoch": int(epoch)}
        files = self._rows(
            f"select epoch, file_sequence, max(end_pos) from binloom.transactions where source_id = $source and {where}"
            " group by all order by all",
            **names,
        )
        if not files and (place := self._between_files(file, pos, epoch)) is not None:
            return self._before(place, file)
        if not files:
            known = self._files()
            if file in known:
                choices = ", ".join(f"{one}/{file}:{pos}" for one in known[file])
                raise UnknownMomentError(
                    f"The {self._log} has no file {file} in epoch {epoch}.",
                    hint=f"Give {choices}.",
                )
            files_of_log = [*known]
            near = difflib.get_close_matches(file, files_of_log, n=3) or files_of_log[:1] + files_of_log[-1:]
            raise UnknownMomentError(
                f"The {self._log} has no transactions in a file {file}.",
                hint=f"There are {', '.join(dict.fromkeys(near))}." if near else "Land it, or give it with --files.",
            )
        if len(files) > 1:
            choices = ", ".join(f"{row[0]}/{file}:{pos}" for row in files)
            raise UnknownMomentError(f"{file} is in several epochs.", hint=f"Give one of {choices}.")
        own_epoch, file_sequence, landed = files[0]
        next_file = self._one(
            "(epoch, file_sequence) > ($epoch, $sequence) limit 1", epoch=own_epoch, sequence=file_sequence
        )
        if pos > landed and next_file is None:
            raise UnknownMomentError(
                f"The {self._log} is known up to {file}:{landed}, which is before {file}:{pos}.",
                hint="Land the rest and run `binloom build`, give its files with --files, or give an earlier position.",
            )
        around = self._one(
            "epoch = $epoch and binlog_file = $file and start_pos < $pos and end_pos > $pos limit 1",
            epoch=own_epoch,
            file=file,
            pos=pos,
        )
        if around is None:
            return self._before(Place(own_epoch, file_sequence, pos), file)
        remark = f"The position is inside the transaction at {file}:{around[3]}, which is not included."
        return self._before(Place(own_epoch, file_sequence, around[3]), file, remark)

    def _between_files(self, file: str, pos: int, epoch: str | None) -> Place | None:
        """Return a position in a file without transactions, if files before and after it have some."""
        name, number = re.fullmatch(r"(.*?)([0-9]*)", file, re.DOTALL).groups()  # type: ignore[union-attr]
        around = self._rows(
            """select epoch, min(file_sequence), max(file_sequence) from binloom.transactions
            where source_id = $source and regexp_replace(binlog_file, '[0-9]+$', '') = $name
                and coalesce(epoch = $epoch, true)
            group by epoch""",
            name=name,
            epoch=None if epoch is None else int(epoch),
        )
        if len(around) != 1 or not number or not around[0][1] < int(number) < around[0][2]:
            return None
        return Place(around[0][0], int(number), pos)

    def _files(self) -> dict[str, list[int]]:
        """Return the names of the files, in their order, with the epochs of each."""
        return dict(
            self._rows(
                "select binlog_file, list(distinct epoch order by epoch) from binloom.transactions"
                " where source_id = $source group by all order by all"
            )
        )

    def at_time(self, time: datetime) -> Moment:
        in_order = "order by epoch, file_sequence, start_pos limit 1"
        following = self._one(f"committed_at > $time and {_COMMITTED} {in_order}", time=time)
        first = self._one(f"{_COMMITTED} {in_order}")
        if following is None or first is None:
            end = self.end()
            remark = f"The known log ends before {_utc(time)}: this is its end."
            return replace(end, remarks=(remark,))
        place = Place(following[0], following[1], following[3])
        if place == Place(first[0], first[1], first[3]):
            raise UnknownMomentError(
                f"{_utc(time)} is before the {self._log}.",
                hint=f"Its first transaction committed at {_utc(first[6])}.",
            )
        late = self._rows(
            f"""select count(*), min_by(binlog_file || ':' || start_pos, (epoch, file_sequence, start_pos))
            from binloom.transactions where source_id = $source and {_COMMITTED} and committed_at <= $time
                and (epoch, file_sequence, start_pos) >= ($epoch, $sequence, $pos)""",
            time=time,
            epoch=place.epoch,
            sequence=place.file_sequence,
            pos=place.pos,
        )[0]
        remarks = [
            f"The clock went back: {late[0]} later transactions, the first at {late[1]}, have an earlier commit time."
            " They are not included."
        ]
        return self._before(place, following[2], *(remarks if late[0] else []))

    def _before(self, place: Place, binlog_file: str, *remarks: str) -> Moment:
        last = self._one(
            "(epoch, file_sequence, start_pos) < ($epoch, $sequence, $pos)"
            " order by epoch desc, file_sequence desc, start_pos desc limit 1",
            epoch=place.epoch,
            sequence=place.file_sequence,
            pos=place.pos,
        )
        gtid, committed_at = (last[5], last[6]) if last is not None else (None, None)
        return Moment(place, binlog_file, gtid, committed_at, remarks)

    def _near(self, gtid: str) -> str:
        """Return which GTIDs of the same series the log contains."""
        stem, sign, _ = gtid.rpartition("-" if gtid.count("-") == 2 else ":")
        series = self._rows(
            """select arg_min(gtid, number), arg_max(gtid, number) from (
                select gtid, try_cast(regexp_extract(gtid, '([0-9]+)$', 1) as ubigint) as number
                from binloom.transactions where source_id = $source and starts_with(lower(gtid), lower($stem))
            )""",
            stem=stem + sign,
        )[0]
        if series[0] is not None:
            return f"It contains {series[0]} to {series[1]}, perhaps not all of them."
        any_gtid = self._one("gtid is not null order by epoch desc, file_sequence desc, start_pos desc limit 1")
        return f"Its last GTID is {any_gtid[5]}." if any_gtid else "Its transactions have no GTIDs; give a position."

    def _one(self, condition: str, **parameters: Any) -> tuple[Any, ...] | None:
        return next(iter(self._all(condition, **parameters)), None)

    def _all(self, condition: str, **parameters: Any) -> Sequence[tuple[Any, ...]]:
        return self._rows(
            "select epoch, file_sequence, binlog_file, start_pos, end_pos, gtid, committed_at"
            f" from binloom.transactions where source_id = $source and {condition}",
            **parameters,
        )

    def _rows(self, query: str, **parameters: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(query, {"source": self.source_id, **parameters}).fetchall()


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(sep=" ") + " UTC"
