"""What both of OpenAI's APIs refuse in the same words: wrong types, long strings, strange names, pictures that are none."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NoReturn

from .pictures import decoded, is_pdf, is_readable, look
from .server import Body, Refusal

STRING_MAX = 10_485_760
"""Characters of one string."""
NAME = re.compile(r"[a-zA-Z0-9_-]+")


def envelope(refusal: Refusal) -> Body:
    """A refusal as OpenAI writes it."""
    return {"error": {"message": refusal.message, "type": refusal.kind, "param": refusal.param, "code": refusal.code}}


def check_headers(headers: Mapping[str, str]) -> None:
    """Nothing, where a key came along."""
    if not headers.get("authorization", "").startswith("Bearer "):
        raise Refusal("You didn't provide an API key.", status=401, code="invalid_api_key")


def check_parameters(body: Body, known: Collection[str], required: Collection[str]) -> None:
    """Nothing, where all parameters are known and none is missing."""
    for name in body:
        if name not in known:
            raise Refusal(f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    for name in required:
        if body.get(name) is None:
            raise Refusal(f"Missing required parameter: '{name}'.", param=name, code="missing_required_parameter")


def check_fields(value: object, where: str, required: Collection[str], optional: Collection[str] = ()) -> Body:
    """The object, where it has all it must have and nothing else."""
    if not isinstance(value, dict):
        wrong_type(where, "an object", value)
    for name in sorted(required):
        if name not in value:
            raise Refusal(f"Missing required parameter: '{where}.{name}'.", param=f"{where}.{name}", code="missing_required_parameter")
    for name in value:
        if name not in required and name not in optional:
            raise Refusal(f"Unknown parameter: '{where}.{name}'.", param=f"{where}.{name}", code="unknown_parameter")
    return value


def check_text(value: object, where: str, *, most: int = STRING_MAX, least: int = 0) -> str:
    """The string, where it is one of a fitting length."""
    if not isinstance(value, str):
        wrong_type(where, "a string", value)
    if len(value) > most:
        raise Refusal(
            f"Invalid '{where}': string too long. Expected a string with maximum length {most}, but got a string with length {len(value)} "
            "instead.",
            param=where,
            code="string_above_max_length",
        )
    if len(value) < least:
        raise Refusal(
            f"Invalid '{where}': empty string. Expected a string with minimum length {least}, but got an empty string instead.",
            param=where,
            code="empty_string",
        )
    return value


def check_name(value: object, where: str, *, most: int) -> None:
    """Nothing, if this is a function's name with at most this number of characters."""
    if not NAME.fullmatch(check_text(value, where, most=most, least=1)):
        raise Refusal(
            f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
            param=where,
            code="invalid_value",
        )


def check_list(value: object, where: str, *, most: int | None = None) -> list[Any]:
    """The list, where it is one and not empty."""
    if not isinstance(value, list):
        wrong_type(where, "an array of objects", value)
    if not value:
        raise Refusal(
            f"Invalid '{where}': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            param=where,
            code="empty_array",
        )
    if most is not None and len(value) > most:
        raise Refusal(
            f"Invalid '{where}': array too long. Expected an array with maximum length {most}, but got an array with length {len(value)} "
            "instead.",
            param=where,
            code="array_above_max_length",
        )
    return value


def check_choice(value: object, where: str, allowed: Collection[str]) -> str:
    """The value, where it is one of those."""
    if isinstance(value, str) and value in allowed:
        return value
    names = ", ".join(f"'{name}'" for name in sorted(allowed))
    raise Refusal(f"Invalid value: '{value}'. Supported values are: {names}.", param=where, code="invalid_value")


def check_picture(url: object, where: str) -> None:
    """Nothing, where it is an address, or a picture written out in a format that is taken."""
    text = check_text(url, where, most=70 * 1024 * 1024, least=1)
    if re.match(r"https?://[^\s/]+", text):
        return
    output = re.match(r"data:(image/(?:png|jpeg|gif|webp));base64,", text)
    if output is None:
        raise Refusal(
            f"Invalid '{where}'. Expected a valid URL, but got a value with an invalid format.", param=where, code="invalid_value"
        )
    data = decoded(text[output.end() :]) or b""
    picture = look(data)
    if picture is None or picture.media_type != output[1] or not is_readable(data):
        raise Refusal("You uploaded an unsupported image. Please make sure your image is valid.", param=where, code="invalid_image_format")


def check_file(part: Body, where: str) -> None:
    """Nothing, where it is a file by exactly one way."""
    given = [name for name in ("file_data", "file_id", "file_url") if part.get(name) is not None]
    if len(given) != 1:
        raise Refusal(f"Invalid '{where}': pass exactly one of file_data, file_id and file_url.", param=where, code="invalid_value")
    if given == ["file_data"]:
        text = check_text(part["file_data"], f"{where}.file_data", most=70 * 1024 * 1024, least=1)
        start = re.match(r"data:[\w.+-]+/[\w.+-]+;base64,", text)
        if start is None or decoded(text[start.end() :]) is None:
            raise Refusal(
                f"Invalid '{where}.file_data'. Expected a base64-encoded data URL with a MIME type.", param=where, code="invalid_value"
            )
        if start[0].startswith("data:application/pdf") and not is_pdf(decoded(text[start.end() :]) or b""):
            raise Refusal(f"Invalid '{where}.file_data'. The file could not be read as a PDF.", param=where, code="invalid_value")
        check_text(part.get("filename"), f"{where}.filename", least=1)


def wrong_type(where: str, expected: str, value: object) -> NoReturn:
    """Never returns.

    Raises:
        Refusal: The value has another type.
    """
    names = {str: "a string", list: "an array", dict: "an object", type(None): "null", bool: "a boolean", int: "an integer"}
    found = names.get(type(value), "a decimal")
    raise Refusal(f"Invalid type for '{where}': expected {expected}, but got {found} instead.", param=where, code="invalid_type")
