"""These rows describe functions of JSON, CSV, XML, Avro, Protobuf and variants."""

from __future__ import annotations

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BINARY, BOOLEAN, INT, STRING
from fivm_dbt.functions.function import Function
from fivm_dbt.functions.type_rules import array_of, by_schema, variant_value

_VARIANT = SparkType("variant")

DOCUMENTS: tuple[Function, ...] = (
    Function("get_json_object", STRING),
    Function("json_array_length", INT),
    Function("json_object_keys", array_of(STRING)),
    Function("from_json", by_schema),
    Function("from_csv", by_schema),
    Function("from_xml", by_schema),
    Function("from_avro"),
    Function("from_protobuf"),
    Function("to_json", STRING),
    Function("to_csv", STRING),
    Function("to_xml", STRING),
    Function("to_avro", BINARY),
    Function("to_protobuf", BINARY),
    Function("schema_of_json", STRING),
    Function("schema_of_csv", STRING),
    Function("schema_of_xml", STRING),
    Function("schema_of_avro", STRING),
    Function("parse_json", _VARIANT),
    Function("try_parse_json", _VARIANT),
    Function("to_variant_object", _VARIANT),
    Function("is_variant_null", BOOLEAN),
    Function("is_valid_variant", BOOLEAN),
    Function("schema_of_variant", STRING),
    Function("variant_get", variant_value),
    Function("try_variant_get", variant_value),
    # Places on the earth: no type of theirs is maintained, but what is said about them is.
    Function("st_asbinary", BINARY),
    Function("st_geogfromwkb"),
    Function("st_geomfromwkb"),
    Function("st_setsrid"),
    Function("st_srid", INT),
)  # fmt: skip
