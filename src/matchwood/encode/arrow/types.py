"""Arrow types and ours."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from matchwood.encode.arrow.values import is_text


def type_of_arrow(arrow: pa.DataType) -> Any:
    """Our type of an Arrow column; a dict of them for a struct; None where there is none."""
    if pa.types.is_struct(arrow):
        fields = {field.name: type_of_arrow(field.type) for field in arrow}
        return {name: kind for name, kind in fields.items() if kind is not None}
    if pa.types.is_dictionary(arrow):
        return type_of_arrow(arrow.value_type)
    for name, is_type in _TYPES.items():
        if is_type(arrow):
            return name
    return None


_TYPES = {
    "bool": pa.types.is_boolean,
    "int": pa.types.is_integer,
    "float": pa.types.is_floating,
    "number": pa.types.is_decimal,
    "string": is_text,
    "timestamp": pa.types.is_timestamp,
    "date": pa.types.is_date,
}
