"""Tables with features that only some servers have, and large tables."""

from __future__ import annotations

import json
import random
from dataclasses import replace

from tests.servers import Server, mariadb118, mysql, mysql56
from tests.support.binlog.workload import SCHEMA, Column, Table, binary, literal, make_column, text_column


def partly_changed_documents() -> Table:
    """Make documents that functions change in part, so that PARTIAL_JSON has something to log."""
    random_numbers = random.Random(3)
    documents = [
        '{"name": "one", "tags": ["x", "y"], "deep": {"list": [1, {"k": "v"}], "n": 1}}',
        '{"a.b": 1, "c \\"d\\"": 2, "é": 3, "": 4, "$": 5, "name": "two"}',
        '[[1, 2], [3, 4], {"k": [true, null, 1.5]}]',
        '"a scalar"',
        "{}",
        '{"deep": {"deep": {"deep": {"deep": [0, [1, [2, [3]]]]}}}, "name": "five"}',
        json.dumps(
            {
                "name": "many",
                "n": [random_numbers.randrange(10**9) for _ in range(300)],
                "members": {f"key {number}": f"value {number}" for number in range(300)},
            }
        ),
    ]
    literals = [f"cast({literal(text)} as json)" for text in documents]
    columns = (
        make_column("one", "json", "json", literals),
        make_column("number", "int", "integer", [1, 2, 3]),
        make_column("other", "json", "json", [*literals[3:], *literals[:3]]),
        make_column("required", "json not null", "json", literals[::-1]),
    )
    table = Table("partly_changed", columns)
    changes = [
        "one = json_set(one, '$.name', 'changed', '$.deep.n', 22)",
        "one = json_replace(one, '$.tags[1]', 'Z', '$.deep.list[1].k', null), number = number + 1",
        "one = json_remove(one, '$.tags[0]', '$.deep.list[0]')",
        """one = json_set(one, '$."a.b"', 10, '$."c \\\\"d\\\\""', 20, '$."é"', 30, '$.""', 40, '$."$"', 50)""",
        "other = json_set(other, '$.new', 60)",
        "other = json_set(other, '$[0][1]', 'x', '$[2].k[1]', json_object('a', 1))",
        "other = json_set(other, '$[1]', 9.5), required = json_set(required, '$.m', 1)",
        "other = json_array_insert(other, '$[0]', 'first')",
        "other = json_array_append(other, '$', 'last')",
        "other = json_array_append(other, '$.n', 1)",
        "required = json_replace(required, '$.n[0]', cast('1.50' as decimal(10,2)), '$.n[last]', 'last')",
        "required = json_replace(required, '$.n[7]', 0.5, '$.n[8]', null, '$.n[9]', true)",
        "required = json_replace(required, '$.members.\"key 7\"', repeat('x', 20000))",
        "required = json_replace(required, '$.members.\"key 7\"', 'short again', '$.name', cast('12:00:00' as time))",
        "required = json_remove(required, '$.members.\"key 0\"', '$.members.\"key 299\"', '$.n[5]', '$.n[0]')",
        "required = json_set(required, '$.deep.deep.deep.deep[1][1][1][0]', 33, '$.name', cast('2024-02-29' as date))",
        "required = json_set(required, '$.deep.deep.deep.deep[1][1][1][0]', json_array(1, 2, json_object()))",
        "other = json_set(other, '$[last-1]', 'x', '$[last-9]', 'before all', '$[last]', 10, '$[9]', 'after all')",
        "other = json_set(other, '$[last][0]', 'wrapped', '$[0][last]', 'too'), one = json_set(one, '$[0]', '[]')",
        "other = json_set(other, '$[0]', json_array()), one = json_array()",
        "other = json_set(other, '$[0][last]', 'in an empty one'), one = json_insert(one, '$[last]', 1)",
        "other = json_remove(other, '$[last-1]', '$[0][0]')",
        "one = json_set(one, '$', 1), other = json_remove(other, '$.name')",
        "one = null, required = json_set(required, '$.name', null)",
        "number = null",
        "one = other, other = one",
        "one = json_set(one, '$.name', 'changed'), other = json_set(other, '$.name', 'x', '$.name', 'y')",
    ]
    updates = [f"update {table.quoted_name} set {change}" for change in changes]
    return replace(table, extra_statements=(*updates, *(f"{update} where id % 2 = 0" for update in updates)))


