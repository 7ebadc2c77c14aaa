"""Tables whose definition changes between their rows' changes: one of each kind, with what must be known afterwards."""

from dataclasses import dataclass, replace

ALL = frozenset({"mysql", "mariadb", "mysql56", "mariadb118"})
MODERN = ALL - {"mysql56"}
MARIADB = frozenset({"mariadb", "mariadb118"})
TEXTS = "id int primary key, a varchar(20), b int default 3"


@dataclass(frozen=True)
class Case:
    """A table that is altered.

    Attributes
    ----------
    name
        The kind of the statement.
    columns
        Its columns before, as CREATE TABLE has them.
    rows
        Its rows before, as VALUES has them.
    alter
        The statements, with `{}` for the table.
    unknown
        Columns that are unknown afterwards in rows that do not change later. Three dots: in any row.
    later
        Statements after it.
    servers
        Servers that have the syntax.
    shown
        For columns whose text is not that of SELECT: an expression that gives it.
    is_lost
        Whether the keys of the rows are not known afterwards.
    generated
        Generated columns, of which MariaDB 11 logs no values in an UPDATE.
    """

    name: str
    columns: str
    rows: str
    alter: str
    unknown: frozenset[str] = frozenset()
    later: str = "update {} set b = 9 where id = 1"
    servers: frozenset[str] = ALL
    shown: tuple[tuple[str, str], ...] = ()
    is_lost: bool = False
    generated: frozenset[str] = frozenset()

    @property
    def table(self) -> str:
        """Name of the table."""
        return self.name.replace(" ", "_")


def _case(
    name: str, alter: str, rows: str = "(1, 'x', 5), (2, 'ü', null), (3, null, 7)", columns: str = TEXTS,
    unknown: str = "", later: str = "update {} set b = 9 where id = 1", servers: frozenset[str] = ALL,
    shown: tuple[tuple[str, str], ...] = (), is_lost: bool = False, generated: str = "",
) -> Case:  # fmt: skip
    found = Case(name, columns, rows, alter, frozenset(unknown.split()), later, servers, shown, is_lost)
    return replace(found, generated=frozenset(generated.split()))


def _to(name: str, old: str, new: str, values: str, unknown: str = "", **others: object) -> Case:
    """Return the case of a column `a` that gets another type."""
    rows = ", ".join(f"({number}, {value}, 5)" for number, value in enumerate(values.split("; "), 1))
    columns = f"id int primary key, a {old}, b int"
    return _case(name, f"alter table {{}} modify a {new}", rows, columns, unknown, **others)  # type: ignore[arg-type]


def _key(name: str, alter: str, **others: object) -> Case:
    """Return the case of a table with two columns that may be its key."""
    columns = "id int not null, code int not null, b int, primary key (id)"
    rows = "(1, 2, 5), (2, 3, 6), (3, 1, 7)"
    return _case(name, alter, rows, columns, **others)  # type: ignore[arg-type]


_HEX = (("a", "concat('0x', hex(a))"),)

