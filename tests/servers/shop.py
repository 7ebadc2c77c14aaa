"""A shop's morning to be recorded: customers, orders and their items, over three hours and one accident.

The same statements run on every server, from one seed. Order 1042 has a whole history, and at 10:17:42
an UPDATE without its WHERE cancels every order.
"""

import json
import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pymysql

from tests.servers.clock import Clock
from tests.servers.server import Server

DAY = datetime(2026, 11, 17)
FEATURED_ORDER = 1042

SCHEMA = [
    "create database shop character set utf8mb4",
    """
    create table shop.customers (
        id int unsigned not null auto_increment primary key,
        email varchar(120) not null,
        full_name varchar(80) not null,
        city varchar(60) character set latin1 null,
        birthday date null,
        loyalty_points smallint unsigned not null default 0,
        balance decimal(10,2) not null default 0.00,
        preferences json null,
        is_active tinyint(1) not null default 1,
        created_at datetime(6) not null,
        updated_at timestamp null,
        unique key uk_customers_email (email)
    ) engine=InnoDB
    """,
    """
    create table shop.orders (
        id bigint unsigned not null auto_increment primary key,
        customer_id int unsigned not null,
        status enum('new','paid','packed','shipped','delivered','cancelled','returned') not null default 'new',
        channel set('web','app','phone','gift') not null,
        total decimal(12,2) not null,
        discount_rate float null,
        delivery_window time null,
        note text null,
        placed_at datetime(6) not null,
        shipped_at datetime(6) null,
        key ix_orders_customer (customer_id),
        constraint fk_orders_customer foreign key (customer_id) references shop.customers (id)
    ) engine=InnoDB auto_increment=1001
    """,
    """
    create table shop.order_items (
        order_id bigint unsigned not null,
        line_number tinyint unsigned not null,
        sku char(10) character set ascii not null,
        title varchar(200) not null,
        quantity smallint unsigned not null,
        unit_price decimal(10,2) not null,
        weight_kg double null,
        attributes json null,
        primary key (order_id, line_number),
        constraint fk_order_items_order foreign key (order_id) references shop.orders (id) on update restrict
    ) engine=InnoDB
    """,
]

FIRST_NAMES = [
    "Ada",
    "Bruno",
    "Chloé",
    "Dmitri",
    "Élodie",
    "Farid",
    "Greta",
    "Hiroshi",
    "Inês",
    "Jürgen",
    "Katarína",
    "Łukasz",
    "Mía",
    "Nour",
    "Øyvind",
]
LAST_NAMES = [
    "Ångström",
    "Bianchi",
    "Çelik",
    "Dvořák",
    "Eriksson",
    "Fernández",
    "García",
    "Håkansson",
    "İnce",
    "Jovanović",
    "Kowalska",
    "Müller",
]
CITIES = ["Zürich", "Malmö", "Besançon", "Porto", "A Coruña", None, "Graz", "Liège"]
PRODUCTS = [
    (
        "TEA-GREEN1",
        "Sencha 緑茶, 100 g",
        "12.90",
        0.1,
        {"organic": True, "origin": "静岡", "steep": {"°C": 70, "s": 90}},
    ),
    ("TEA-BLACK2", "Earl Grey", "7.50", 0.125, {"organic": False, "tags": ["citrus", "black"]}),
    ("CUP-PORC01", "Porcelain cup “Möwe”", "24.00", 0.31, {"volume_ml": 250, "colours": ["white", "blue"]}),
    ("POT-IRON07", "Cast iron pot", "89.95", 2.4, None),
    ("GIFT-CARD5", "Gift card 🎁", "50.00", None, {"code": None, "valid_until": "2027-11-30", "amount": 50.0}),
    ("COF-ETH250", "Yirgacheffe, 250 g", "11.40", 0.25, {"roast": "light", "score": 87.25}),
    ("KETTLE-ELE", "Electric kettle 1.7 l", "139.00", 1.95, {"watts": 2200, "serial": 18446744073709551615}),
]
NOTES = [None, None, None, "Please ring twice", "Leave it with the neighbour – thanks 🙏", "Fragile!\nSecond line", ""]


