"""The stream of changes over the TPC-H tables.

Values are drawn so that they matter to the 22 queries: about half of the changed parts, suppliers and dates are of the
kind that some query selects. Keys and references are broken on purpose (orders without lineitems and the reverse, rows
twice, NULLs), because a maintained query must be right on whatever is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from benchmarks.queries.draft import Draft
from benchmarks.queries.suite import Batch
from benchmarks.queries.tpch_data import TABLES
from fivm_dbt.refresh.engine import Row

_CENT = Decimal("0.01")
_NATIONS = ("FRANCE", "GERMANY", "BRAZIL", "CANADA", "SAUDI ARABIA", "CHINA", "INDIA", "JAPAN")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
_MODES = ("AIR", "AIR REG", "MAIL", "SHIP", "RAIL", "TRUCK", "FOB")
_PERIODS = (
    (date(1993, 7, 1), 180),
    (date(1994, 1, 1), 360),
    (date(1995, 1, 1), 90),
    (date(1995, 9, 1), 30),
    (date(1996, 1, 1), 90),
    (date(1997, 1, 1), 360),
    (date(1992, 1, 1), 2400),
)
_PARTS: tuple[dict[str, object], ...] = (
    {"p_brand": "Brand#23", "p_container": "MED BOX", "p_size": 9},
    {"p_brand": "Brand#12", "p_container": "SM CASE", "p_size": 3},
    {"p_brand": "Brand#34", "p_container": "LG BOX", "p_size": 14},
    {"p_type": "ECONOMY ANODIZED STEEL"},
    {"p_type": "PROMO BURNISHED BRASS", "p_size": 15},
    {"p_name": "forest green lace thistle snow"},
    {"p_name": "dim green ivory"},
    {"p_brand": "Brand#45", "p_size": 49},
    {"p_size": 23},
)


class _Stream:
    """Draws the batches; ``few`` is the number of orders in a usual one, a thousandth of all."""

    def __init__(self, rows: dict[str, list[Row]], seed: int) -> None:
        columns = {table.name: [c.name for c in table.columns] for table in TABLES}
        self.draft = Draft(columns, rows, seed)
        self.random = self.draft.random
        self.few = max(3, len(rows["orders"]) // 1000)
        self._next_order: int = 1 + max(o.o_orderkey for o in self.draft.rows("orders"))
        self._next_customer: int = 1 + max(c.c_custkey for c in self.draft.rows("customer"))
        brands = ("Brand#23", "Brand#12", "Brand#34")
        parts = {p.p_partkey for p in self.draft.rows("part", lambda p: p.p_brand in brands)}
        self._offers = self.draft.rows("partsupp")
        self._wanted = [offer for offer in self._offers if offer.ps_partkey in parts]

    def everything(self) -> None:
        """All eight tables at once, a little of each."""
        draft = self.draft
        draft.insert("region", r_regionkey=5, r_name="OCEANIA", r_comment="new")
        for region in draft.some("region", 1, lambda r: r.r_name == "AFRICA"):
            draft.update("region", region, r_comment="no query reads this")
        self.nations_move()
        self.suppliers_change()
        self.customers_come_and_go()
        self.parts_change()
        self.new_orders(self.few)
        self.statuses_change()
        self.wanted_sales()

    def new_orders(self, count: int | None = None, customers: Sequence[Any] = ()) -> None:
        """Orders with one to seven lineitems; every fifth is a large one."""
        customers = customers or self.draft.some("customer", 50)
        for _ in range(count or self.few):
            self._new_order(self.random.choice(customers).c_custkey, self._take_order(), self._day())

    def _take_order(self) -> int:
        self._next_order += 1
        return self._next_order - 1

    def _day(self) -> date:
        start, days = self.random.choice(_PERIODS)
        return start + timedelta(days=self.random.randrange(days))

    def _new_order(self, customer: int | None, key: int, day: date, has_lines: bool = True) -> None:
        made = self._new_lines(key, day) if has_lines else []
        self.draft.insert(
            "orders",
            o_orderkey=key,
            o_custkey=customer,
            o_orderstatus=self.random.choice("FOP") if has_lines else "F",
            o_totalprice=sum((line.l_extendedprice for line in made), Decimal("0.00")),
            o_orderdate=day,
            o_orderpriority=self.random.choice(_PRIORITIES),
            o_clerk=f"Clerk#{self.random.randrange(1000):09d}",
            o_shippriority=0,
            o_comment=self.random.choice(("as usual", "special handling requests", "carefully")),
        )

    def _new_lines(self, key: int, day: date) -> list[Any]:
        is_large = self.random.random() < 0.2
        count = 7 if is_large else self.random.randint(1, 7)
        offers = [self._offer() for _ in range(count)]
        return [self._new_line(key, number, offer, day, is_large) for number, offer in enumerate(offers, 1)]

    def _offer(self) -> Any:
        """A part and a supplier of it, maybe one that is gone; every other time one that some query selects."""
        return self.random.choice(self._wanted if self.random.random() < 0.5 else self._offers)

    def _new_line(self, key: int, number: int, offer: Any, day: date, is_large: bool) -> Any:
        quantity = Decimal(self.random.randint(44, 50) if is_large else self.random.randint(1, 50))
        shipped = day + timedelta(days=self.random.randint(1, 121))
        return self.draft.insert(
            "lineitem",
            l_orderkey=key,
            l_partkey=offer.ps_partkey,
            l_suppkey=offer.ps_suppkey,
            l_linenumber=number,
            l_quantity=quantity.quantize(_CENT),
            l_extendedprice=(quantity * self._cents(90_000, 200_000)).quantize(_CENT),
            l_discount=self._cents(0, 10),
            l_tax=self._cents(0, 8),
            l_returnflag=self.random.choice("ARN"),
            l_linestatus=self.random.choice("FO"),
            l_shipdate=shipped,
            l_commitdate=day + timedelta(days=self.random.randint(30, 90)),
            l_receiptdate=shipped + timedelta(days=self.random.randint(1, 30)),
            l_shipinstruct=self.random.choice(("DELIVER IN PERSON", "NONE", "COLLECT COD")),
            l_shipmode=self.random.choice(_MODES),
            l_comment="new",
        )

    def _cents(self, low: int, high: int) -> Decimal:
        return Decimal(self.random.randint(low, high)).scaleb(-2)

    def wanted_sales(self) -> None:
        """What single queries select, and a random change hardly ever meets: one or two sales for each."""
        draft = self.draft
        steel, small = self._part(p_type="ECONOMY ANODIZED STEEL"), self._part(**_PARTS[1])
        box, forest = self._part(p_brand="Brand#23", p_container="MED BOX"), self._part(**_PARTS[5])
        brass = self._part(p_type="PROMO BURNISHED BRASS", p_size=15)
        self._sale("BRAZIL", "PERU", date(1995, 6, 1), part=steel)
        self._sale("CHINA", "CHINA", date(1994, 6, 1))
        self._sale("FRANCE", "GERMANY", date(1995, 6, 1))
        self._sale("GERMANY", "FRANCE", date(1996, 6, 1))
        self._sale("INDIA", "JAPAN", date(1995, 3, 10), l_extendedprice=Decimal("600000.00"))
        self._sale(
            "INDIA", "JAPAN", date(1993, 11, 1), l_returnflag="R", l_extendedprice=Decimal("900000.00")
        )
        self._sale("JAPAN", "INDIA", date(1996, 1, 20), l_extendedprice=Decimal("4000000.00"))
        self._sale("INDIA", "CHINA", date(1995, 1, 1), part=box, l_quantity=Decimal("1.00"))
        person: dict[str, Any] = {
            "l_shipmode": "AIR",
            "l_shipinstruct": "DELIVER IN PERSON",
            "l_quantity": Decimal("5.00"),
        }
        self._sale("INDIA", "CHINA", date(1995, 1, 1), part=small, **person)
        self._sale("CANADA", "CHINA", date(1994, 2, 1), part=forest, stock=9999)
        self._sale("UNITED KINGDOM", "CHINA", date(1998, 2, 1), part=brass, stock=1)
        self._sale("CHINA", "CHINA", date(1994, 2, 1), l_shipmode="MAIL", l_receiptdate=date(1994, 6, 1))
        late = self._sale("SAUDI ARABIA", "CHINA", date(1994, 1, 1), l_receiptdate=date(1994, 12, 1))
        timely = late._replace(l_suppkey=-1, l_linenumber=2, l_receiptdate=date(1994, 1, 2))
        draft.insert_row("lineitem", timely)

    def _part(self, **values: object) -> Any:
        """A part that has these values, made from one that has them not."""
        return self.draft.update("part", self.draft.some("part", 1)[0], **values)

    def _sale(
        self, seller: str, buyer: str, day: date, part: Any = None, stock: int | None = None, **values: object
    ) -> Any:
        """An order of one lineitem from a supplier to a customer of these nations; offered with ``stock``, if any."""
        draft, key = self.draft, self._take_order()
        nations = {n.n_name: n.n_nationkey for n in draft.rows("nation")}
        supplier = self._of_nation("supplier", "s_nationkey", nations[seller])
        customer = self._of_nation("customer", "c_nationkey", nations[buyer])
        if customer.c_mktsegment != "BUILDING":
            customer = draft.update("customer", customer, c_mktsegment="BUILDING")
        self._new_order(customer.c_custkey, key, day, has_lines=False)
        part = part or draft.some("part", 1)[0]
        offer = draft.some("partsupp", 1)[0]._replace(
            ps_partkey=part.p_partkey, ps_suppkey=supplier.s_suppkey
        )
        if stock is not None:
            draft.insert_row("partsupp", offer._replace(ps_availqty=stock, ps_supplycost=self._cents(1, 9)))
        line = self._new_line(key, 1, offer, day, False)
        ships = {"l_shipdate": day + timedelta(days=10), "l_commitdate": day + timedelta(days=30)}
        return draft.update("lineitem", line, **{**ships, **values})

    def _of_nation(self, table: str, column: str, nation: int) -> Any:
        """Somebody of this nation; if there is nobody, somebody moves there."""
        found = self.draft.some(table, 1, lambda row: getattr(row, column) == nation)
        return (
            found[0] if found else self.draft.update(table, self.draft.some(table, 1)[0], **{column: nation})
        )

    def orders_go(self) -> None:
        """Some orders with their lineitems, some alone, and the lineitems of some that stay."""
        orders = self.draft.some("orders", 3 * self.few)
        whole, alone, empty = orders[0::3], orders[1::3], orders[2::3]
        # Large orders, without which the query for them would hardly ever change.
        totals = sorted(self.draft.rows("orders"), key=lambda o: (o.o_totalprice is None, o.o_totalprice))
        whole += [o for o in totals[-3:-1] if o not in orders]
        keys = {o.o_orderkey for o in (*whole, *empty)}
        for order in (*whole, *alone):
            self.draft.delete("orders", order)
        for line in self.draft.rows("lineitem", lambda row: row.l_orderkey in keys):
            self.draft.delete("lineitem", line)

    def customers_come_and_go(self) -> None:
        """New customers, half of them with orders; one with orders leaves alone, some without orders leave."""
        new = [self._new_customer() for _ in range(self.few)]
        self.new_orders(max(1, self.few // 2), new[: 1 + self.few // 2])
        buyers = {o.o_custkey for o in self.draft.rows("orders")}
        gone = self.draft.some("customer", max(2, self.few // 3), lambda c: c.c_custkey not in buyers)
        for customer in (*gone, *self.draft.some("customer", 1, lambda c: c.c_custkey in buyers)):
            self.draft.delete("customer", customer)

    def _new_customer(self) -> Any:
        key = self._next_customer
        self._next_customer += 1
        nation = self.random.choice(self.draft.rows("nation"))
        return self.draft.insert(
            "customer",
            c_custkey=key,
            c_name=f"Customer#{key:09d}",
            c_address="new",
            c_nationkey=nation.n_nationkey,
            c_phone=f"{self.random.choice((13, 31, 23, 29, 30, 18, 17, 25))}-555-{key}",
            c_acctbal=self._cents(-99_900, 999_900),
            c_mktsegment=self.random.choice(("BUILDING", "AUTOMOBILE", "MACHINERY")),
            c_comment="new",
        )

    def customer_leaves(self) -> None:
        """Customers leave with all their orders and lineitems."""
        buyers = {o.o_custkey for o in self.draft.rows("orders")}
        gone = {c.c_custkey for c in self.draft.some("customer", 3, lambda c: c.c_custkey in buyers)}
        orders = self.draft.rows("orders", lambda o: o.o_custkey in gone)
        keys = {o.o_orderkey for o in orders}
        self._delete_all("customer", lambda c: c.c_custkey in gone)
        self._delete_all("orders", lambda o: o.o_custkey in gone)
        self._delete_all("lineitem", lambda row: row.l_orderkey in keys)

    def _delete_all(self, table: str, where: Callable[[Any], bool]) -> None:
        for row in self.draft.rows(table, where):
            for _ in range(self.draft.copies(table, row)):
                self.draft.delete(table, row)

    def nations_move(self) -> None:
        """Nations change their region; customers and suppliers move to other nations."""
        draft = self.draft
        for nation in draft.some("nation", 2, lambda n: n.n_name in _NATIONS):
            draft.update("nation", nation, n_regionkey=self.random.randrange(5))
        chosen = draft.rows("nation", lambda n: n.n_name in _NATIONS)
        for customer in draft.some("customer", self.few):
            draft.update("customer", customer, c_nationkey=self.random.choice(chosen).n_nationkey)
        for supplier in draft.some("supplier", 3):
            draft.update("supplier", supplier, s_nationkey=self.random.choice(chosen).n_nationkey)

    def suppliers_change(self) -> None:
        """Balances, addresses and complaints; one supplier goes while its parts are still offered."""
        first, second, third, gone = self.draft.some("supplier", 4)
        self.draft.update("supplier", first, s_acctbal=self._cents(-99_900, 999_900))
        self.draft.update("supplier", second, s_comment="of Customer some Complaints")
        self.draft.update("supplier", third, s_address="moved")
        self.draft.delete("supplier", gone)
        for complaint in self.draft.some("supplier", 1, lambda s: "Complaints" in (s.s_comment or "")):
            self.draft.update("supplier", complaint, s_comment="settled")

    def parts_change(self) -> None:
        """Parts become others, one goes; offers get another price and stock, some go, one is new."""
        draft = self.draft
        for part in draft.some("part", self.few):
            draft.update("part", part, **self.random.choice(_PARTS))
        brands = draft.some("part", 2, lambda p: p.p_brand == "Brand#23" and p.p_container == "MED BOX")
        for part in brands[:1]:
            draft.update("part", part, p_container="JUMBO JAR")
        for part in draft.some("part", 1):
            draft.delete("part", part)
        for offer in draft.some("partsupp", 2 * self.few):
            cost, stock = self._cents(100, 100_000), self.random.randint(1, 9999)
            draft.update("partsupp", offer, ps_supplycost=cost, ps_availqty=stock)
        for offer in draft.some("partsupp", 3):
            draft.delete("partsupp", offer)
        for offer in draft.some("partsupp", 1):
            draft.insert_row("partsupp", offer._replace(ps_suppkey=1, ps_availqty=9999))

    def statuses_change(self) -> None:
        """Lineitems are received late or in time, returned, repriced; orders get another status, day or comment."""
        for line in self.draft.some("lineitem", 3 * self.few):
            values: tuple[dict[str, object], ...] = (
                {"l_receiptdate": line.l_commitdate + timedelta(days=5)},
                {"l_receiptdate": line.l_commitdate - timedelta(days=5)},
                {"l_returnflag": "R", "l_linestatus": "F"},
                {"l_quantity": Decimal("2.00"), "l_discount": Decimal("0.06")},
                {"l_shipdate": self._day(), "l_shipmode": "MAIL"},
                {"l_comment": "no query reads this"},
            )
            self.draft.update("lineitem", line, **self.random.choice(values))
        for order in self.draft.some("orders", 2 * self.few):
            changes: tuple[dict[str, object], ...] = (
                {"o_orderstatus": "F"},
                {"o_orderstatus": "O", "o_orderpriority": "1-URGENT"},
                {"o_orderdate": self._day()},
                {"o_comment": "special and unusual requests"},
                {"o_custkey": self.draft.some("customer", 1)[0].c_custkey},
            )
            self.draft.update("orders", order, **self.random.choice(changes))

    def copies(self) -> None:
        """Second and third copies of rows in every table but the nations and regions."""
        for table, count in (("lineitem", 3 * self.few), ("orders", self.few), ("customer", 3), ("part", 3)):
            for row in self.draft.some(table, count):
                self.draft.insert_row(table, row)
        for table in ("supplier", "partsupp"):
            for row in self.draft.some(table, 2):
                self.draft.insert_row(table, row)
                self.draft.insert_row(table, row)

    def copies_go(self) -> None:
        """One copy of the rows that are there more than once; of some, all."""
        for table in ("lineitem", "orders", "supplier", "customer"):
            twice = [row for row in self.draft.rows(table) if self.draft.copies(table, row) > 1]
            for number, row in enumerate(twice):
                for _ in range(self.draft.copies(table, row) if number % 4 == 0 else 1):
                    self.draft.delete(table, row)

    def late_lines(self) -> None:
        """Lineitems long after their orders, and lineitems whose orders come with the next batch."""
        for order in self.draft.some("orders", self.few, lambda o: o.o_orderdate < date(1994, 1, 1)):
            self._new_line(order.o_orderkey, 8, self._offer(), order.o_orderdate, False)
        self._awaited = [(self._take_order(), self._day()) for _ in range(self.few)]
        for key, day in self._awaited:
            self._new_lines(key, day)

    def late_orders(self) -> None:
        """The orders that were missing, with a few more lineitems, for customers that come now too."""
        for key, day in self._awaited:
            self._new_order(self._new_customer().c_custkey, key, day)

    def nulls(self) -> None:
        """NULLs in keys and values, among them a supplier without a key, which NOT IN must notice."""
        draft = self.draft
        for line in draft.some("lineitem", 4):
            draft.update("lineitem", line, l_suppkey=None)
        for line in draft.some("lineitem", 4):
            draft.update("lineitem", line, l_quantity=None, l_discount=None)
        for order in draft.some("orders", 4):
            draft.update("orders", order, o_custkey=None)
        for order in draft.some("orders", 2):
            draft.update("orders", order, o_orderkey=None)
        for customer in draft.some("customer", 3):
            draft.update("customer", customer, c_acctbal=None, c_phone=None)
        for supplier in draft.some("supplier", 1):
            draft.update("supplier", supplier, s_suppkey=None, s_comment="Customer Complaints")

    def nothing(self) -> None:
        """Rows that are deleted and inserted unchanged: no query may change."""
        for table in ("orders", "lineitem", "part"):
            for row in self.draft.some(table, self.few):
                self.draft.update(table, row)


_UNDO = "undo"


def tpch_batches(rows: dict[str, list[Row]], seed: int = 22) -> Iterator[Batch]:
    """The stream over tables with these rows, drawn as far as it is read. The first batch already touches all."""
    stream = _Stream(rows, seed)
    steps: tuple[tuple[str, Callable[[], None] | None], ...] = (
        ("all tables at once", stream.everything),
        ("orders go, with and without their lineitems", stream.orders_go),
        (_UNDO, None),
        ("what single queries select", stream.wanted_sales),
        (_UNDO, None),
        ("new orders", stream.new_orders),
        ("customers come and go", stream.customers_come_and_go),
        ("nations and their people move", stream.nations_move),
        (_UNDO, None),
        ("parts and offers change", stream.parts_change),
        ("statuses, days and prices change", stream.statuses_change),
        ("rows twice", stream.copies),
        ("suppliers change", stream.suppliers_change),
        ("lineitems before their orders", stream.late_lines),
        ("the orders of those lineitems", stream.late_orders),
        ("NULLs", stream.nulls),
        ("copies go", stream.copies_go),
        ("customers leave with everything", stream.customer_leaves),
        ("nothing but rewritten rows", stream.nothing),
        *(((_UNDO, None),) * 4),
    )
    for title, make in steps:
        if make is None:
            yield stream.draft.undo()
        else:
            make()
            yield stream.draft.finish(title)
