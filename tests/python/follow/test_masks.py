"""A followed server with masks, and a baseline of it: no masked value is anywhere in the home."""

import hmac
from pathlib import Path

import pytest

from ingest.warehouse.files import read_rows
from ingest.warehouse.tables import BASELINE_ROWS, BASELINES
from tests.servers import Distribution, Server
from tests.servers.accounts import FOLLOWING, create_account
from tests.support.follow.follower import Follower
from tests.support.follow.tables import Tables
from tests.support.in_process import binloom
from tests.support.masking.shop import KEY, places_of

pytestmark = pytest.mark.slow

# Table maps contain neither column names nor labels; partial images and changes of documents are in the log.
OPTIONS = {
    "mysql": [
        *("--binlog-row-metadata=MINIMAL", "--binlog-row-value-options=PARTIAL_JSON"),
        *("--binlog-rows-query-log-events=ON", "--binlog-transaction-compression=ON"),
    ],
    "mariadb": [
        *("--binlog-row-metadata=NO_LOG", "--binlog-annotate-row-events=ON"),
        *("--log-bin-compress=ON", "--log-bin-compress-min-len=10"),
    ],
}
MASKS = """\
key_variable: SHOP_MASK_KEY
tags: {h: hash, p: {method: partial, keep_first: 1, keep_last: 0}, n: "null", d: drop}
rules:
  - {columns: "*.*.h_*", tag: h}
  - {columns: "*.*.p_*", tag: p}
  - {columns: "*.*.n_*", tag: n}
  - {columns: "*.*.d_*", tag: d}
"""
# No random identifier contains one of them by chance.
SECRETS = {"SECRET", "53454352455420", "8675309111", "1987-06-05", "1987-06-06", "83 , 69"}
DEFINITIONS = """
create database secret
create table secret.people (id int primary key, h_email varchar(90) not null default 'SECRET a' comment 'SECRET b', \
p_name varchar(60), n_num bigint default 8675309111, d_born date default '1987-06-05', n_json json, n_blob blob, \
plain varchar(30), h_low varchar(90) as (concat(h_email, 'SECRET c')) stored, unique key (h_email), \
check (n_num > -8675309111))
create table secret.pairs (a int, h_b varchar(50), n_v text, primary key (h_b, a))
create table secret.children (id int primary key, h_email varchar(90), d_note text, \
foreign key (h_email) references secret.people (h_email) on update cascade)
create table secret.parts (h_r varchar(40), n_v varchar(40)) \
partition by list columns (h_r) (partition p1 values in ('SECRET west'))
"""
CHANGES = """
insert into secret.people (id, h_email, p_name, n_num, d_born, n_json, n_blob, plain) values \
(1, 'SECRET@one', 'SECRET name', 8675309111, '1987-06-05', '{"SECRET k": "SECRET v", "pad": "long enough to change"}', \
'SECRET blob', 'p'), (2, 'SECRET@two', 'SECRET other', 8675309111, '1987-06-05', null, null, 'q')
insert into secret.pairs values (1, 'SECRET key', 'SECRET text'), (2, 'SECRET key', 'SECRET text')
insert into secret.children values (1, 'SECRET@one', 'SECRET note')
insert into secret.parts values ('SECRET west', 'SECRET v')
update secret.people set n_json = json_set(n_json, '$."SECRET k"', 'SECRET w') where id = 1
set session binlog_row_image = MINIMAL
update secret.people set id = 3, d_born = '1987-06-05' + interval 1 day where id = 2
update secret.pairs set h_b = 'SECRET moved' where a = 2
delete from secret.pairs where a = 1
set session binlog_row_image = FULL
set @secret = 'SECRET variable', @number = 8675309111
set session binlog_format = STATEMENT
insert into secret.parts (h_r, n_v) values ('SECRET west', concat(@secret, @number))
set session binlog_format = ROW
xa start 'x'
insert into secret.parts values ('SECRET west', 'SECRET xa')
xa end 'x'
xa prepare 'x'
xa rollback 'x'
alter table secret.people add column h_phone varchar(40) default 'SECRET phone' after id, \
add column n_code varchar(9) default (char(83, 69, 67))
alter table secret.parts add partition (partition p2 values in ('SECRET east'))
update secret.people set h_phone = 'SECRET call' where id = 1
create table secret.copy (h_email varchar(90)) select 'SECRET@one' as h_email, 8675309111 as n_x
create view secret.v as select * from secret.people where h_email = 'SECRET view'
create procedure secret.p() insert into secret.parts values ('SECRET west', 'SECRET procedure')
call secret.p()
"""


def test_no_masked_value_is_in_the_home(
    distribution: Distribution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "masks.yml").write_text(MASKS)
    monkeypatch.setenv("SHOP_MASK_KEY", KEY)
    with distribution.start(tmp_path / "server", OPTIONS[distribution.flavor]) as server:
        account = create_account(server, tmp_path, privileges=(*FOLLOWING, "reload"))
        with Follower(home, server, account.defaults_file, "--from-oldest") as follower:
            run(server, DEFINITIONS)
            follower.once()
            run(server, CHANGES)
            # The file that the server writes to then has no value.
            server.flush()
            follower.once()
            tables = Tables(home, follower.source)
        live = ["--server", server.host, "--port", str(server.port), "--defaults-file", str(account.defaults_file)]
        binloom(home, "baseline", "--source", follower.source, *live)
        for statement in ("select h_email from secret.people where id = 1", "select h_email from secret.children"):
            assert server.execute(statement) == [("SECRET@one",)]
    assert places_of(SECRETS, home) == []
    assert tables["unsupported_events"].num_rows == 0
    emails = {
        (row["table_name"], row["after_values"][{"people": 1, "children": 1, "copy": 0}[row["table_name"]]])
        for row in tables["row_events"].to_pylist()
        if row["event_type"] == "INSERT" and row["table_name"] in ("people", "children", "copy")
    }
    one, two = (hmac.digest(KEY.encode(), text, "sha256").hex()[:32] for text in (b"SECRET@one", b"SECRET@two"))
    assert emails == {("people", one), ("people", two), ("children", one), ("copy", one)}
    names = {row["table_name"]: row["column_names"] for row in read_rows(BASELINES, home)}
    assert "d_born" not in names["people"] and "d_note" not in names["children"]
    carried = {
        (row["table_name"], row["row_values"][names[row["table_name"]].index("h_email")])
        for row in read_rows(BASELINE_ROWS, home)
        if "h_email" in names[row["table_name"]]
    }
    assert carried == emails


def run(server: Server, statements: str) -> None:
    """Run statements, one per line, in one session."""
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in statements.strip().splitlines():
            cursor.execute(statement)