class Shop:
    """Plays the morning on one server."""

    def __init__(self, server: Server, clock: Clock) -> None:
        self.server = server
        self.clock = clock
        self.random = random.Random(20261117)
        # Three programs are connected, each with its own thread id.
        self.web = self._session()
        self.warehouse = self._session()
        self.support = self._session()
        self.orders: dict[int, str] = {}

    def _session(self) -> "pymysql.connections.Connection[Any]":
        # Without autocommit: every commit below is one transaction in the log.
        return self.server.connect(database=None, autocommit=False)

    def play(self) -> None:
        """Run the whole morning; the binlog rotates once, at half past nine."""
        self._at("08:00:00")
        for statement in SCHEMA:
            self._run(self.web, statement)
        self._at("08:01:10")
        self._sign_up(24)
        for minute in range(5, 60, 4):
            self._at(f"08:{minute:02}:{self.random.randrange(60):02}")
            self._place_order()
        self._pay_and_pack()
        for minute in range(1, 28, 1):
            self._at(f"09:{minute:02}:{self.random.randrange(60):02}")
            self._place_order()
        self._feature()
        self._at("09:29:30")
        self._clean_up()
        self._at("09:30:00")
        self.server.flush()
        self._at("09:31:12")
        self._sign_up(8)
        for minute in range(33, 60, 3):
            self._at(f"09:{minute:02}:{self.random.randrange(60):02}")
            self._place_order()
        self._ship_some()
        self._at("10:02:00")
        self._change_customers()
        for minute in range(4, 17, 3):
            self._at(f"10:{minute:02}:{self.random.randrange(60):02}")
            self._place_order()
        self._cancel_everything()
        self._at("10:21:05")
        self._place_order()
        self._at("10:24:40")
        self._run(self.support, f"update shop.orders set status = 'shipped' where id = {FEATURED_ORDER}")
        self.support.commit()
        for session in (self.web, self.warehouse, self.support):
            session.close()

    def _at(self, time_of_day: str) -> None:
        hours, minutes, seconds = (int(part) for part in time_of_day.split(":"))
        self.clock.set(DAY + timedelta(hours=hours, minutes=minutes, seconds=seconds, milliseconds=250))

    def _run(self, session: "pymysql.connections.Connection[Any]", statement: str, values: Any = None) -> int:
        with session.cursor() as cursor:
            cursor.execute(statement, values)
            return int(cursor.lastrowid or 0)

    def _sign_up(self, count: int) -> None:
        """Insert several customers with one statement: one event with many rows."""
        rows = []
        for _ in range(count):
            first, last = self.random.choice(FIRST_NAMES), self.random.choice(LAST_NAMES)
            birthday = date(1950, 1, 1) + timedelta(days=self.random.randrange(20000))
            preferences = {"newsletter": self.random.random() < 0.5, "language": self.random.choice(["de", "fr", "ja"])}
            rows.append(
                (
                    f"{first}.{last}.{self.random.randrange(10**6)}@example.org".lower(),
                    f"{first} {last}",
                    self.random.choice(CITIES),
                    birthday if self.random.random() < 0.8 else None,
                    json.dumps(preferences) if self.random.random() < 0.7 else None,
                )
            )
        values = ", ".join(["(%s, %s, %s, %s, %s, now(6), now())"] * len(rows))
        columns = "email, full_name, city, birthday, preferences, created_at, updated_at"
        flat = [value for row in rows for value in row]
        self._run(self.web, f"insert into shop.customers ({columns}) values {values}", flat)
        self.web.commit()

    def _place_order(self) -> int:
        """Insert in one transaction over three tables: the order, its items, the customer's points."""
        chosen = self.random.sample(PRODUCTS, self.random.randint(1, 4))
        quantities = [self.random.randint(1, 5) for _ in chosen]
        total = sum((Decimal(price) * n for (_, _, price, _, _), n in zip(chosen, quantities, strict=True)), Decimal(0))
        customer = self.random.randint(1, 24)
        order = self._run(
            self.web,
            "insert into shop.orders (customer_id, channel, total, discount_rate, delivery_window, note, placed_at)"
            " values (%s, %s, %s, %s, %s, %s, now(6))",
            (
                customer,
                self.random.choice(["web", "app", "phone", "web,gift", ""]),
                total,
                self.random.choice([None, 0.05, 0.1, 0.333]),
                self.random.choice([None, "09:00:00", "18:30:00"]),
                self.random.choice(NOTES),
            ),
        )
        values = ", ".join(["(%s, %s, %s, %s, %s, %s, %s, %s)"] * len(chosen))
        flat: list[Any] = []
        for line, ((sku, title, price, weight, attributes), quantity) in enumerate(
            zip(chosen, quantities, strict=True), start=1
        ):
            attributes_text = json.dumps(attributes, ensure_ascii=False) if attributes else None
            flat += [order, line, sku, title, quantity, price, weight, attributes_text]
        self._run(self.web, f"insert into shop.order_items values {values}", flat)
        self._run(
            self.web,
            "update shop.customers set loyalty_points = loyalty_points + %s, balance = balance - %s, updated_at = now()"
            " where id = %s",
            (int(total), total, customer),
        )
        self.web.commit()
        self.orders[order] = "new"
        return order

    def _move(self, order: int, status: str, also: str = "") -> None:
        self._run(self.warehouse, f"update shop.orders set status = %s{also} where id = %s", (status, order))
        self.orders[order] = status

    def _pay_and_pack(self) -> None:
        for order in list(self.orders)[:10]:
            self._move(order, "paid")
        self.warehouse.commit()
        for order in list(self.orders)[:4]:
            self._move(order, "packed", ", note = concat(coalesce(note, ''), ' ✓')")
            self.warehouse.commit()

    def _feature(self) -> None:
        """Give order 1042 its history: placed, paid, an item more, an item less, a new total, shipped."""
        while FEATURED_ORDER not in self.orders:
            self._at("09:27:50")
            self._place_order()
        order = FEATURED_ORDER
        self._at("09:28:04")
        self._move(order, "paid")
        self.warehouse.commit()
        self._at("09:28:31")
        item = (
            order,
            9,
            "CUP-PORC01",
            "Porcelain cup “Möwe”",
            2,
            "24.00",
            None,
            '{"engraving": "Für Chloé", "lines": 1}',
        )
        self._run(self.web, "insert into shop.order_items values (%s, %s, %s, %s, %s, %s, %s, %s)", item)
        self._run(self.web, "delete from shop.order_items where order_id = %s and line_number = 1", (order,))
        self._run(
            self.web,
            "update shop.order_items set line_number = 1, attributes = null where order_id = %s and line_number = 9",
            (order,),
        )
        self._run(self.web, "update shop.orders set total = 66.60, note = 'Für Chloé 🎂' where id = %s", (order,))
        self.web.commit()
        self._at("09:29:02")
        self._move(order, "shipped", ", shipped_at = now(6), note = null")
        self.warehouse.commit()

    def _clean_up(self) -> None:
        """Delete three orders with their items, and roll back one deletion, which is therefore not in the log."""
        for order in (1002, 1005, 1009):
            self._run(self.support, "delete from shop.order_items where order_id = %s", (order,))
            self._run(self.support, "delete from shop.orders where id = %s", (order,))
            self.orders.pop(order)
        self.support.commit()
        self._run(self.support, "delete from shop.order_items where order_id = 1011")
        self.support.rollback()

    def _ship_some(self) -> None:
        for order in list(self.orders)[3:15]:
            if self.orders[order] in ("paid", "packed"):
                self._move(order, "shipped", ", shipped_at = now(6)")
        self.warehouse.commit()

    def _change_customers(self) -> None:
        """Change a value to NULL, NULL to a value, and a key; run an update that changes nothing."""
        self._run(self.support, "update shop.customers set city = null where id = 3")
        self._run(
            self.support, "update shop.customers set birthday = '1999-12-31', city = 'Genève' where birthday is null"
        )
        self._run(
            self.support,
            "insert into shop.customers"
            " values (900, 'temp@example.org', 'Temp', null, null, 0, 0, null, 0, now(6), null)",
        )
        self._run(self.support, "update shop.customers set id = 901 where id = 900")
        self._run(self.support, "update shop.customers set full_name = full_name, balance = -0.01 where id = 901")
        self._run(self.support, "delete from shop.customers where id = 901")
        self.support.commit()

    def _cancel_everything(self) -> None:
        """Run the accident."""
        self._at("10:17:42")
        self._run(self.support, "update shop.orders set status = 'cancelled'")
        self.support.commit()
        self.orders = dict.fromkeys(self.orders, "cancelled")
