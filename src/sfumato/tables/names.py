"""Column names that tell of an identifier."""

from __future__ import annotations

import re

__all__ = ["is_named_id", "is_named_like_id"]

_STRICT = "id|ids|uuid|guid|ssn|passport|iban|email|e-mail|mail|phone|mobile|card"
_LOOSE = "key|nr|no|number|account|firstname|lastname|surname|fullname|name|username|user|login|address|street|url|ip"
_OWNERS = "user|customer|client|patient|person|employee|member|subject|record|row|case|order|account|student"
_ID = re.compile(rf"(^|[_\s.-])({_STRICT})$|^(id|uuid|guid)[_\s.-]|^({_OWNERS})ids?$", re.IGNORECASE)
_LIKE_ID = re.compile(rf"(^|[_\s.-])({_LOOSE})$", re.IGNORECASE)
_CAMEL_ID = re.compile(r"[a-z](Id|ID|Uuid|UUID|Email|Phone)$")
_CAMEL_LIKE_ID = re.compile(r"[a-z](Key|Number|Name|Nr|No|Address)$")


def is_named_id(name: str) -> bool:
    """Tell whether a column is named as identifiers are, even where one person stands in several rows.

    Examples
    --------
    >>> is_named_id("patient_id"), is_named_id("customerId"), is_named_id("paid"), is_named_id("room_number")
    (True, True, False, False)
    """
    return bool(_ID.search(name) or _CAMEL_ID.search(name))


def is_named_like_id(name: str) -> bool:
    """Tell whether a column is named as identifiers are, or as other things are too.

    Examples
    --------
    >>> is_named_like_id("patient_id"), is_named_like_id("room_number"), is_named_like_id("salary")
    (True, True, False)
    """
    return is_named_id(name) or bool(_LIKE_ID.search(name) or _CAMEL_LIKE_ID.search(name))
