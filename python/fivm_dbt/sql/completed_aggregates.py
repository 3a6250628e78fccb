"""A call of an aggregate function is completed in the text, to have one result in any order of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.functions.function import Order
from fivm_dbt.functions.lookup import order_of
from fivm_dbt.ir.calls import function_name
from fivm_dbt.sql.aggregates import AROUND_AGGREGATES, first_argument, is_sorted, names_its_ties
from fivm_dbt.sql.category_call import Categorical
from fivm_dbt.sql.covariances import checked_types, is_covariance, read_covariance, text_of
from fivm_dbt.sql.group_keys import group_keys
from fivm_dbt.sql.parse import unsupported
from fivm_dbt.sql.select_names import SelectNames, not_found
from fivm_dbt.sql.window_ties import WindowCall

if TYPE_CHECKING:
    from fivm_dbt.sql.completions import Completions


class CompletedAggregates:
    """The aggregates of one SELECT, those over windows among them."""

    def __init__(self, found: Completions, select: SelectNames) -> None:
        self.found = found
        self.text = found.text
        self.select = select

    def complete(self, call: exp.Expr) -> None:
        by = order_of(call)
        if is_covariance(call):
            self._covariance(call)
        if self.found.makes_exact(call):
            return  # a subquery may be read twice: the second time with what it needs of the query around it
        if by is Order.LIST:
            self._collected(call)
        elif by is Order.TIES and isinstance(call, exp.Mode):
            self._mode(call)
        elif by is Order.TIES:
            self._extreme_by(call)
        elif by is Order.TEXT:
            self._joined(call)
        elif by is Order.ANY_ROW:
            self._any_value(call)

    def _covariance(self, call: exp.Expr) -> None:
        """The sums that Spark knows, in the place of the call and its FILTER."""
        outer, conditions = call, []
        while isinstance(outer.parent, AROUND_AGGREGATES):
            outer = outer.parent
            if isinstance(outer, exp.Filter):
                conditions.append(outer.expression.this)
        if isinstance(outer.parent, exp.Window) and outer.parent.this is outer:
            remedy = "aggregate with GROUP BY"
            raise unsupported(call, f"{function_name(call)} over a window", remedy)
        place = self.text.call(call)
        if place is None:
            raise not_found(call)
        found = read_covariance(call)
        types = checked_types(found, [self.select.type(value) for value in found.arguments])
        if found.categories:
            by = group_keys(self.select.node, self.select.scope, self.select.projections)
            if by.in_sets:
                what = "ROLLUP, CUBE or GROUPING SETS beside a covariance with categories"
                raise unsupported(call, what, "write one query for each, and UNION ALL")
            is_global = self.select.node.args.get("group") is None
            self.found.categorical = Categorical(
                self.text.start(place[0]), tuple(by.expressions), is_global, types
            )
            return
        text = text_of(found, types, conditions)
        self.found.write_out(place[0], self.text.end_of_call(place[2]), text)

    def _collected(self, call: exp.Expr) -> None:
        """``sort_array(collect_list(x))``, where the list is not sorted, only counted, or in a window's order."""
        outer = call
        while isinstance(outer.parent, AROUND_AGGREGATES):
            outer = outer.parent
        parent = outer.parent
        if isinstance(parent, exp.Window) and parent.this is outer:
            outer = parent
            over = WindowCall(parent, self.select.definition(parent))
            if over.order or over.by_rows:
                return
        place = self.text.call(call)
        if is_sorted(outer) or place is None:
            return
        self.select.check_ordered(call, first_argument(call), "sort_array")
        self.found.wrap(place[0], self.text.end_of_call(place[2]), "sort_array(", ")")
        self.found.settle(call)

    def _extreme_by(self, call: exp.Expr) -> None:
        """``max_by(x, y)``: of the rows with the greatest y that with the greatest x."""
        if len(call.expressions) < 2:
            what = f"{function_name(call)} of one argument"
            raise unsupported(call, what, "say by what the row is chosen, too")
        value, by = call.expressions[:2]
        column = self.select.column(by)
        if names_its_ties(value, by):
            return
        if column is not None and any(key <= {column} for key in self.select.keys):
            self.found.settle(call)
            return
        place = self.text.call(call)
        arguments = self.text.arguments(place[1], place[2]) if place is not None else []
        if len(arguments) != len(call.expressions) or self.found.touches(arguments[0][0], arguments[1][1]):
            raise not_found(call)
        self.select.check_ordered(call, value, "struct")
        x, y = (self.text.slice(*a) for a in arguments[:2])
        self.found.wrap(*arguments[1], "if((", f") is null, null, named_struct('y', {y}, 'x', {x}))")
        self.found.settle(call)

    def _mode(self, call: exp.Expr) -> None:
        """``mode(x, true)``: of the most frequent values the least."""
        place = self.text.call(call)
        if place is not None and len(self.text.arguments(place[1], place[2])) == 1:
            self.select.check_ordered(call, first_argument(call), "mode(x, true)")
            self.found.insert(place[2] - 1, ", true")
            self.found.settle(call)

    def _any_value(self, call: exp.Expr) -> None:
        """``min(x)``, one of the values: NULL only where all are."""
        place = self.text.call(call)
        outer = call
        while isinstance(outer.parent, AROUND_AGGREGATES):
            outer = outer.parent
        if place is None or isinstance(outer.parent, exp.Window):
            return
        first, last = self.text.arguments(place[1], place[2])[0]
        if self.found.touches(place[0], place[2]):
            raise not_found(call)
        self.select.check_ordered(call, first_argument(call), "min")
        end = self.text.end_of_nulls(place[2])
        self.found.replace(place[0], end, f"min({self.text.slice(first, last)})")
        self.found.settle(call)

    def _joined(self, call: exp.Expr) -> None:
        """``listagg(x) WITHIN GROUP (ORDER BY y, x)``. With DISTINCT an order that is given is by the value already."""
        within = call.parent
        value = call.expressions[0]
        given = within.expression.expressions if isinstance(within, exp.WithinGroup) else []
        if given and (isinstance(value, exp.Distinct) or any(o.this == value for o in given)):
            return
        place = self.text.call(call)
        group = self.text.within_group(place[2]) if place is not None and given else None
        if place is None or (given and group is None):
            raise not_found(call)
        first, last = self.text.arguments(place[1], place[2])[0]
        first += self.text.tokens[first].text.upper() in ("DISTINCT", "ALL")
        value_text = self.text.slice(first, last)
        if group is not None:
            self.found.insert(self.text.closing(group) - 1, f", {value_text}")
        else:
            self.found.insert(place[2], f" within group (order by {value_text})")
            self.found.settle(call)
