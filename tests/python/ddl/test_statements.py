"""Single statements and their actions; and no text that a log may contain stops the parser."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.ddl.actions import Action, Column
from ingest.ddl.labels import Literals
from ingest.ddl.sql_modes import (
    ANSI_QUOTES,
    MODES_OF_VALUES,
    MSSQL,
    NO_BACKSLASH_ESCAPES,
    ORACLE,
    PAD_CHAR_TO_FULL_LENGTH,
    REAL_AS_FLOAT,
)
from ingest.ddl.statements import actions_of
from ingest.versions import NEWEST, Flavor


def shown(action: Action) -> str:
    """Format an action in one line: kind, object, columns with their types, target."""
    parts = [action.action, _name(action.schema_name, action.table_name)]
    if action.other_table_name:
        parts.append("→ " + _name(action.other_schema_name, action.other_table_name))
    if action.column_name:
        parts.append(f"[{action.column_name}]")
    parts += [", ".join(_column(column) for column in action.columns)] if action.columns else []
    parts += [action.place] if action.place else []
    parts += [action.after_column] if action.after_column else []
    parts += [f"key({', '.join(action.key_columns)})"] if action.key_columns else []
    parts += [f"charset={action.character_set}"] if action.character_set else []
    parts += [f"collate={action.collation}"] if action.collation else []
    parts += ["?"] if action.is_conditional else []
    parts += [f"<{action.detail}>"] if action.detail else []
    return " ".join(part for part in parts if part)


def _name(schema: str | None, table: str | None) -> str:
    return ".".join(part for part in (schema, table) if part is not None)


def _column(column: Column) -> str:
    words = [column.name, column.column_type, column.character_set, column.collation]
    words += ["not null"] if column.is_nullable is False else []
    words += ["generated"] if column.is_generated else []
    return " ".join(word for word in words if word)


BOTH = [
    # --- CREATE TABLE ---
    ("create table t (id int primary key, a int)", ["create_table d.t id int not null, a int key(id)"]),
    ("create table t (id int key)", ["create_table d.t id int not null key(id)"]),
    ("create table t (a int unique key, b int unique)", ["create_table d.t a int, b int"]),
    (
        "create table t (a int null, B int, primary key (b, A))",
        ["create_table d.t a int not null, B int not null key(B, a)"],
    ),
    (
        "create table t (a int, constraint `c` primary key using btree (a desc))",
        ["create_table d.t a int not null key(a)"],
    ),
    ("create table s.t (a int, key k (a), key (a), index i using hash (a), unique (a))", ["create_table s.t a int"]),
    ("create table `s x`.`t``y` (`a b` int)", ["create_table s x.t`y a b int"]),
    ("create table .t (a int)", ["create_table d.t a int"]),
    ("create table s . t (a int)", ["create_table s.t a int"]),
    ("create table s.select (a int)", ["create_table s.select a int"]),
    ("create table t (a int default 1 not null)", ["create_table d.t a int not null"]),
    (
        "create table t (a int default -1, b int default null, c int default (1 + (2)))",
        ["create_table d.t a int, b int, c int"],
    ),
    (
        "create table t (a datetime(6) default now(6) on update now(6) not null)",
        ["create_table d.t a datetime(6) not null"],
    ),
    (
        "create table t (a int generated always as (b * 2) stored not null, b int)",
        ["create_table d.t a int not null generated, b int"],
    ),
    (
        "create table t (a int as (1) virtual comment 'x', b int as (concat(')', \"'\")))",
        ["create_table d.t a int generated, b int generated"],
    ),
    ("create table t (a int check (a > 1), check (a < 5), constraint c check (a <> 3))", ["create_table d.t a int"]),
    ("create table t (a int references u (x) on delete cascade, b int)", ["create_table d.t a int, b int"]),
    (
        "create table t (a int, foreign key f (a) references u (b) match full on update set null)",
        ["create_table d.t a int"],
    ),
    ("create table t (a int auto_increment, key (a))", ["create_table d.t a int not null"]),
    ("create table t (a serial)", ["create_table d.t a bigint unsigned not null"]),
    ("create table t (a int comment 'a, b) -- c', b int)", ["create_table d.t a int, b int"]),
    ("create table t (a int comment 'it''s' 'two', b int comment \"x\\\"y\")", ["create_table d.t a int, b int"]),
    ("create table if not exists t (a int)", ["create_table d.t a int ?"]),
    ("create or replace table t (a int)", ["drop_table d.t ?", "create_table d.t a int"]),
    (
        "create table t (period int, vector int, first_name int, comment int)",
        ["create_table d.t period int, vector int, first_name int, comment int"],
    ),
    ("create table t (a int, spatial index (a), fulltext key f (b), b text)", ["create_table d.t a int, b text"]),
    (
        "create table t (a varchar(9)) default charset=latin1 collate=latin1_bin",
        ["create_table d.t a varchar(9) charset=latin1 collate=latin1_bin"],
    ),
    (
        "create table t (a varchar(9)) collate utf8mb4_bin",
        ["create_table d.t a varchar(9) charset=utf8mb4 collate=utf8mb4_bin"],
    ),
    (
        "create table t (a varchar(9), b text) charset binary",
        ["create_table d.t a varbinary(9), b blob charset=binary"],
    ),
    (
        "create table t (a int) comment='charset=latin1' engine innodb row_format=compressed key_block_size=8",
        ["create_table d.t a int"],
    ),
    ("create table t (a int) union=(x, y) data directory='/select'", ["create_table d.t a int"]),
    (
        "create table t (a int) partition by list (a) (partition p values in (1, 2) engine = InnoDB)",
        ["create_table d.t a int"],
    ),
    ("create table t (a int) start transaction", ["create_table d.t a int"]),
    ("create table t (a int) /*!50100 partition by hash (a) partitions 4 */", ["create_table d.t a int"]),
    ("create table t (a int /*!80023 INVISIBLE */, b int /*!50606 STORAGE DISK */)", ["create_table d.t a int, b int"]),
    ("create table t (a int);", ["create_table d.t a int"]),
    # --- LIKE and SELECT ---
    ("create table t like u", ["create_like d.t → d.u"]),
    ("create table if not exists s.t (like `u`.v)", ["create_like s.t → u.v ?"]),
    ("create or replace table t like u", ["drop_table d.t ?", "create_like d.t → d.u"]),
    ("create table t select 1 as a", ["create_select d.t"]),
    ("create table t as select 1", ["create_select d.t"]),
    ("create table t (select 1 as a)", ["create_select d.t"]),
    (
        "create table t (a int, primary key (a)) engine=innodb ignore as (select 1 as a)",
        ["create_select d.t a int not null key(a)"],
    ),
    ("create table t with x as (select 1) select * from x", ["create_select d.t"]),
    ("create table t (a int) partition by hash (a) partitions 2 as select 1 as a", ["create_select d.t a int"]),
    ("create table t (a int) partition by hash (a) partitions 2 as (select 1 as a)", ["create_select d.t a int"]),
    ("create table t (a int) partition by key (a) replace as ((select 1))", ["create_select d.t a int"]),
    ("create table t (a int) partition by key (a) as (with x as (select 1) table x)", ["create_select d.t a int"]),
    ("create table t (a int) partition by key (a) partitions 2 table x", ["create_select d.t a int"]),
    (
        "create table t (a int) partition by list (a) (partition p values in (1)) as values row(1)",
        ["create_select d.t a int"],
    ),
    ("create table t values row(1)", ["create_select d.t"]),
    # --- ALTER TABLE ---
    ("alter table t add a int", ["add_column d.t a int"]),
    ("alter table t add column a int not null first", ["add_column d.t a int not null first"]),
    ("alter table s.t add a int after `b c`", ["add_column s.t a int after b c"]),
    (
        "alter table t add (a int, b text), add column (c int)",
        ["add_column d.t a int", "add_column d.t b text", "add_column d.t c int"],
    ),
    ("alter table t add (a int, key (a), primary key (a))", ["add_column d.t a int", "add_primary_key d.t key(a)"]),
    (
        "alter table t add a int primary key first",
        ["add_column d.t a int not null first", "add_primary_key d.t key(a)"],
    ),
    (
        "alter table t add a int, drop b, drop column c",
        ["drop_column d.t [b]", "drop_column d.t [c]", "add_column d.t a int"],
    ),
    ("alter table t modify a bigint", ["modify_column d.t [a] a bigint"]),
    ("alter table t modify column a bigint not null after b", ["modify_column d.t [a] a bigint not null after b"]),
    ("alter table t change a b text", ["modify_column d.t [a] b text"]),
    ("alter table t change column `a` `first` int first", ["modify_column d.t [a] first int first"]),
    (
        "alter table t add x int, modify a int, modify b int first",
        ["modify_column d.t [a] a int", "add_column d.t x int", "modify_column d.t [b] b int first"],
    ),
    (
        "alter table t rename column a to b, rename column c to d",
        ["rename_column d.t [a] b", "rename_column d.t [c] d"],
    ),
    (
        "alter table t change a b int, change b a int",
        ["rename_column d.t [b] #b", "modify_column d.t [a] b int", "modify_column d.t [#b] a int"],
    ),
    (
        "alter table t rename column a to b, rename column b to a",
        ["rename_column d.t [b] #b", "rename_column d.t [a] b", "rename_column d.t [#b] a"],
    ),
    (
        "alter table t add a int, change a b int first",
        ["rename_column d.t [a] #a", "add_column d.t a int", "modify_column d.t [#a] b int first"],
    ),
    ("alter table t drop b, change a b int", ["drop_column d.t [b]", "modify_column d.t [a] b int"]),
    (
        "alter table t change a b int, change b c int",
        ["rename_column d.t [b] #b", "modify_column d.t [a] b int", "modify_column d.t [#b] c int"],
    ),
    ("alter table t change b c int, change a b int", ["modify_column d.t [b] c int", "modify_column d.t [a] b int"]),
    (
        "alter table t alter a set default 5, alter column b drop default",
        ["other d.t <alter a>", "other d.t <alter column>"],
    ),
    (
        "alter table t alter a set default (concat(',', 'x')), add b int",
        ["add_column d.t b int", "other d.t <alter a>"],
    ),
    ("alter table t alter index i invisible", ["other d.t <alter index>"]),
    (
        "alter table t add index i (a), add unique (b), add key `k` using btree (c(5), d desc)",
        ["other d.t <add index>"] * 3,
    ),
    ("alter table t add fulltext index f (a) with parser ngram, add spatial index (g)", ["other d.t <add index>"] * 2),
    (
        "alter table t add constraint c foreign key (a) references u (b) on delete no action",
        ["other d.t <add foreign key>"],
    ),
    ("alter table t add constraint check (a > 1) not enforced", ["other d.t <add check>"]),
    (
        "alter table t drop primary key, add primary key (a, b)",
        ["drop_primary_key d.t", "add_primary_key d.t key(a, b)"],
    ),
    (
        "alter table t add constraint pk primary key (a), drop primary key",
        ["drop_primary_key d.t", "add_primary_key d.t key(a)"],
    ),
    ("alter table t drop index `PRIMARY`", ["drop_primary_key d.t"]),
    (
        "alter table t drop key k, drop foreign key f, drop constraint c, drop check d",
        [
            "other d.t <drop key>",
            "other d.t <drop foreign key>",
            "other d.t <drop constraint>",
            "other d.t <drop check>",
        ],
    ),
    ("alter table t rename to u", ["rename_table d.t → d.u"]),
    ("alter table s.t rename as v.u", ["rename_table s.t → v.u"]),
    ("alter table s.t rename `u`, add a int", ["add_column s.t a int", "rename_table s.t → d.u"]),
    ("alter table t rename index a to b, rename key c to d", ["other d.t <rename index>"] * 2),
    (
        "alter table t convert to character set utf8mb4 collate utf8mb4_bin",
        ["convert_character_set d.t charset=utf8mb4 collate=utf8mb4_bin"],
    ),
    ("alter table t default character set = latin1", ["other d.t charset=latin1 <default character set>"]),
    (
        "alter table t character set latin1, collate = latin1_bin",
        [
            "other d.t charset=latin1 <default character set>",
            "other d.t charset=latin1 collate=latin1_bin <default character set>",
        ],
    ),
    ("alter table t order by a, b desc, c", ["other d.t <order by>"]),
    ("alter table t order by a, drop b", ["drop_column d.t [b]", "other d.t <order by>"]),
    (
        "alter table t engine=innodb row_format=dynamic, comment 'add column x int'",
        ["other d.t <engine>", "other d.t <row_format>", "other d.t <comment>"],
    ),
    (
        "alter table t force, algorithm=inplace, lock none",
        ["other d.t <force>", "other d.t <algorithm>", "other d.t <lock>"],
    ),
    ("alter table t disable keys", ["other d.t <disable keys>"]),
    ("alter table t add partition (partition p3 values less than (9))", ["other d.t <add partition>"]),
    ("alter table t drop partition p0, p1", ["drop_partition d.t <p0, p1>"]),
    ("alter table t truncate partition all", ["truncate_partition d.t <all>"]),
    (
        "alter table t exchange partition p0 with table s.u without validation",
        ["exchange_partition d.t → s.u <p0>", "other d.t <without validation>"],
    ),
    (
        "alter table t reorganize partition p0, p1 into (partition p values less than (5))",
        ["other d.t <reorganize partition>"],
    ),
    ("alter table t partition by range (a) (partition p values less than maxvalue)", ["other d.t <partition by>"]),
    ("alter table t remove partitioning", ["other d.t <remove partitioning>"]),
    (
        "alter table t drop primary key, add primary key (a, b) partition by hash (a)",
        ["drop_primary_key d.t", "add_primary_key d.t key(a, b)", "other d.t <partition by>"],
    ),
    (
        "alter table t add unique key u (a) comment 'x' partition by range (a) (partition p values less than (2))",
        ["other d.t <add index>", "other d.t <partition by>"],
    ),
    ("alter table t add key (a) remove partitioning", ["other d.t <add index>", "other d.t <remove partitioning>"]),
    (
        "alter table t add a text not null partition by key (b)",
        ["add_column d.t a text not null", "other d.t <partition by>"],
    ),
    ("alter table t add a text remove partitioning", ["add_column d.t a text", "other d.t <remove partitioning>"]),
    (
        "alter table t add a text default 'x' upgrade partitioning",
        ["add_column d.t a text", "other d.t <upgrade partitioning>"],
    ),
    (
        "alter table t add a text as (b) remove partitioning",
        ["add_column d.t a text generated", "other d.t <remove partitioning>"],
    ),
    (
        "alter table t modify a text default 'x' collate latin1_bin comment 'x' partition by hash (b)",
        ["modify_column d.t [a] a text latin1 latin1_bin", "other d.t <partition by>"],
    ),
    (
        "alter table t add remove text, modify a text after remove remove partitioning",
        ["add_column d.t remove text", "modify_column d.t [a] a text after remove", "other d.t <remove partitioning>"],
    ),
    (
        "alter table t change a `partition` text partition by hash (`partition`)",
        ["modify_column d.t [a] partition text", "other d.t <partition by>"],
    ),
    (
        "alter table t order by a, b remove partitioning",
        ["other d.t <order by>", "other d.t <remove partitioning>"],
    ),
    ("alter table t discard tablespace", ["other d.t <discard tablespace>"]),
    ("alter table t", ["other d.t <nothing>"]),
    (
        "alter table t add a int, frobnicate",
        ["not_understood d.t <a part of ALTER TABLE was expected at offset 25: frobnicate>"],
    ),
    ("alter table t add a wonder", ["not_understood d.t <a type was expected at offset 20: wonder>"]),
    (
        "alter table t drop primary key, add primary key if not exists (a)",
        ["drop_primary_key d.t"],
    ),
    *(
        (
            f"alter table t {dropping}, add primary key if not exists (a)",
            ["not_understood d.t <it ends where a primary key that does not depend on what is dropped was expected>"],
        )
        for dropping in ("drop column b", "drop index if exists `PRIMARY`")
    ),
    # --- the other statements ---
    ("rename table a to b, s.c to d", ["rename_table d.a → d.b", "rename_table s.c → d.d"]),
    (
        "rename table a to x, b to a, x to b",
        ["rename_table d.a → d.x", "rename_table d.b → d.a", "rename_table d.x → d.b"],
    ),
    ("drop table a, s.b restrict", ["drop_table d.a", "drop_table s.b"]),
    ("drop tables if exists `a` cascade", ["drop_table d.a ?"]),
    ("DROP TABLE IF EXISTS `t` /* generated by server */", ["drop_table d.t ?"]),
    ("DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`", ["other d.t <drop temporary table>"]),
    ("drop temporary table if exists t, e.u", ["other d.t <drop temporary table>", "other e.u <drop temporary table>"]),
    ("create temporary table t (a int)", ["other d.t <create temporary table>"]),
    ("truncate t", ["truncate_table d.t"]),
    ("TRUNCATE TABLE s.`t`", ["truncate_table s.t"]),
    ("create database x", ["create_database x"]),
    (
        "create schema if not exists `x` default character set = utf8mb4 collate utf8mb4_bin",
        ["create_database x charset=utf8mb4 collate=utf8mb4_bin ?"],
    ),
    (
        "create database x /*!40100 DEFAULT CHARACTER SET latin1 */ /*!80016 DEFAULT ENCRYPTION='N' */",
        ["create_database x charset=latin1"],
    ),
    ("drop schema if exists x", ["drop_database x ?"]),
    ("alter database x character set latin1", ["other x charset=latin1 <alter database>"]),
    ("alter database collate latin1_bin", ["other d charset=latin1 collate=latin1_bin <alter database>"]),
    ("create unique index i on t (a)", ["other d.t <create index i>"]),
    ("create index i using btree on s.t (a) algorithm=inplace lock=none", ["other s.t <create index i>"]),
    ("drop index i on t", ["other d.t <drop index i>"]),
    ("drop index `PRIMARY` on t", ["drop_primary_key d.t"]),
    ("create view v as select 1", ["other d.v <create view>"]),
    ("CREATE ALGORITHM=MERGE DEFINER=`a`@`%` SQL SECURITY INVOKER VIEW s.v AS select 1", ["other s.v <create view>"]),
    (
        "create definer=current_user() trigger tr before insert on t for each row set @a = 'alter table u'",
        ["other d.t <create trigger>"],
    ),
    ("create procedure p() begin drop table t; end", ["other d <create procedure>"]),
    ("create function f returns string soname 'x'", ["other d <create function>"]),
    ("create user u@h identified by 'x'", ["other <create user>"]),
    ("alter user u password expire", ["other <alter user>"]),
    ("create event e on schedule every 1 day do truncate t", ["other d <create event>"]),
    # --- comments ---
    ("/* a */ -- b\n# c\n alter /* d */ table/**/t--\nadd/*,*/a int", ["add_column d.t a int"]),
    ("/*!50100 alter table t /* plain */ add a int */", ["add_column d.t a int"]),
    ("alter table t add a int /*! not null */ /*!99999 default 1 */", ["add_column d.t a int not null"]),
    ("alter table t add `/* a` int, add `-- b` int", ["add_column d.t /* a int", "add_column d.t -- b int"]),
    ("alter table t add a int default (1--1), add b int", ["add_column d.t a int", "add_column d.t b int"]),
    ("create table t (a int comment '/* ', b int comment ' */')", ["create_table d.t a int, b int"]),
    # --- no DDL ---
    *[
        (text, [])
        for text in (
            *("BEGIN", "COMMIT", "SAVEPOINT `x`", "XA START X'61'", "insert into t values ('alter table t')", ""),
            *(
                "/* create table t */",
                "-- drop table t",
                "set @a = 1",
                "grant all on *.* to u",
                "created := 1",
                "flush tables",
            ),
            *("update t set a = 'drop table'", "replace into t select 1", "#", "(select 1)"),
        )
    ],
]


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
@pytest.mark.parametrize(("text", "expected"), BOTH, ids=[text[:60] for text, _ in BOTH])
def test_what_a_statement_does(text: str, expected: list[str], flavor: Flavor) -> None:
    # Both without the display widths that only one of them shows: those are tested with the types.
    found = [shown(action).replace("(11)", "").replace("(20)", "") for action in actions_of(text, "d", 0, flavor)]
    assert found == expected


@pytest.mark.parametrize("name", ["2e", "1$", "12$é", "0X41", "0B01", "0xg", "1a"])
def test_a_name_may_look_like_a_number(name: str) -> None:
    for text in (
        f"alter table {name} add {name} int after {name}",
        f"alter table d.{name} add `{name}` int after {name}",
    ):
        (action,) = actions_of(text, "d")
        named = action.table_name, action.columns[0].name, action.after_column
        assert (action.action, *named) == ("add_column", name, name, name)


def test_a_name_behind_a_point_is_no_number() -> None:
    named = [actions_of(f"drop table d.{name}", "d")[0].table_name for name in ("0x41", "0b1", "1e5", "12")]
    assert named == ["0x41", "0b1", "1e5", "12"]


def test_a_number_ends_before_a_blank_that_is_not_of_ascii() -> None:
    (action,) = actions_of("alter table t add a int default 1\xa0first", "d", literals=Literals("latin1", "latin1"))
    assert (action.action, action.place) == ("add_column", "first")


OF_MARIADB = [
    (
        "alter table if exists t add column if not exists a text, drop column if exists b",
        ["drop_column d.t [b] ?", "add_column d.t a text ?"],
    ),
    (
        "alter table t modify column if exists a text, change if exists b c text",
        ["modify_column d.t [a] a text ?", "modify_column d.t [b] c text ?"],
    ),
    (
        "alter table t add a text, add if not exists b text after a",
        ["add_column d.t a text", "add_column d.t b text after a ?"],
    ),
    ("alter table t rename column if exists a to b", ["rename_column d.t [a] b ?"]),
    ("alter online ignore table t wait 5 add a text", ["add_column d.t a text"]),
    ("alter table t nowait drop a", ["drop_column d.t [a]"]),
    (
        "alter table t add index if not exists i (a), drop index if exists j",
        ["other d.t <add index>", "other d.t ? <drop index>"],
    ),
    ("alter table t add constraint if not exists c check (a > 1)", ["other d.t <add check>"]),
    ("drop table if exists t wait 3", ["drop_table d.t ?"]),
    ("rename table if exists a wait 5 to b", ["rename_table d.a → d.b ?"]),
    ("truncate table t nowait", ["truncate_table d.t"]),
    ("create or replace database x", ["drop_database x ?", "create_database x"]),
    ("set statement max_statement_time=1, lock_wait_timeout=5 for alter table t drop a", ["drop_column d.t [a]"]),
    ("set statement max_statement_time=1 for insert into t values (1)", []),
    ("alter table t add a text default concat('a', ',') comment 'x' invisible", ["add_column d.t a text"]),
    ("alter table t add a text check (json_valid(`a`)) first", ["add_column d.t a text first"]),
    (
        "create table t (a text, s timestamp(6) generated always as row start, e timestamp(6) generated always as row"
        " end, period for system_time (s, e)) with system versioning",
        ["create_table d.t a text, s timestamp(6) not null generated, e timestamp(6) not null generated"],
    ),
    (
        "create table t (a text, s timestamp(6) as row start, e timestamp(6) as row end invisible, period for"
        " system_time (s, e)) with system versioning",
        ["create_table d.t a text, s timestamp(6) not null generated, e timestamp(6) not null generated"],
    ),
    (
        "alter table t add s timestamp(6) as row start, add e timestamp(6) as row end after a",
        [
            "add_column d.t s timestamp(6) not null generated",
            "add_column d.t e timestamp(6) not null generated after a <row end>",
        ],
    ),
    (
        "create table t (a text) with system versioning",
        [
            "create_table d.t a text, row_start timestamp(6) not null generated, row_end timestamp(6) not null"
            " generated <system versioning>"
        ],
    ),
    (
        "create table t (a text with system versioning, b text without system versioning)",
        [
            "create_table d.t a text, b text, row_start timestamp(6) not null generated, row_end timestamp(6) not null"
            " generated <system versioning>"
        ],
    ),
    (
        "alter table t add system versioning",
        [
            "add_column d.t row_start timestamp(6) not null generated ? <system versioning>",
            "add_column d.t row_end timestamp(6) not null generated ? <system versioning>",
        ],
    ),
    (
        "alter table t add system versioning, add a text, add s timestamp(6) as row start, add e timestamp(6) as row"
        " end, add period for system_time (s, e)",
        [
            "add_column d.t a text",
            "add_column d.t s timestamp(6) not null generated",
            "add_column d.t e timestamp(6) not null generated <row end>",
            "other d.t key(s, e) <add period>",
        ],
    ),
    (
        "alter table t add system versioning, add a text",
        [
            "add_column d.t a text",
            "add_column d.t row_start timestamp(6) not null generated ? <system versioning>",
            "add_column d.t row_end timestamp(6) not null generated ? <system versioning>",
        ],
    ),
    (
        "alter table t drop system versioning",
        ["drop_column d.t [row_start] ? <system versioning>", "drop_column d.t [row_end] ? <system versioning>"],
    ),
    (
        "alter table t add period for p (a, b), drop period for q",
        ["other d.t <drop period>", "other d.t key(a, b) <add period>"],
    ),
    (
        "alter table t add (s date, e date, period for p (s, e), unique u (s))",
        [
            "add_column d.t s date",
            "add_column d.t e date",
            "other d.t key(s, e) <add period>",
            "other d.t <add index>",
        ],
    ),
    ("alter table t convert partition p0 to table s.u", ["create_like s.u → d.t", "exchange_partition d.t → s.u <p0>"]),
    (
        "alter table t convert table s.u to partition p0 values less than (10)",
        ["drop_table s.u <convert table to partition>", "other d.t <convert table to partition>"],
    ),
    ("/*M!100100 alter table t add a text */", ["add_column d.t a text"]),
    (
        "create table t (a varchar(9) /*M!100301 COMPRESSED*/)",
        ["create_table d.t a varchar(9) /*M!100301 COMPRESSED*/"],
    ),
    (
        "create sequence if not exists s start with 1",
        [
            "create_table d.s next_not_cached_value bigint(21) not null, minimum_value bigint(21) not null,"
            " maximum_value bigint(21) not null, start_value bigint(21) not null, increment bigint(21) not null,"
            " cache_size bigint(21) unsigned not null, cycle_option tinyint(1) unsigned not null,"
            " cycle_count bigint(21) not null ? <sequence>"
        ],
    ),
    ("drop sequence if exists s", ["drop_table d.s ?"]),
    (
        "alter table t change if exists a b int first, drop b",
        ["drop_column d.t [b]", "modify_column d.t [a] b int(11) first ?"],
    ),
    ("alter table t add if not exists b int first, drop b", ["drop_column d.t [b]"]),
    ("alter sequence s restart 50", ["other d.s <alter sequence>"]),
    (
        "create or replace definer=`a`@`b` trigger if not exists tr after update on t for each row begin end",
        ["other d.t <create trigger>"],
    ),
]


@pytest.mark.parametrize(("text", "expected"), OF_MARIADB, ids=[text[:60] for text, _ in OF_MARIADB])
def test_what_only_mariadb_knows(text: str, expected: list[str]) -> None:
    assert [shown(action) for action in actions_of(text, "d", 0, "mariadb", (10, 11))] == expected


# The written type, and its COLUMN_TYPE on MySQL 9, MySQL 5.6 and MariaDB 10.11; a single one applies to all.
TYPES = [
    ("int", ("int", "int(11)", "int(11)")),
    ("INTEGER(5) SIGNED", ("int", "int(5)", "int(5)")),
    ("int unsigned", ("int unsigned", "int(10) unsigned", "int(10) unsigned")),
    ("int zerofill", ("int(10) unsigned zerofill",) * 3),
    ("int(4) unsigned zerofill", ("int(4) unsigned zerofill",) * 3),
    ("tinyint", ("tinyint", "tinyint(4)", "tinyint(4)")),
    ("tinyint(1)", ("tinyint(1)",) * 3),
    ("tinyint(1) unsigned", ("tinyint unsigned", "tinyint(1) unsigned", "tinyint(1) unsigned")),
    ("bool", ("tinyint(1)",) * 3),
    ("BOOLEAN", ("tinyint(1)",) * 3),
    ("int1", ("tinyint", "tinyint(4)", "tinyint(4)")),
    ("int2", ("smallint", "smallint(6)", "smallint(6)")),
    ("middleint", ("mediumint", "mediumint(9)", "mediumint(9)")),
    ("int8 unsigned", ("bigint unsigned", "bigint(20) unsigned", "bigint(20) unsigned")),
    ("decimal", ("decimal(10,0)",) * 3),
    ("dec(5)", ("decimal(5,0)",) * 3),
    ("numeric(8,3) unsigned", ("decimal(8,3) unsigned",) * 3),
    ("fixed(8,3) zerofill", ("decimal(8,3) unsigned zerofill",) * 3),
    ("float", ("float",) * 3),
    ("float(24)", ("float",) * 3),
    ("float(25)", ("double",) * 3),
    ("float(7,2)", ("float(7,2)",) * 3),
    ("double precision(7,2) unsigned", ("double(7,2) unsigned",) * 3),
    ("real", ("double",) * 3),
    ("bit", ("bit(1)",) * 3),
    ("year", ("year", "year(4)", "year(4)")),
    ("datetime(0)", ("datetime",) * 3),
    ("timestamp(3) null", ("timestamp(3)",) * 3),
    ("char", ("char(1)",) * 3),
    ("character varying(5)", ("varchar(5)",) * 3),
    ("char varying(5)", ("varchar(5)",) * 3),
    ("national character varying(5)", ("varchar(5)",) * 3),
    ("nvarchar(5)", ("varchar(5)",) * 3),
    ("nchar varchar(5)", ("varchar(5)",) * 3),
    ("varchar(5) byte", ("varbinary(5)",) * 3),
    ("char(5) character set binary", ("binary(5)",) * 3),
    ("binary", ("binary(1)",) * 3),
    ("long", ("mediumtext",) * 3),
    ("long varchar", ("mediumtext",) * 3),
    ("long char varying", ("mediumtext",) * 3),
    ("long varbinary", ("mediumblob",) * 3),
    ("text(10)", ("tinytext",) * 3),
    ("text(100)", ("text", "tinytext", "tinytext")),
    ("text(100) charset latin1", ("tinytext",) * 3),
    ("blob(255)", ("tinyblob",) * 3),
    ("blob(256)", ("blob",) * 3),
    ("blob(70000)", ("mediumblob",) * 3),
    ("enum('a', 'b', 'it''s', \"q\\\"\", 'c\\\\d')", ("enum('a','b','it''s','q\"','c\\\\d')",) * 3),
    ("set(x'61', 'b') charset latin1", ("set('a','b')",) * 3),
    ("json", ("json", "json", "longtext")),
    ("geometrycollection", ("geomcollection", "geometrycollection", "geometrycollection")),
    ("geometry ref_system_id=4326", ("geometry",) * 3),
    ("point srid 4326", ("point",) * 3),
    ("vector(3)", ("vector(3)",) * 3),
    ("inet6", ("inet6",) * 3),
    ("uuid", ("uuid",) * 3),
]
SERVERS: list[tuple[Flavor, tuple[int, ...]]] = [("mysql", (9, 7, 4)), ("mysql", (5, 6, 24)), ("mariadb", (10, 11, 18))]


@pytest.mark.parametrize("server", [0, 1, 2], ids=["mysql-9.7", "mysql-5.6", "mariadb-10.11"])
@pytest.mark.parametrize(("written", "expected"), TYPES, ids=[written for written, _ in TYPES])
def test_types_are_shown_as_the_server_shows_them(written: str, expected: tuple[str, ...], server: int) -> None:
    flavor, version = SERVERS[server]
    (created,) = actions_of(f"create table t (a {written})", "d", 0, flavor, version)
    (column,) = created.columns
    assert column.column_type == expected[server]
    assert column.data_type == expected[server].partition("(")[0].partition(" ")[0]


@pytest.mark.parametrize(
    ("written", "character_set", "collation"),
    [
        ("varchar(5)", None, None),
        ("varchar(5) character set latin1", "latin1", None),
        ("varchar(5) collate utf8mb4_bin", "utf8mb4", "utf8mb4_bin"),
        ("varchar(5) charset utf8 collate utf8_bin", "utf8mb3", "utf8mb3_bin"),
        ("varchar(5) binary charset latin1", "latin1", "latin1_bin"),
        ("varchar(5) not null collate latin1_bin", "latin1", "latin1_bin"),
        ("varchar(5) ascii", "latin1", None),
        ("varchar(5) unicode", "ucs2", None),
        ("nchar(5)", "utf8mb3", None),
        ("enum('a') charset koi8r", "koi8r", None),
    ],
)
def test_character_sets_are_those_that_are_written(
    written: str, character_set: str | None, collation: str | None
) -> None:
    ((column,),) = (one.columns for one in actions_of(f"create table t (a {written})", "d"))
    assert (column.character_set, column.collation) == (character_set, collation)


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        ("rename as s.u, add b int, rename to v", ["add_column d.t b int", "rename_table d.t → d.v"]),
        # MySQL 5.6 accepts it.
        (
            "convert to character set latin1 collate latin1_bin, convert to character set binary",
            ["convert_character_set d.t charset=binary"],
        ),
    ],
)
def test_the_last_of_the_same_actions_counts(actions: str, expected: list[str]) -> None:
    found = [shown(one).replace("int(11)", "int") for one in actions_of(f"alter table t {actions}", "d")]
    assert found == expected


def test_the_sql_mode_says_what_words_mean() -> None:
    quoted = "create table \"t\" (a varchar(9) default 'x\\', b real)"
    mode = ANSI_QUOTES | NO_BACKSLASH_ESCAPES | REAL_AS_FLOAT
    assert [shown(one) for one in actions_of(quoted, "d", mode)] == ["create_table d.t a varchar(9), b float"]
    (refused,) = actions_of(quoted, "d")
    assert refused.action == "not_understood"


BRACKETED = (
    "create table [s].[t] ([a b] int, [c]]--d] int, [it's] int comment '[', `e[` int /* [ */, \"f]\" int, [key] int)"
)


@pytest.mark.parametrize("escapes", [0, NO_BACKSLASH_ESCAPES])
def test_brackets_quote_names_in_the_mode_of_mssql(escapes: int) -> None:
    mode = ANSI_QUOTES | MSSQL | escapes
    (created,) = actions_of(BRACKETED, "d", mode, "mariadb")
    assert (created.schema_name, created.table_name) == ("s", "t")
    assert [one.name for one in created.columns] == ["a b", "c]--d", "it's", "e[", "f]", "key"]
    for text, flavor, other in (
        (BRACKETED, "mysql", mode),
        (BRACKETED, "mariadb", escapes),
        ("drop table [t", "mariadb", mode),
    ):
        assert [one.action for one in actions_of(text, "d", other, flavor)] == ["not_understood"]


def test_a_backslash_outside_of_quotes_shows_that_the_mode_is_another_one() -> None:
    # So a statement is logged that PREPARE read in another mode.
    text = r"alter table t add a varchar(9) default 'it\'s', add b varchar(9) default 'it\'s'"
    assert [one.columns[0].name for one in actions_of(text, "d")] == ["a", "b"]
    (refused,) = actions_of(text, "d", NO_BACKSLASH_ESCAPES)
    assert refused.action == "not_understood"
    assert [one.action for one in actions_of(r"alter table t add a int default \N", "d")] == ["add_column"]


SETTING_MODES = [
    ('alter table t add a enum("x")', 'add_column d.t a enum("x")'),
    ("alter table t add \"a\" int comment 'x'", "add_column d.t a int(11)"),
    ("drop table t", "drop_table d.t"),
    ("alter table t add a number(5)", "add_column d.t a decimal(5,0)"),
    ("alter table t add a date", "not_understood d.t <it sets sql_mode, and depends on the sql_mode of its session>"),
    ("create table t (a real)", "not_understood d.t <it sets sql_mode, and depends on the sql_mode of its session>"),
    ("alter table t add", "not_understood d.t <it ends where a name was expected>"),
]


@pytest.mark.parametrize("mode", [0, ANSI_QUOTES | ORACLE])
@pytest.mark.parametrize(("text", "expected"), SETTING_MODES)
def test_a_mode_that_a_statement_sets_is_not_the_one_that_it_is_read_in(text: str, expected: str, mode: int) -> None:
    (found,) = actions_of(f"/* x */ set statement max_statement_time=1, SQL_MODE='' for {text}", "d", mode, "mariadb")
    assert shown(found) == expected.replace('"', "'")
    (found,) = actions_of("set statement lock_wait_timeout=1 for alter table t add a date", "d", mode, "mariadb")
    assert found.columns[0].data_type == ("datetime" if mode & ORACLE else "date")


def test_modes_that_decide_values_are_those_that_the_statement_sets() -> None:
    mode = MODES_OF_VALUES[PAD_CHAR_TO_FULL_LENGTH]
    (found,) = actions_of("set statement sql_mode='x' for alter table t modify a char(3)", "d", mode, "mariadb")
    assert found.detail == PAD_CHAR_TO_FULL_LENGTH


# Blanks beyond ASCII are letters, and keywords have only letters of ASCII.
ODD_NAMES = [
    ("create table \u00a0t (\u3000id int, `a\u00a0` int)", ["create_table d.\u00a0t \u3000id int, a\u00a0 int"]),
    (
        "alter table t add a\u2028\u0085b int after \u00a0\ue000",
        ["add_column d.t a\u2028\u0085b int after \u00a0\ue000"],
    ),
    ("alter table t add e enum('\u3000x')", ["add_column d.t e enum('\u3000x')"]),
    ("create table t (ındex int, cheſk int, key (ındex))", ["create_table d.t ındex int, cheſk int"]),
    ("alter table t add ındex int, modify ıf int", ["modify_column d.t [ıf] ıf int", "add_column d.t ındex int"]),
    ("alter table t drop index prımary", ["other d.t <drop index>"]),
    ("drop index prımary on t", ["other d.t <drop index prımary>"]),
]


def test_a_blank_of_a_set_of_single_bytes_is_one() -> None:
    for client, expected in (("latin1", "add_column d.t a int"), ("gbk", "not_understood d.t")):
        (found,) = actions_of("alter table t add\u00a0a int", "d", literals=Literals(client, client))
        assert shown(found).startswith(expected)


@pytest.mark.parametrize(("text", "expected"), ODD_NAMES)
def test_letters_beyond_ascii_belong_to_names(text: str, expected: list[str]) -> None:
    assert [shown(one).replace("int(11)", "int") for one in actions_of(text, "d")] == expected


BODIES = [
    "$$ // don't round here\n return n + 1 $$",
    "$js$ return `it's ${n}` + $$ /* \" $js$",
    "$3003203205$ '$$' \" $javascript$ $3003203205$",
    "$é$ don't $é$",
    "/* x */$_$ # ` $_$ comment 'it''s'",
]


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("mode", [0, ANSI_QUOTES | NO_BACKSLASH_ESCAPES])
def test_a_body_in_javascript_may_have_any_quotes(body: str, mode: int) -> None:
    for made, shown_as in (
        ("function s.f(n int) returns int deterministic", "other s <create function>"),
        ("library s.l", "other s <create library>"),
    ):
        text = f"create {made} language javascript as {body}"
        assert [shown(one) for one in actions_of(text, "d", mode, "mysql", (9, 4))] == [shown_as]


@pytest.mark.parametrize("version", [(8, 4), (9, 4)])
def test_dollars_in_names_begin_no_body(version: tuple[int, ...]) -> None:
    text = "create table s.$$q$$ (a$$b int, `$$` int, $c int comment '$$', d$$ int) -- $$"
    (created,) = actions_of(text, "d", 0, "mysql", version)
    assert shown(created).replace("(11)", "") == "create_table s.$$q$$ a$$b int, $$ int, $c int, d$$ int"


@pytest.mark.parametrize(("flavor", "version"), [("mysql", (8, 4)), ("mariadb", (11, 8))])
def test_dollars_quote_nothing_on_other_servers(flavor: Flavor, version: tuple[int, ...]) -> None:
    (created,) = actions_of("create table $t$ ($a$ bool, $$ bool, key ($a$))", "d", 0, flavor, version)
    assert shown(created) == "create_table d.$t$ $a$ tinyint(1), $$ tinyint(1)"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create procedure p() language other as [[ it's ]]", "other <create procedure>"),
        ('CREATE DEFINER=`a`@`b` FUNCTION f() RETURNS int BEGIN "x', "other <create function>"),
        ("create or replace package body p as x := x'zz'; end", "other <create package>"),
        ("create event e do x'zz'", "other <create event>"),
        ("create view v as select 'x", "other <create view>"),
        ("alter server s options (user 'x)", "other <alter server>"),
        ("create trigger tr before insert", "other <create trigger>"),
        ("drop user", "other <drop user>"),
    ],
)
def test_an_object_that_is_no_table_concerns_no_table(text: str, expected: str) -> None:
    assert [shown(one) for one in actions_of(text, "d")] == [expected]


def test_each_view_of_a_statement_is_named() -> None:
    dropped = [shown(one) for one in actions_of("drop view if exists v, s.w cascade", "d")]
    assert dropped == ["other d.v ? <drop view>", "other s.w ? <drop view>"]
    assert [shown(one) for one in actions_of("create view if not exists v as select 1, 2", "d")] == [
        "other d.v ? <create view>"
    ]


@pytest.mark.parametrize("text", ["alter table t add a int comment 'x", "drop database 'x", "create sequence s x'zz'"])
def test_a_broken_statement_on_tables_concerns_every_table(text: str) -> None:
    (lost,) = actions_of(text, "d")
    assert (lost.action, lost.schema_name, lost.table_name) == ("not_understood", None, None)


def test_a_timestamp_may_be_not_null_where_the_servers_defaults_say_so() -> None:
    for flavor, version, is_nullable in (
        ("mysql", (5, 7, 30), None),
        ("mysql", (8, 0, 11), True),
        ("mariadb", (10, 9, 1), None),
        ("mariadb", (10, 10, 1), True),
    ):
        created = actions_of("create table t (a timestamp, b timestamp null)", "d", 0, flavor, version)[0]
        assert [column.is_nullable for column in created.columns] == [is_nullable, True]


def test_a_name_without_a_schema_and_without_a_default_has_none() -> None:
    (dropped,) = actions_of("drop table t", None)
    assert (dropped.schema_name, dropped.table_name) == (None, "t")


def test_a_statement_that_breaks_off_names_its_table() -> None:
    assert [shown(one) for one in actions_of("alter table s.t add a", "d")] == [
        "not_understood s.t <it ends where a name was expected>"
    ]
    assert [shown(one) for one in actions_of("drop table", "d")] == [
        "not_understood <it ends where a name was expected>"
    ]


WORDS = [
    *(
        "create",
        "alter",
        "drop",
        "rename",
        "truncate",
        "table",
        "database",
        "add",
        "column",
        "modify",
        "change",
        "to",
        "like",
    ),
    *(
        "a",
        "b",
        "`a`",
        '"',
        "'",
        "'x'",
        "(",
        ")",
        ",",
        ".",
        ";",
        "int",
        "varchar",
        "enum",
        "primary key",
        "first",
        "after",
        "not null",
    ),
    *(
        "default",
        "/*!50100",
        "*/",
        "/*",
        "--",
        "#",
        "\n",
        "select",
        "partition",
        "by",
        "order",
        "=",
        "@",
        "\\",
        "0x1",
        "x'zz'",
        "b'1'",
    ),
    *(
        "if exists",
        "set statement",
        "for",
        "1",
        "convert",
        "with",
        "system",
        "versioning",
        "index",
        "on",
        "character set",
        "\0",
    ),
]


@settings(max_examples=400, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)), st.booleans())
@example("alter table t add a int )", False)
@example("create table t (((((", True)
@example("create table t (a int) partition by x (", True)
@example("{# alter", True)
def test_nothing_stops_it(text: str, is_mariadb: bool) -> None:
    flavor: Flavor = "mariadb" if is_mariadb else "mysql"
    for front in ("", "alter table t ", "create table t (a ", "create "):
        for mode in (0, ANSI_QUOTES | NO_BACKSLASH_ESCAPES):
            found = actions_of(front + text, "d", mode, flavor, NEWEST)
            assert all(isinstance(one, Action) for one in found)
            if any(one.action == "not_understood" for one in found):
                assert len(found) == 1 and found[0].detail


def test_dictionaries_of_percona_server_change_no_table() -> None:
    column = "c varchar(9) column_format compressed with compression_dictionary numbers"
    (added,) = actions_of(f"alter table s.t add {column} first", None)
    (made,) = actions_of(f"create table s.t (id int, {column} not null, {column.replace('c ', 'd ', 1)})", None)
    assert (added.action, added.place, added.columns[0].column_type) == ("add_column", "first", "varchar(9)")
    assert [(one.name, one.is_nullable) for one in made.columns] == [("id", True), ("c", False), ("d", True)]
    for verb in ("create", "drop"):
        (beside,) = actions_of(f"{verb} compression_dictionary numbers ('one two')", None)
        assert (beside.action, beside.table_name) == ("other", None)
