"""Rules give the types of results, after Spark's own (ANSI off, decimals with precision loss allowed)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, BINARY, DOUBLE, INT, STRING, TIMESTAMP
from fivm_dbt.functions.arithmetic import operation
from fivm_dbt.functions.function import Arguments
from fivm_dbt.functions.widening import common_type, widest

_NTZ = SparkType("timestamp_ntz")


def array_of(type_: SparkType | None) -> SparkType | None:
    """An array of values of one type."""
    return None if type_ is None else SparkType(f"array<{type_.text}>")


# That of an argument


def first(arguments: Arguments) -> SparkType | None:
    """That of the first argument."""
    return arguments.type(0)


def common(arguments: Arguments) -> SparkType | None:
    """The type to which all arguments are widened."""
    return common_type(arguments.types)


def then(arguments: Arguments) -> SparkType | None:
    """That to which all but the condition in front are widened."""
    return common_type(arguments.types[1:])


def decoded(arguments: Arguments) -> SparkType | None:
    """DECODE(x, search, result, ..., else); of a binary and a charset it is a string."""
    if len(arguments.nodes) == 2:
        return STRING
    results = arguments.types[2::2]
    return common_type([*results, arguments.types[-1]] if len(arguments.nodes) % 2 == 0 else results)


nullif = first


def if_null(arguments: Arguments) -> SparkType | None:
    """``zeroifnull(x)`` is ``coalesce(x, 0)``."""
    return common_type([arguments.type(0), INT])


# Strings


def as_string_or_binary(arguments: Arguments) -> SparkType | None:
    """A string, of binaries a binary."""
    types = [t for t in arguments.types if t is not None and t != INT]
    return BINARY if types and all(t == BINARY for t in types) else STRING


def padded(arguments: Arguments) -> SparkType | None:
    """A string, a binary where both are."""
    return BINARY if arguments.type(0) == BINARY and arguments.type(2) == BINARY else STRING


def concatenated(arguments: Arguments) -> SparkType | None:
    """CONCAT of arrays is an array, of binaries a binary, of all else a string."""
    types = arguments.types
    if any(t is not None and t.text.startswith("array<") for t in types):
        return common_array(arguments)
    return BINARY if types and all(t == BINARY for t in types) else STRING


def listed(arguments: Arguments) -> SparkType | None:
    """LISTAGG of strings or of binaries."""
    return BINARY if arguments.type(0) == BINARY else STRING


# Numbers


def absolute(arguments: Arguments) -> SparkType | None:
    """That of the argument, a double of a string."""
    type_ = arguments.type(0)
    return DOUBLE if type_ is not None and type_.is_string else type_


def arithmetic(operator: type[exp.Expr]) -> Callable[[Arguments], SparkType | None]:
    """That of ``left operator right``."""

    def rule(arguments: Arguments) -> SparkType | None:
        left, right = arguments.nodes if len(arguments.nodes) == 2 else (None, None)
        if left is None or right is None:
            return None
        return operation(operator, (arguments.type(0), left), (arguments.type(1), right))

    return rule


remainder = arithmetic(exp.Mod)


def rounded(arguments: Arguments) -> SparkType | None:
    """ROUND keeps the type but for a decimal's scale."""
    type_ = arguments.type(0)
    if type_ is None or not type_.is_decimal:
        return DOUBLE if type_ is not None and type_.is_string else type_
    return _with_scale(type_, arguments)


def whole(arguments: Arguments) -> SparkType | None:
    """CEIL and FLOOR give whole numbers, unless places behind the point are asked for."""
    type_ = arguments.type(0)
    if type_ is None or type_.is_decimal:
        return _with_scale(type_, arguments) if type_ is not None else None
    return BIGINT if len(arguments.nodes) == 1 else None


def _with_scale(type_: SparkType, arguments: Arguments) -> SparkType | None:
    digits = type_.precision - type_.scale + 1
    if len(arguments.nodes) == 1:
        return SparkType.decimal(digits, 0)
    places = _number(arguments.nodes[1])
    if places is None:
        return None
    kept = min(max(places, 0), type_.scale)
    return SparkType.decimal(max(digits, 1 - places) + kept, kept)


def _number(node: exp.Expr) -> int | None:
    sign, node = (-1, node.this) if isinstance(node, exp.Neg) else (1, node)
    is_number = isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit()
    return sign * int(node.this) if is_number else None


