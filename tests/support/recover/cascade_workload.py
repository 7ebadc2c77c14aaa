"""Random tables whose foreign keys cascade over several levels, and random transactions on their keys."""

import random

_RULES = ("cascade", "cascade", "set null", "restrict")


class CascadeWorkload:
    """Tables, rows and a transaction from a seed. Any statement may fail: the transaction goes on without it.

    `p` is at the top. `c` and `d` refer to it, `g` to one or both of these, `h` to `g`. The key of `c` may contain that
    of `p`, so that a new key of `p` moves rows of `c`, and changes its children in turn. `t` refers to itself.
    """

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.is_nested = self.random.random() < 0.5

    def _rules(self, is_nullable: bool = True) -> str:
        def rule() -> str:
            return self.random.choice(_RULES if is_nullable else ("cascade", "cascade", "restrict"))

        return f"on delete {rule()} on update {rule()}"

    def tables(self) -> list[str]:
        """Return the statements that create the tables."""
        choose = self.random.choice
        stamp = "s timestamp null default null on update current_timestamp"
        nested = self.is_nested
        texts = choose(("int", "varchar(9) character set latin1"))
        own_key = "primary key (p, id)" if nested else "primary key (id), key (p)"
        of_c = ("cp, cid", "p, id") if nested else ("cid", "id")
        return [
            f"create table p (id {texts} primary key, u int, v int, unique key (u))",
            f"create table c (id int, p {texts}{' not null' if nested else ''}, v int, {stamp}, {own_key},"
            f" constraint c_p foreign key (p) references p (id) {self._rules(not nested)})",
            f"create table d (id int primary key, p {texts}, v int, u int,"
            f" constraint d_p foreign key (p) references p (id) {self._rules()},"
            f" constraint d_u foreign key (u) references p (u) {self._rules()})",
            f"create table g (id int primary key, cid int, cp {texts}, d int, v int, {stamp},"
            f" constraint g_c foreign key ({of_c[0]}) references c ({of_c[1]}) {self._rules()},"
            f" constraint g_d foreign key (d) references d (id) {self._rules()})",
            f"create table h (id int primary key, g int, v int, constraint h_g foreign key (g) references g (id)"
            f" {self._rules()})",
            "create table t (id int primary key, up int, v int, constraint t_t foreign key (up) references t (id)"
            f" on delete {choose(('cascade', 'set null'))} on update cascade)",
        ]

    def rows(self) -> list[str]:
        """Return the statements that fill the tables."""
        found = [f"insert into p values ({n}, {n * 10}, 0)" for n in range(1, 6)]
        for n in range(1, 9):
            of_p, of_c = self._some(5), self._some(8)
            found += [
                f"insert into c (id, p, v) values ({n}, {self._some(5)}, 0)",
                f"insert into d values ({n}, {self._or_null(of_p)}, 0, {self._or_null(self._some(5) * 10)})",
                f"insert into g (id, cid, cp, d, v) select {n}, id, {'p' if self.is_nested else 'null'},"
                f" {self._or_null(self._some(n))}, 0 from c where id = {of_c}",
                f"insert into h values ({n}, {self._or_null(self._some(n))}, 0)",
                f"insert into t values ({n}, {self._or_null(self._some(n))}, 0)",
            ]
        return found

    def _some(self, most: int) -> int:
        return self.random.randint(1, most)

    def _or_null(self, value: int) -> str:
        return "null" if self.random.random() < 0.15 else str(value)

    def transaction(self) -> list[str]:
        """Return the statements of a transaction."""
        return [self._statement() for _ in range(self._some(4))]

    def _statement(self) -> str:
        some, choose = self._some, self.random.choice
        new = some(40) + 50
        return choose(
            (
                f"update p set id = {new} where id = {some(5)}",
                f"update p set id = {new}, u = {new}, v = v + 1 where id = {some(5)}",
                f"update p set u = {new} where id = {some(5)}",
                f"delete from p where id = {some(5)}",
                f"update c set id = {new} where id = {some(8)}",
                f"delete from c where id = {some(8)}",
                f"update d set id = {new}, v = v + 1 where id = {some(8)}",
                f"delete from d where id = {some(8)}",
                f"update g set id = {new} where id = {some(8)}",
                f"update {choose('cdgh')} set v = v + 1 where id = {some(8)}",
                f"update h set g = {some(8)} where id = {some(8)}",
                f"insert into p values ({new}, {new}, 1)",
                f"insert into d values ({new}, {some(5)}, 1, null)",
                f"delete from g where id = {some(8)}",
                f"delete from t where id = {some(8)}",
                f"update t set v = v + 1 where id = {some(8)}",
            )
        )
