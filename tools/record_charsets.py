"""Records how the servers convert each character set: `python -m tools.record_charsets`.

Python's codecs differ from the servers in some characters of most non-Unicode sets, so binloom contains
the servers' own tables, in `ingest/binlog/text/charset_tables/NAME.bin`: zlib-compressed unsigned 16-bit code points,
little-endian; 0 where the bytes are not a character.

- A single-byte set has 256 code points.
- A multi-byte set has 65536 for two bytes, at `first << 8 | second`; then 256 for single bytes; and, when it has
  characters of three bytes that begin with 0x8F, 65536 more for the two bytes after 0x8F.
- gb18030 has 39420 for four bytes instead; they count with the digits 81-FE, 30-39, 81-FE, 30-39 from 81308130
  on. From 90308130 on they are the code points from U+10000 on, which need no table.

A character without a counterpart in Unicode is `?`, as the servers print it. The script queries MySQL and MariaDB:
they agree in every character; bytes that only one of them accepts do not count as a character. MariaDB does not have
gb18030.

`collations.tsv` in the same folder has the names of collations by id, where the two servers agree.
"""

import tempfile
import zlib
from pathlib import Path

import numpy as np

from tests.servers import Server, mariadb, mysql

TABLES = Path(__file__).resolve().parents[1] / "ingest" / "binlog" / "text" / "charset_tables"
UNICODE = {"utf8mb3", "utf8mb4", "ucs2", "utf16", "utf16le", "utf32", "binary"}
SINGLE_BYTE_END = 256
TWO_BYTES = 65536
FOUR_BYTES = 39420


def prepare(server: Server) -> None:
    """Make tables of all sequences of one byte, of two, of three that begin with 0x8F, and of four of gb18030."""
    singles = ", ".join(f"(x'{byte:02x}')" for byte in range(256))
    server.execute(
        "create database charsets",
        "use charsets",
        "set session sql_log_bin = 0",
        "create table sequences1 (bytes varbinary(4) primary key)",
        "create table sequences2 like sequences1",
        "create table sequences3 like sequences1",
        "create table sequences4 like sequences1",
        f"insert into sequences1 values {singles}",
        "insert into sequences2 select concat(a.bytes, b.bytes) from sequences1 a, sequences1 b where a.bytes >= x'80'",
        "insert into sequences3 select concat(x'8f', bytes) from sequences2 where bytes >= x'a1a1'",
        "insert into sequences4 select concat(a.bytes, b.bytes) from sequences2 a, sequences2 b"
        " where substr(a.bytes, 2) between x'30' and x'39' and a.bytes < x'8530'"
        " and substr(b.bytes, 2) between x'30' and x'39' and b.bytes between x'8130' and x'fe39'",
    )


def characters(server: Server, charset: str, length: int) -> dict[bytes, int]:
    """Return the code point of each sequence that is one character, as the server prints it."""
    as_text = f"convert(bytes using {charset})"
    rows = server.execute(
        "set session sql_mode = ''",
        f"select hex(bytes), hex(convert({as_text} using utf32)) from charsets.sequences{length}"
        f" where char_length({as_text}) = 1",
    )
    return {bytes.fromhex(sequence): int(code, 16) for sequence, code in rows if code and len(code) == 8}


def known_characters(servers: list[Server], charset: str, lengths: tuple[int, ...]) -> dict[bytes, int]:
    """Return the code points of the sequences of some lengths that all servers convert alike."""
    known: dict[bytes, int] = {}
    for length in lengths:
        first, *others = [characters(server, charset, length) for server in servers]
        known |= {
            sequence: code for sequence, code in first.items() if all(other.get(sequence) == code for other in others)
        }
    return known


def table(servers: list[Server], charset: str, longest: int) -> np.ndarray:
    """Build the table of a character set from the conversions on which all servers agree."""
    if longest == 1:
        codes = np.zeros(SINGLE_BYTE_END, dtype="<u2")
        for sequence, code in known_characters(servers, charset, (1,)).items():
            codes[sequence[0]] = code
        return codes
    lengths = {2: (1, 2), 3: (1, 2, 3), 4: (1, 2, 4)}[longest]
    known = known_characters(servers, charset, lengths)
    codes = np.zeros(TWO_BYTES + 256 + {2: 0, 3: TWO_BYTES, 4: FOUR_BYTES}[longest], dtype="<u2")
    for sequence, code in known.items():
        number = int.from_bytes(sequence[-2:], "big")
        if len(sequence) == 4:
            number = number_of(sequence)
            if number >= FOUR_BYTES:
                continue
        codes[{1: TWO_BYTES, 2: 0, 3: TWO_BYTES + 256, 4: TWO_BYTES + 256}[len(sequence)] + number] = code
    return codes


def collations(mysql_server: Server, mariadb_server: Server) -> dict[int, str]:
    """Return names by id, without ids that the servers name differently."""
    one = dict(mysql_server.execute("select id, collation_name from information_schema.collations"))
    other = dict(
        mariadb_server.execute(
            "select id, full_collation_name from information_schema.collation_character_set_applicability"
        )
    )
    return {
        int(number): name
        for number, name in sorted((other | one).items())
        if one.get(number, name) == other.get(number, name)
    }


def number_of(sequence: bytes) -> int:
    """Return the index of four bytes of gb18030: two digits of base 126 and 10, twice."""
    first, second, third, fourth = sequence
    return (((first - 0x81) * 10 + second - 0x30) * 126 + third - 0x81) * 10 + fourth - 0x30


def main() -> None:
    TABLES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="charsets-") as work,
        mysql.start(Path(work) / "mysql") as one,
        mariadb.start(Path(work) / "mariadb") as other,
    ):
        prepare(one)
        prepare(other)
        query = "select character_set_name, maxlen from information_schema.character_sets order by 1"
        of_both = {row[0] for row in other.execute(query)}
        for charset, longest in one.execute(query):
            if charset not in UNICODE:
                codes = table([one, other] if charset in of_both else [one], charset, int(longest))
                (TABLES / f"{charset}.bin").write_bytes(zlib.compress(codes.tobytes(), 9))
                print(f"{charset}: {np.count_nonzero(codes):,} characters")
        names = collations(one, other)
        (TABLES / "collations.tsv").write_text("".join(f"{number}\t{name}\n" for number, name in names.items()))
        print(f"{len(names)} collations")


if __name__ == "__main__":
    main()