def bits(arguments: Arguments) -> SparkType | None:
    """The wider of two integral types."""
    left, right = arguments.type(0), arguments.type(1)
    if left is None or right is None or not (left.is_integral and right.is_integral):
        return None
    return widest(left, right)


def bits_as_first(arguments: Arguments) -> SparkType | None:
    """What is shifted is an int or a bigint."""
    type_ = arguments.type(0)
    return None if type_ is None else BIGINT if type_ == BIGINT else INT


def formatted_number(arguments: Arguments) -> SparkType | None:
    """TO_NUMBER has the digits of its format, which is a literal."""
    format_ = arguments.nodes[1] if len(arguments.nodes) > 1 else None
    if not isinstance(format_, exp.Literal):
        return None
    before, _, behind = format_.this.upper().replace("D", ".").partition(".")
    digits = [sum(c in "09" for c in part) for part in (before, behind)]
    return SparkType.decimal(sum(digits), digits[1])


# Times


def date_part(arguments: Arguments) -> SparkType | None:
    """A part of a time: seconds have six digits behind the point."""
    named, of = arguments.nodes if len(arguments.nodes) == 2 else (None, None)
    type_ = arguments.type(1)
    if named is None or of is None or type_ is None or not (type_.is_temporal or type_.is_string):
        return None
    return SparkType.decimal(8, 6) if named.name.upper() in ("SECOND", "S", "SEC", "SECONDS", "SECS") else INT


def moved_time(arguments: Arguments) -> SparkType | None:
    """DATE_ADD(date, days) is a date, DATEADD(unit, n, time) an instant."""
    if not isinstance(arguments.call, exp.TimestampAdd):
        return SparkType("date")
    return _NTZ if arguments.type(0) == _NTZ else TIMESTAMP


def difference(arguments: Arguments) -> SparkType | None:
    """DATEDIFF counts days as int, units that are named as bigint."""
    return BIGINT if arguments.call.args.get("unit") is not None else INT


# Arrays, maps, structs


def element_of(type_: SparkType | None) -> SparkType | None:
    """What an array has as elements, or a map as values."""
    columns = type_.element_columns() if type_ is not None else None
    return columns[-1][1] if columns else None


def element(arguments: Arguments) -> SparkType | None:
    """An element of an array or a value of a map."""
    return element_of(arguments.type(0))


def list_of_first(arguments: Arguments) -> SparkType | None:
    """An array of the first argument's values."""
    return array_of(arguments.type(0))


def made_array(arguments: Arguments) -> SparkType | None:
    """``array(a, b)``."""
    return array_of(common(arguments))


def common_array(arguments: Arguments) -> SparkType | None:
    """An array of what the elements of several arrays are widened to."""
    return array_of(common_type([element_of(t) for t in arguments.types]))


def with_item(place: int) -> Callable[[Arguments], SparkType | None]:
    """An array and one more element."""

    def rule(arguments: Arguments) -> SparkType | None:
        return array_of(common_type([element(arguments), arguments.type(place)]))

    return rule


def flattened(arguments: Arguments) -> SparkType | None:
    """The inner array."""
    return element(arguments)


def sequence(arguments: Arguments) -> SparkType | None:
    """An array of what the bounds are widened to."""
    return array_of(common_type(arguments.types[:2]))


def map_of(key: SparkType | None, value: SparkType | None) -> SparkType | None:
    """``map<key,value>``."""
    return None if key is None or value is None else SparkType(f"map<{key.text},{value.text}>")


def made_map(arguments: Arguments) -> SparkType | None:
    """``map(k, v, k, v)``, which is parsed into two arrays."""
    return map_of(element(arguments), element_of(arguments.type(1)))


map_of_arrays = made_map


def map_of_entries(arguments: Arguments) -> SparkType | None:
    """Of an array of structs with two fields."""
    entry = element(arguments)
    fields = entry.struct_fields if entry is not None else []
    return map_of(fields[0][1], fields[1][1]) if len(fields) == 2 else None


def parts_of_map(type_: SparkType | None) -> tuple[SparkType | None, SparkType | None]:
    """Key and value of a map."""
    columns = type_.element_columns() if type_ is not None and type_.text.startswith("map<") else None
    return (columns[0][1], columns[1][1]) if columns else (None, None)