CASES = (
    # Places and names.
    _case("moved after the key", "alter table {} modify b int after id"),
    _case("moved first", "alter table {} modify b int first"),
    _case("added after the key", "alter table {} add z int after id"),
    _case("added first", "alter table {} add z int default 4 first"),
    _case("added behind another column", "alter table {} add z int after a"),
    _case("a key with another name", "alter table {} change id pk int", later="update {} set b = 9 where pk = 1"),
    _case("renamed", "alter table {} change a c varchar(20)"),
    _case("renamed column", "alter table {} rename column a to c", servers=MODERN),
    _case("renamed key column", "alter table {} rename column id to pk", servers=MODERN,
          later="update {} set b = 9 where pk = 1"),
    _case("swapped by change", "alter table {} change a b varchar(20), change b a int",
          later="update {} set a = 9 where id = 1"),
    _case("swapped by rename", "alter table {} rename column a to b, rename column b to a", servers=MODERN,
          later="update {} set a = 9 where id = 1"),
    _case("swapped with the key", "alter table {} change id a int, change a id varchar(20)",
          later="update {} set b = 9 where a = 1"),
    _case("names in other case", "ALTER TABLE {} MODIFY `B` BIGINT AFTER ID, CHANGE `A` `aA` varchar(30)"),
    _case("names within texts", "alter table {} add z varchar(20) default 'a b id' comment 'b, a int' after id"),
    _case("quotes in texts", "alter table {} add z varchar(20) default 'it''s' after a,"
          ' add y varchar(9) default "q"'),
    _case("odd names", "alter table {} add `a b` int default 1 after `a`, add `select` int default 2"),
    _case("a comment between", "alter /* drop column a */ table {} add z int -- drop column b\n default 6"),
    # Added and dropped columns.
    _case("added null", "alter table {} add z int, add y varchar(3) null default null"),
    _case("added with a number", "alter table {} add z int not null default -5, add y decimal(6,2) default 1.5"),
    _case("added with a text", "alter table {} add z varchar(9) default 'é', add y char(5) default 'x  '", unknown="z"),
    _case("added not null", "alter table {} add z int not null, add y varchar(3) not null, add x decimal(5,2) not null,"
          " add w bigint unsigned not null, add v char(2) not null, add u text not null, add t double not null"),
    _case("added with a label", "alter table {} add z enum('p', 'q') not null, add y set('p', 'q') default 'q,p'"),
    _case("added with members", "alter table {} add z set('p', 'q') not null default 'q,p,p'"),
    _case("added with a moment", "alter table {} add z datetime(3) default '2020-01-02 03:04:05',"
          " add y date default '2020-01-02', add x time default '01:02:03', add w year default 2020"),
    _case("added with bytes", "alter table {} add z varbinary(4) default 'ab', add y binary(4) not null",
          shown=(("z", "concat('0x', hex(z))"), ("y", "concat('0x', hex(y))"))),
    _case("added with a float", "alter table {} add z double default 1.5, add y float not null default 0.25"),
    _case("added boolean", "alter table {} add z boolean default true, add y bit(3) not null",
          shown=(("y", "y + 0"),)),
    _case("added bits", "alter table {} add z bit(3) default b'101', add y bit(9) not null default 0b100000001",
          shown=(("z", "z + 0"), ("y", "y + 0"))),
    _case("added in parentheses", "alter table {} add (z int default 1, y int)"),
    _case("added if missing", "alter table {} add column if not exists z int default 1,"
          " add column if not exists a int default 2", servers=MARIADB),
    _case("added with the time", "alter table {} add z datetime default current_timestamp, add y timestamp null",
          unknown="z"),
    _case("added with an expression", "alter table {} add z int default (3 + 4)", servers=MODERN, unknown="z"),
    _case("added generated", "alter table {} add z int as (b + 1) stored", servers=MODERN, unknown="z"),
    _case("added counter", "alter table {} add z int auto_increment unique", unknown="z"),
    _case("added timestamp", "alter table {} add z timestamp null default '2020-01-01 00:00:00'", unknown="z"),
    _case("dropped", "alter table {} drop a"),
    _case("dropped and added", "alter table {} drop a, add a int default 8 first"),
    _case("dropped if there", "alter table {} drop column if exists nothing, drop column if exists a", servers=MARIADB),
    _case("added then dropped", "alter table {} add z int default 1;alter table {} drop z;alter table {} add z int"),
    # Types.
    _to("wider number", "tinyint", "bigint", "1; -1; null"),
    _to("narrower number", "bigint", "smallint", "1; -300; null"),
    _to("unsigned number", "int", "int unsigned", "1; 0; null"),
    _to("number as text", "int", "varchar(20)", "1; -300; null"),
    _to("text as number", "varchar(20)", "int", "'1'; '-300'; null"),
    _to("number as decimal", "int", "decimal(10,2)", "1; -300; null"),
    _to("decimal scale", "decimal(10,2)", "decimal(12,4)", "1.5; -300.25; null"),
    _to("decimal scale cut", "decimal(10,2)", "decimal(10,1)", "1.55; -300.20; 0.04"),
    _to("decimal as number", "decimal(10,2)", "int", "15.00; -300.00; null"),
    _to("number as double", "int", "double", "1; -300; null"),
    _to("longer text", "varchar(20)", "varchar(200)", "'x'; 'ü '; null"),
    _to("shorter text", "varchar(20)", "varchar(3)", "'x'; 'ü '; null"),
    _to("text as char", "varchar(20)", "char(20)", "'x'; 'ü  '; null"),
    _to("char as text", "char(20)", "varchar(20)", "'x'; 'ü'; null"),
    _case("padded char", "set sql_mode = 'pad_char_to_full_length';alter table {} modify a varchar(9);"
          "set sql_mode = ''", "(1, 'x', 5), (2, 'ü ', 6), (3, null, 7)", "id int primary key, a char(5), b int"),
    _case("padded char cut", "set sql_mode = 'pad_char_to_full_length';alter table {} modify a varchar(3);"
          "set sql_mode = ''", "(1, 'x', 5), (2, 'abcde', 6)", "id int primary key, a char(5), b int", "a"),
    _case("padded char as bytes", "set sql_mode = 'pad_char_to_full_length';alter table {} modify a varbinary(9);"
          "set sql_mode = ''", "(1, 'x', 5), (2, 'abcde', 6)", "id int primary key, a char(5), b int", shown=_HEX),
    _case("padded key", "set sql_mode = 'pad_char_to_full_length';alter table {} modify id varchar(9);"
          "set sql_mode = ''", "('x', 5), ('abcde', 6)", "id char(5) primary key, b int",
          later="update {} set b = 9 where id = 'abcde'"),
    _case("padded char that stays", "set sql_mode = 'pad_char_to_full_length';alter table {} modify a char(9);"
          "set sql_mode = ''", "(1, 'x', 5), (2, null, 6)", "id int primary key, a char(5), b int"),
    _to("long text", "varchar(20)", "text", "'x'; 'ü '; null"),
    _to("medium text", "text", "mediumtext", "'x'; 'ü '; null"),
    _to("text from long", "text", "varchar(30)", "'x'; 'ü '; null"),
    _to("latin1 text", "varchar(20) character set utf8", "varchar(20) character set latin1", "'x'; 'y '; null"),
    _to("utf8 text", "varchar(20) character set latin1", "varchar(20) character set utf8", "'x'; 'ü '; null"),
    _to("more labels", "enum('x','y')", "enum('x','y','z')", "'x'; 'y'; null"),
    _to("other labels", "enum('x','y')", "enum('z','y','x')", "'x'; 'y'; null"),
    _to("labels as text", "enum('x','y')", "varchar(9)", "'x'; 'y'; null"),
    _to("text as labels", "varchar(9)", "enum('x','y')", "'x'; 'y'; null"),
    _to("more members", "set('x','y')", "set('x','y','z')", "'x'; 'x,y'; ''"),
    _to("text as members", "varchar(9)", "set('x','y')", "'y,x,y'; 'x,x'; 'y,x'; ''; null"),
    _to("other members", "set('x','y')", "set('y','x')", "'x'; 'x,y'; null"),
    _to("finer moment", "datetime", "datetime(3)", "'2020-01-02 03:04:05'; null"),
    _to("coarser moment", "datetime(3)", "datetime", "'2020-01-02 03:04:05.000'; null"),
    _to("finer time", "time", "time(2)", "'01:02:03'; '-01:02:03'; null"),
    _to("finer timestamp", "timestamp null", "timestamp(3) null", "'2020-01-02 03:04:05'; null"),
    _to("date as moment", "date", "datetime", "'2020-01-02'; null"),
    _to("moment as date", "datetime", "date", "'2020-01-02 00:00:00'; null"),
    _to("moment as text", "datetime", "varchar(30)", "'2020-01-02 03:04:05'; null"),
    _to("longer bytes", "varbinary(4)", "varbinary(8)", "'x'; ''; null", shown=_HEX),
    _to("padded bytes", "binary(2)", "binary(4)", "'x'; 'xy'; null", shown=_HEX),
    _to("bytes of text", "varchar(9) character set utf8", "varbinary(40)", "'x'; 'ü'; null", shown=_HEX),
    _to("not null text", "varchar(9)", "varchar(9) not null", "'x'; null"),
    _to("not null number", "int", "int not null", "7; null"),
    _to("not null decimal", "decimal(5,2)", "decimal(5,2) not null", "7; null"),
    _to("not null moment", "datetime", "datetime not null", "'2020-01-02 03:04:05'"),
    _to("now nullable", "int not null", "int null", "7; 8"),
    _to("fraction dropped", "datetime(3)", "datetime", "'2020-01-02 03:04:05.600'", unknown="a"),
    _to("float as double", "float", "double", "0.1", unknown="a"),
    _to("label gone", "enum('x','y')", "enum('x')", "'y'; 'x'", unknown="... a"),
    _to("clipped number", "int", "tinyint", "1000; 5", unknown="... a"),
    _to("cut text", "varchar(9)", "varchar(2)", "'abc'; 'ab'", unknown="... a"),
    _to("lost characters", "varchar(9) character set utf8", "varchar(9) character set latin1", "'Ж'; 'ab'",
        unknown="... a"),
    # The whole table.
    _case("converted", "alter table {} convert to character set latin1", unknown="... a"),
    _case("converted to more", "alter table {} convert to character set utf8mb4",
          columns="id int primary key, a varchar(20) character set latin1, b int"),
    _case("other engine", "alter table {} engine = MyISAM"),
    _case("sorted", "alter table {} order by b desc"),
    _case("other default", "alter table {} alter b set default 4, alter a set default 'b'"),
    _case("renamed index", "alter table {} add index i (b);alter table {} rename index i to j", servers=MODERN),
    _case("several clauses", "alter table {} drop b, change a c varchar(30) first, add b int default 2 after c,"
          " add index (b), comment 'id'"),
    # Keys.
    _case("text key", "alter table {} modify id varchar(20)"),
    _case("wider key", "alter table {} modify id bigint auto_increment"),
    _case("counted key", "alter table {} modify id int auto_increment"),
    _case("counted key with a zero", "alter table {} modify id int auto_increment",
          "(0, 'x', 5), (5, 'ü', null)", unknown="id", is_lost=True, later="update {} set b = 9 where id = 5"),
    _case("counted key that keeps its zero", "set sql_mode = 'no_auto_value_on_zero';"
          "alter table {} modify id int auto_increment;set sql_mode = ''", "(0, 'x', 5), (5, 'ü', null)",
          later="update {} set b = 9 where id = 5"),
    _case("counter with a zero", "alter table {} add unique (b), modify b int not null auto_increment",
          "(1, 'x', 0), (2, 'y', 8)", "id int primary key, a varchar(20), b int not null", "... b",
          later="update {} set a = 'z' where id = 2"),
    _case("counter with a null", "alter table {} add unique (b), modify b int auto_increment",
          "(1, 'x', null), (2, 'y', 8)", unknown="... b", later="update {} set a = 'z' where id = 2"),
    _case("decimal key", "alter table {} modify id decimal(10,2)"),
    _key("key of another column", "alter table {} drop primary key, add primary key (code)"),
    _key("key of more columns", "alter table {} drop primary key, add primary key (code, id)"),
    _key("key dropped", "alter table {} drop primary key"),
    _key("key dropped and made", "alter table {} drop primary key;alter table {} add primary key (code)"),
    _key("key dropped with changes", "alter table {} drop primary key;update {} set b = 8 where id = 2;"
         "insert into {} values (4, 4, 4);alter table {} add primary key (code)"),
    _key("key in a definition", "alter table {} drop primary key, modify code int primary key"),
    _key("key of a new column", "alter table {} drop primary key, add n int auto_increment primary key first",
         unknown="n", is_lost=True),
    _case("key moved", "alter table {} modify a int after b", "(1, 2, 3), (2, 3, 4)",
          "id int, a int, b int, primary key (id, a)"),
    _case("key in another order", "alter table {} modify id int after b", "(1, 2, 3), (2, 3, 4)",
          "id int, a int, b int, primary key (id, a)"),
    _case("key of two columns", "alter table {} change a c int, add z int", "(1, 2, 3), (2, 3, 4)",
          "id int, a int, b int, primary key (a, id)", later="update {} set b = 9 where id = 1"),
    _case("part of a key dropped", "alter table {} drop a", "(1, 2, 3), (2, 3, 4)",
          "id int, a int, b int, primary key (id, a)", servers=ALL - MARIADB),
    # Tables without a primary key.
    _case("no key and a column", "alter table {} add z int default 3", columns="id int, a varchar(20), b int"),
    _case("no key and equal rows", "alter table {} drop id", "(1, 'x', 5), (2, 'x', 5), (3, 'y', 5)",
          "id int, a varchar(20), b int", later="update {} set b = 9 where a = 'y'"),
    _case("no key and a key", "alter table {} add primary key (id)", columns="id int, a varchar(20), b int"),
    _case("no key and the time", "alter table {} add z datetime default current_timestamp", unknown="z",
          columns="id int, a varchar(20), b int", is_lost=True),
    # Generated columns.
    _case("a generated column", "alter table {} modify a decimal(10,3)", "(1, 1.5, 5, default)",
          "id int primary key, a decimal(10,2), b int, g varchar(20) as (concat(a, 'x')) stored", "g", servers=MODERN),
    _case("a generated column apart", "alter table {} add z int default 1", "(1, 1.5, 5, default)",
          "id int primary key, a decimal(10,2), b int, g varchar(20) as (concat(a, 'x')) stored", servers=MODERN,
          generated="g"),
)  # fmt: skip