def unsafe() -> Table:
    """Return statements with different results each time: logged as rows unless the session requires statements."""
    column = Column("u", "varchar(36) character set utf8mb4", "text", ("uuid()",) * 20, charset="utf8mb4")
    return Table("unsafe", (column,))


def tables(server: Server) -> list[Table]:
    """Return tables of types that only some servers have. Their server's own tool prints most of them wrongly."""
    common = [_geometries(), _partitioned()]
    if server.distribution is mysql56:
        return common
    common.append(_invisible())
    if server.flavor == "mysql":
        return [*common, _vectors(), _indexed_expressions(), *_cascading()]
    common += [_addresses(), _compressed(), *_versioned()]
    return [*common, _vectors(), _far_timestamps()] if server.distribution is mariadb118 else common


def _partitioned() -> Table:
    """MySQL logs the old and the new partition of a row."""
    name = f"{SCHEMA}.partitioned"
    return Table(
        "partitioned",
        (
            make_column("a", "int", "integer", range(20)),
            make_column("b", "varchar(9) character set latin1", "text", ["'x'", literal("ü")], charset="latin1"),
        ),
        options="partition by hash (id) partitions 4",
        extra_statements=(f"update {name} set id = id + 1001, b = 'moved' where id % 3 = 0",),
    )


def _cascading() -> list[Table]:
    """MySQL 9.7 logs changes by a foreign key, children first; older servers and MariaDB do not log them."""
    parents, children = f"{SCHEMA}.parents", f"{SCHEMA}.children"
    number = make_column("number", "int", "integer", range(9))
    return [
        Table("parents", (number,)),
        Table(
            "children",
            (number, Column("one", "int", "integer", ("null",)), Column("other", "int", "integer", ("null",))),
            extra_statements=(
                f"update {children} set one = id, other = id where id in (select id from {parents})",
                f"alter table {children} add foreign key (one) references {parents} (id)"
                " on delete cascade on update cascade",
                f"alter table {children} add foreign key (other) references {parents} (id)"
                " on delete set null on update set null",
                f"update {parents} set id = id + 500 where id < 5",
                f"delete from {parents} where id between 5 and 7",
                f"delete from {parents} where id > 500 limit 2",
            ),
        ),
    ]


def _geometries() -> Table:
    shapes = [
        "point(0 0)",
        "point(-1.5 1e100)",
        "linestring(0 0, 1 1, 2 0.5)",
        "polygon((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 2 1, 2 2, 1 1))",
        "multipoint(1 2, 3 4)",
        "multilinestring((0 0, 1 1), (2 2, 3 3))",
        "multipolygon(((0 0, 1 0, 1 1, 0 0)))",
        "geometrycollection(point(1 1), linestring(0 0, 1 1))",
    ]
    texts = [f"st_geomfromtext('{shape}')" for shape in shapes]
    texts += ["st_geomfromtext('point(1 2)', 4326)"]
    return Table(
        "geometries",
        (
            make_column("any_shape", "geometry", "binary", texts),
            make_column("a_point", "point", "binary", ["point(1, 2)", "point(-0.0, 5e-324)"]),
            make_column("required", "geometry not null", "binary", texts),
        ),
    )


def _misleading(*, has_vectors: bool) -> Table:
    """Columns whose sign and character set come after metadata of columns that appear to have none.

    A YEAR has a sign; a VECTOR of MySQL and a GEOMETRY of MariaDB have a character set.
    """
    sjis = "character set sjis"
    columns = [
        make_column("y", "year", "year", [1999]),
        make_column("g", "geometry", "binary", ["point(1, 2)"]),
        text_column("t", "text character set latin1", ["é", "ÿ"], "latin1"),
        *([make_column("v", "vector(1) not null", "binary", ["x'0000803f'"])] if has_vectors else []),
        make_column("s", "tinyint", "integer", [-1, -128]),
        make_column("e", f"enum('日', '本') {sjis}", "enum", ["'日'", "'本'"], charset="sjis", members=("日", "本")),
        make_column("d", "decimal(5,2) unsigned", "decimal", [1.5]),
        make_column("b", "bit(9)", "bit", ["b'101'"]),
        make_column("u", "bigint unsigned", "integer", [18446744073709551615]),
        text_column("w", f"varchar(9) {sjis}", ["日本"], "sjis"),
        make_column("f", "float", "float", [-1.5]),
        make_column("i", "int unsigned", "integer", [4294967295]),
        text_column("c", "char(3) character set greek", ["αβγ"], "greek"),
    ]
    return Table("misleading", tuple(columns))