def keys(arguments: Arguments) -> SparkType | None:
    """The keys of a map as an array."""
    return array_of(parts_of_map(arguments.type(0))[0])


def values(arguments: Arguments) -> SparkType | None:
    """The values of a map as an array."""
    return array_of(parts_of_map(arguments.type(0))[1])


def entries(arguments: Arguments) -> SparkType | None:
    """The entries of a map as an array of structs."""
    key, value = parts_of_map(arguments.type(0))
    return None if key is None or value is None else array_of(struct_type([("key", key), ("value", value)]))


def joined_maps(arguments: Arguments) -> SparkType | None:
    """Keys and values are widened."""
    parts = [parts_of_map(t) for t in arguments.types]
    return map_of(common_type([k for k, _ in parts]), common_type([v for _, v in parts])) if parts else None


def struct_type(fields: Sequence[tuple[str, SparkType | None]]) -> SparkType | None:
    """A struct of fields whose types are known."""
    if any(t is None for _, t in fields):
        return None
    return SparkType(f"struct<{','.join(f'{name}:{t.text}' for name, t in fields if t is not None)}>")


def struct_of(arguments: Arguments) -> SparkType | None:
    """A struct all of whose fields are named."""
    if not all(isinstance(node, exp.PropertyEQ) for node in arguments.nodes):
        return None
    return struct_type([(n.name, arguments.type_of(n.expression)) for n in arguments.nodes])


def zipped(arguments: Arguments) -> SparkType | None:
    """Structs of the elements at each place, named after the columns or by number."""
    fields = []
    for place, node in enumerate(arguments.nodes):
        name = node.name if isinstance(node, (exp.Column, exp.Dot)) else str(place)
        fields.append((name, element_of(arguments.type(place))))
    return array_of(struct_type(fields))


# Documents


def by_schema(arguments: Arguments) -> SparkType | None:
    """FROM_JSON and its like, by a schema that is a literal: a type, or the columns of a struct."""
    schema = arguments.nodes[1] if len(arguments.nodes) > 1 else None
    if not isinstance(schema, exp.Literal) or not schema.is_string:
        return None
    text = schema.this.strip()
    if not text.lower().startswith(("array<", "map<", "struct<")):
        text = f"struct<{text}>"
    try:
        read = exp.DataType.build(text, dialect="spark")
    except Exception:  # sqlglot has several; what it cannot read is asked of Spark
        return None
    return None if "unknown" in read.sql("spark").lower() else SparkType.of(read.sql("spark"))


def variant_value(arguments: Arguments) -> SparkType | None:
    """VARIANT_GET of a type that is a literal."""
    type_ = arguments.nodes[2] if len(arguments.nodes) > 2 else None
    return SparkType.of(type_.this) if isinstance(type_, exp.Literal) and type_.is_string else None


# Aggregates


def several(arguments: Arguments) -> SparkType | None:
    """``max_by(x, y)`` is an x, ``max_by(x, y, n)`` an array of them."""
    return list_of_first(arguments) if len(arguments.nodes) > 2 else arguments.type(0)


def of_share(arguments: Arguments) -> SparkType | None:
    """A percentile is a double; asked for several shares at once it is an array."""
    return _by_shares(arguments, DOUBLE)


def value_of_share(arguments: Arguments) -> SparkType | None:
    """An approximate percentile is one of the values."""
    return _by_shares(arguments, arguments.type(0))


def _by_shares(arguments: Arguments, one: SparkType | None) -> SparkType | None:
    type_ = arguments.type(0)
    if type_ is None or type_.text.startswith("interval"):
        return None
    return array_of(one) if any(isinstance(n, exp.Array) for n in arguments.nodes[1:]) else one


def total(arguments: Arguments) -> SparkType | None:
    """SUM: ten digits more for decimals."""
    type_ = arguments.type(0)
    if type_ is None or type_.text.startswith("interval"):
        return type_
    if type_.is_decimal:
        return SparkType.decimal(type_.precision + 10, type_.scale)
    return BIGINT if type_.is_integral else DOUBLE


def average(arguments: Arguments) -> SparkType | None:
    """AVG: four digits more for decimals, before and behind the point."""
    type_ = arguments.type(0)
    if type_ is None or type_.text.startswith("interval"):
        return None
    return SparkType.decimal(type_.precision + 4, type_.scale + 4) if type_.is_decimal else DOUBLE
