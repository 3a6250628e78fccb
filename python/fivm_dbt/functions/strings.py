"""These rows describe functions of strings and binaries."""

from __future__ import annotations

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, BINARY, BOOLEAN, INT, STRING
from fivm_dbt.functions.function import Function
from fivm_dbt.functions.type_rules import array_of, as_string_or_binary, first, padded

STRINGS: tuple[Function, ...] = (
    # What is made of a string.
    Function("upper", STRING, ("ucase",)),
    Function("lower", STRING, ("lcase",)),
    Function("initcap", STRING),
    Function("trim", STRING),
    Function("btrim", STRING),
    Function("ltrim", STRING),
    Function("rtrim", STRING),
    Function("lpad", padded),
    Function("rpad", padded),
    Function("left", as_string_or_binary),
    Function("right", STRING),
    Function("substring", as_string_or_binary, ("substr",)),
    Function("substring_index", STRING),
    Function("replace", STRING),
    Function("translate", STRING),
    Function("overlay", as_string_or_binary),
    Function("repeat", STRING),
    Function("space", STRING),
    Function("concat_ws", STRING),
    Function("elt", as_string_or_binary),
    Function("split_part", STRING),
    Function("soundex", STRING),
    Function("quote", STRING),
    Function(
        "mask",
        STRING,
        parameters=("str", "upperChar", "lowerChar", "digitChar", "otherChar"),
        defaults=("'X'", "'x'", "'n'", "NULL"),
    ),
    Function("format_string", STRING, ("printf",)),
    Function("format_number", STRING),
    Function("collate", None),
    Function("collation", STRING),
    Function("split", array_of(STRING)),
    Function("sentences", array_of(array_of(STRING))),
    Function("str_to_map", SparkType("map<string,string>")),
    # Numbers and truths about strings.
    Function("length", INT, ("char_length", "character_length", "len")),
    Function("bit_length", INT),
    Function("octet_length", INT),
    Function("ascii", INT),
    Function("char", STRING, ("chr",)),
    Function("instr", INT),
    Function("locate", INT, ("position",)),
    Function("find_in_set", INT),
    Function("levenshtein", INT),
    Function("contains", BOOLEAN),
    Function("startswith", BOOLEAN),
    Function("endswith", BOOLEAN),
    Function("luhn_check", BOOLEAN),
    # Patterns.
    Function("like", BOOLEAN),
    Function("ilike", BOOLEAN),
    Function("rlike", BOOLEAN, ("regexp", "regexp_like")),
    Function("regexp_count", INT),
    Function("regexp_instr", INT),
    Function("regexp_extract", STRING),
    Function("regexp_extract_all", array_of(STRING)),
    Function("regexp_replace", STRING),
    Function("regexp_substr", STRING),
    # Encodings.
    Function("base64", STRING),
    Function("unbase64", BINARY),
    Function("hex", STRING),
    Function("unhex", BINARY),
    Function("encode", BINARY),
    Function("url_encode", STRING),
    Function("url_decode", STRING),
    Function("try_url_decode", STRING),
    Function("parse_url", STRING),
    Function("try_parse_url", STRING),
    Function("is_valid_utf8", BOOLEAN),
    Function("make_valid_utf8", STRING),
    Function("validate_utf8", STRING),
    Function("try_validate_utf8", STRING),
    Function("to_binary", BINARY),
    Function("try_to_binary", BINARY),
    # Digests.
    Function("md5", STRING),
    Function("sha1", STRING, ("sha",)),
    Function("sha2", STRING),
    Function("crc32", BIGINT),
    Function("hash", INT),
    Function("xxhash64", BIGINT),
    Function("aes_decrypt", BINARY),
    Function("try_aes_decrypt", BINARY),
    # XML paths.
    Function("xpath", array_of(STRING)),
    Function("xpath_boolean", BOOLEAN),
    Function("xpath_string", STRING),
    *(
        Function(f"xpath_{name}", type_)
        for name, type_ in (("int", INT), ("long", BIGINT))
    ),
    Function("reverse", first),
)  # fmt: skip