def _invisible() -> Table:
    return Table(
        "invisible",
        (
            make_column("seen", "int unsigned", "integer", [1, 4294967295]),
            text_column("unseen", "varchar(20) character set utf8mb4 invisible", ["ü", "dark"], "utf8mb4"),
            make_column("last_one", "decimal(4,1)", "decimal", ["1.5", "-999.9"]),
        ),
    )


def _vectors() -> Table:
    vectors = ["x'0000803f000000c0'", "x'0000000000000080'", "x'ffff7fff01000000'"]
    return Table(
        "vectors", (make_column("v", "vector(2)", "binary", vectors), make_column("n", "int", "integer", [1, 2]))
    )


def _indexed_expressions() -> Table:
    """Indexes on expressions have hidden columns, which are not logged."""
    columns = (
        make_column("a", "int", "integer", [1, 2, 3]),
        make_column("numbers", "json", "json", ["json_array(1, 2)", "json_array()", "json_array(3)"]),
        make_column("b", "varchar(9) character set utf8mb4", "text", ["'x'", "'ü'"], charset="utf8mb4"),
    )
    name = f"{SCHEMA}.indexed_expressions"
    return Table(
        "indexed_expressions",
        columns,
        extra_statements=(
            f"create index on_sum on {name} ((a + 1))",
            f"create index on_numbers on {name} ((cast(numbers as unsigned array)))",
            f"update {name} set a = a + 10, numbers = json_array(4, 5)",
            f"delete from {name} where a = 11",
        ),
    )


def _addresses() -> Table:
    uuids = [
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "123e4567-e89b-12d3-a456-426655440000",
        "f81d4fae-7dec-41d0-a765-00a0c91e6bf6",
        "01890a5d-ac96-774b-bcce-b302099a8057",
        "6ccd780c-baba-1026-9564-5b8c656024db",
        "8f000000-0000-4000-0000-000000000000",
        "00112233-4455-0677-8899-aabbccddeeff",
        *(
            f"{version}a2b3c4d-1e2f-{version}a4b-{variant}c5d-0123456789ab"
            for version in range(9)
            for variant in "07bcf"
        ),
    ]
    sixes = ["::", "::1", "::1.2.3.4", "::ffff:192.0.2.128", "2001:db8::ff00:42:8329", "1::", "fe80::", "0:0:1::"]
    sixes += [
        "1:0:0:2:0:0:0:3",
        "1:0:0:2:0:0:3:4",
        "1:0:2:0:3:0:4:0",
        "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        "::0.0.1.0",
    ]
    for first in range(8):
        for length in range(1, 9 - first):
            groups = [f"{(group + 1) * 0x123:x}" for group in range(8)]
            groups[first : first + length] = ["0"] * length
            sixes.append(":".join(groups))
    fours = ["0.0.0.0", "255.255.255.255", "127.0.0.1", "192.0.2.1", "1.0.0.0", "0.0.0.1"]
    return Table(
        "addresses",
        (
            make_column("u", "uuid", "text", [f"'{each}'" for each in uuids]),
            make_column("six", "inet6", "text", [f"'{each}'" for each in sixes]),
            make_column("four", "inet4", "text", [f"'{each}'" for each in fours]),
            make_column("required", "uuid not null", "text", [f"'{each}'" for each in uuids[::-1]]),
            make_column("word", "varchar(9) character set latin1", "text", [literal("ü"), "''"], charset="latin1"),
        ),
    )


def _compressed() -> Table:
    texts = ["", "short", "é", "word " * 40, "🎁" * 60, "x" * 99, "x" * 100, "x" * 101]
    longer = [*texts, "ab" * 400, "long text " * 8000, "ü" * 70_000]
    blobs = [b"", b"\0", bytes(range(256)), b"\xff\xfe" * 100, b"\0" * 70_000]
    columns = [
        text_column("varchar255", "varchar(255) compressed character set utf8mb4", texts, "utf8mb4"),
        text_column(
            "varchar63", "varchar(63) compressed character set utf8mb4", [text[:63] for text in texts], "utf8mb4"
        ),
        text_column("varchar5000", "varchar(5000) compressed character set latin1", texts, "latin1"),
        text_column("of_ucs2", "varchar(500) compressed character set ucs2", texts[:4], "ucs2"),
    ]
    for size, most in (("tiny", 255), ("", 65535), ("medium", 10**6), ("long", 10**6)):
        fitting = [text for text in longer if len(text.encode()) <= most]
        columns.append(text_column(f"{size}text", f"{size}text compressed character set utf8mb4", fitting, "utf8mb4"))
        values = [binary(blob) for blob in blobs if len(blob) <= most]
        columns.append(make_column(f"{size}blob", f"{size}blob compressed", "binary", values))
    columns.append(
        make_column(
            "varbinary300", "varbinary(300) compressed", "binary", [binary(blob) for blob in blobs if len(blob) <= 300]
        )
    )
    columns.append(make_column("plain", "int", "integer", [1, 2, 3]))
    return Table("compressed", tuple(columns))


def _versioned() -> list[Table]:
    price = make_column("price", "decimal(6,2)", "decimal", ["1.5", "-2.25", "0"])
    note = text_column("note", "varchar(20) character set utf8mb4", ["ü", "x"], "utf8mb4")
    ends = (
        Column("valid_from", "timestamp(6) generated always as row start", "timestamp", ()),
        Column(
            "valid_to",
            "timestamp(6) generated always as row end, period for system_time (valid_from, valid_to)",
            "timestamp",
            (),
        ),
    )
    return [
        first_versions(),
        Table("versioned", (price, note), is_versioned=True),
        Table("versioned_by_name", (price, note, *ends), options="with system versioning"),
    ]


def first_versions() -> Table:
    """Versioned rows with one version each; signs, labels and character sets come from the snapshot."""
    columns = (
        make_column("code", "int unsigned not null", "integer", [0, 1, 2**31, 2**32 - 1]),
        make_column("kind", "enum('a', 'b')", "enum", ["'a'", "'b'"], charset="utf8mb4", members=("a", "b")),
        text_column("word", "varchar(9) character set latin1", ["ü", "ÿ"], "latin1"),
    )
    return Table("first_versions", columns, key=("code",), is_versioned=True)


def _far_timestamps() -> Table:
    columns = []
    for digits in (0, 3, 6):
        end = f".{'9' * digits}" if digits else ""
        stamps = ["2038-01-19 03:14:08", "2106-02-07 06:28:15", "2069-06-15 12:00:00", f"2106-02-07 06:28:15{end}"]
        suffix = f"({digits})" if digits else ""
        texts = [f"'{stamp}'" for stamp in stamps]
        columns.append(make_column(f"timestamp{digits}", f"timestamp{suffix} null", "timestamp", texts))
    return Table("far_timestamps", tuple(columns))


# --- what is large ---


def widest_tables(server: Server) -> list[Table]:
    """Tables with the most columns that InnoDB allows, and that any table allows.

    A server that stores definitions in .frm files cannot store 4096 columns.
    """
    random_numbers = random.Random(2)
    most = 4096 if server.distribution is mysql else 2500
    return [
        Table("wide_1017", tuple(_narrow(n, random_numbers) for n in range(1016))),
        Table(f"wide_{most}", tuple(_narrow(n, random_numbers) for n in range(most - 1)), engine="MyISAM", options=""),
    ]


def _narrow(number: int, random_numbers: random.Random) -> Column:
    """Return a column of few bytes: the size of a row is limited, too."""
    name, null = f"c{number}", [["null"], []][random_numbers.random() < 0.6]
    match number % 4:
        case 0:
            return make_column(name, "tinyint unsigned", "integer", [*null, number % 256])
        case 1:
            return make_column(name, "bit(3)", "bit", [*null, number % 8])
        case 2:
            return text_column(name, "char(1) character set utf8mb4", ["ü", "x"], "utf8mb4")
        case _:
            return make_column(name, "date", "date", [*null, "'2026-11-20'"])


def large_rows() -> Table:
    """Rows of eight megabytes."""
    name = f"{SCHEMA}.large_rows"
    return Table(
        "large_rows",
        (
            Column("number", "int not null", "integer", ("1", "2", "3")),
            make_column(
                "a", "longtext character set utf8mb4", "text", ["repeat('🎁', 900000)", "'x'"], charset="utf8mb4"
            ),
            make_column("b", "longblob", "binary", ["repeat(x'00ff', 500000)", "x'00'"]),
            make_column(
                "c", "mediumtext character set latin1", "text", ["repeat('ü', 3000000)", "''"], charset="latin1"
            ),
        ),
        key=("number",),
        extra_statements=(
            f"update {name} set a = concat(a, '!'), c = null where number = 1",
            f"delete from {name} where number = 3",
        ),
    )
