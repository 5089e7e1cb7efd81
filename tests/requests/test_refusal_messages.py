"""Messages with which Anthropic's API refuses an image or a document, as users report them, and messages about other problems."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_window import ModelError, ModelOverloadedError, PartRefusedError, PromptTooLongError
from context_window.requests.client_errors import RefusedPart, model_error, part_refused
from tests.requests.test_client_errors import APIError, error_body

MISLABELLED = "The image was specified using the image/jpeg media type, but the image appears to be a image/png image"
UNKNOWN = "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
TOO_WIDE = "At least one of the image dimensions exceed max allowed size"
TOO_LARGE = "image exceeds 5 MB maximum: 8259148 bytes > 5242880 bytes"
NO_FILE = "Unable to download the file. Please verify the URL and try again."

REPORTED: list[tuple[str, str | None, tuple[int, ...] | None]] = [
    ("Could not process image", "image", None),
    ("messages.3.content.1.image.source.base64.data: Could not process image", "image", (3, 1)),
    (f"messages.2.content.0.image.source.base64: {TOO_LARGE}", "image", (2, 0)),
    (f"messages.8.content.0.tool_result.content.0.image.source.base64: {TOO_LARGE}", "image", (8, 0, 0)),
    (f"messages.83.content.0.tool_result.content.1.image.source.base64: {MISLABELLED}", "image", (83, 0, 1)),
    ("messages.2.content.0.image.source.base64.data: Image does not match the provided media type image/png", "image", (2, 0)),
    (f"messages.2.content.0.tool_result.content.1.image.source.base64.media_type: {UNKNOWN}", "image", (2, 0, 1)),
    (f"messages.88.content.1.image.source.base64.data: {TOO_WIDE} for many-image requests: 2000 pixels", "image", (88, 1)),
    (f"messages.7.content.2.image.source.base64.data: {TOO_WIDE}: 8000 pixels", "image", (7, 2)),
    ("messages.118.content.4.image.source.base64: image cannot be empty", "image", (118, 4)),
    ("messages.2.content.0.tool_result.content.0.image.source.base64: invalid base64 data", "image", (2, 0, 0)),
    ("messages.2.content.0.pdf.source.base64.data: The PDF specified was not valid.", "document", (2, 0)),
    ("messages.4.content.1.pdf.source.base64.data: The PDF specified is password protected.", "document", (4, 1)),
    ("Could not process PDF", "document", None),
    ("A maximum of 100 PDF pages may be provided.", "document", None),
    ("messages.0.content.2.document.source.url.url: Only HTTPS URLs are supported.", "document", (0, 2)),
    (NO_FILE, None, None),
    (f"messages.0.content.1: {NO_FILE}", None, (0, 1)),
    ("This URL is disallowed by the website's robots.txt file.", None, None),
    ("Too much media: 0 document pages + 103 images > 100", None, None),
    ("messages: Too much media: 0 document pages + 103 images > 100", None, None),
    ("too many images and documents: 104 + 1 > 100", None, None),
    ("File not found: file_011CNha8iCJcU1wXNR6q4V8w", None, None),
    ("ValidationException: messages.1.content.1.image.source.base64.data: Could not process image", "image", (1, 1)),
]


@pytest.mark.parametrize(("message", "kind", "position"), REPORTED)
def test_a_refusal_of_a_part_has_its_kind_and_place(message: str, kind: str | None, position: tuple[int, ...] | None) -> None:
    error = model_error(APIError("x", error_body("invalid_request_error", message), 400))
    assert isinstance(error, PartRefusedError)
    assert (error.part_kind, error.place, error.reason, error.status) == (kind, position, message, 400)
    received = pickle.loads(pickle.dumps(error))
    assert (received.part_kind, received.place, str(received)) == (kind, position, str(error))


OPENAI: list[tuple[str, str | None, str | None, tuple[int, ...], str]] = [
    ("Invalid 'input[101].content[1].image_url'. Expected a base64-encoded data URL.", None, "image", (101, 1), "openai-responses"),
    ("Something new is wrong.", "input[2].output[0].image_url", "image", (2, 0), "openai-responses"),
    ("Something new is wrong.", "messages[3].content[1].image_url.url", "image", (3, 1), "openai"),
    ("Invalid file data.", "messages[3].content[0].file", "document", (3, 0), "openai"),
    ("Invalid file data.", "input[3].content[0].file_data", "document", (3, 0), "openai-responses"),
    ("You uploaded an unsupported image.", "input[4].content[2]", "image", (4, 2), "openai-responses"),
]


@pytest.mark.parametrize(("message", "param", "kind", "position", "api"), OPENAI)
def test_openai_names_the_place_in_param_or_in_the_message(
    message: str, param: str | None, kind: str | None, position: tuple[int, ...], api: str
) -> None:
    error = model_error(APIError("x", {"error": {"type": "invalid_request_error", "message": message, "param": param}}, 400))
    assert isinstance(error, PartRefusedError)
    assert (error.part_kind, error.place, error.api, error.reason) == (kind, position, api, message)
    received = pickle.loads(pickle.dumps(error))
    assert (received.place, received.api) == (position, api)


@pytest.mark.parametrize(
    "param", ["messages[1].content[0].text", "input[2].encrypted_content", "messages[0].role", "input[1].output[0].type"]
)
def test_other_places_are_not_about_a_part(param: str) -> None:
    error = model_error(APIError("x", {"error": {"type": "invalid_request_error", "message": "Wrong.", "param": param}}, 400))
    assert not isinstance(error, PartRefusedError)


OTHERS = [
    "prompt is too long: 208310 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "messages: text content blocks must be non-empty",
    "messages.3.content.0: Invalid `signature` in `thinking` block",
    "messages.1.content.0.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
    "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    "messages.2.content.1: `tool_use` ids must be unique",
    "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.",
    "messages.1.content.0: `image` blocks can only be in `user` messages",
    "messages.0.content.0.document.title: String should have 1 to 500 characters",
    "messages.4.content.0.text.cache_control.ttl: Input should be '5m' or '1h'",
    "max_tokens: 99 > 64, which is the maximum allowed number of output tokens",
    "`max_tokens` must be greater than `thinking.budget_tokens`.",
    "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    "Your credit balance is too low to access the Anthropic API.",
    "system.0: Input tag 'image' found using 'type' does not match any of the expected tags: 'text'",
    "unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
    "the image is nice, and so is the PDF",
]


@pytest.mark.parametrize("message", OTHERS)
def test_other_refusals_are_not_about_a_part(message: str) -> None:
    error = model_error(APIError("x", error_body("invalid_request_error", message), 400))
    assert isinstance(error, ModelError)
    assert not isinstance(error, PartRefusedError)


def test_a_too_long_prompt_takes_precedence() -> None:
    both = "prompt is too long: 9 tokens > 8 maximum; messages.0.content.1.image.source.base64.data: Could not process image"
    assert type(model_error(APIError("x", error_body("invalid_request_error", both), 400))) is PromptTooLongError


@pytest.mark.parametrize("status", [401, 403, 429, 500, 529])
def test_only_a_bad_request_is_a_refusal_of_a_part(status: int) -> None:
    error = model_error(APIError("x", error_body("", "Could not process image"), status))
    assert not isinstance(error, PartRefusedError)
    assert isinstance(error, ModelOverloadedError) == (status >= 500)


@given(
    position=st.tuples(st.integers(0, 99_999), st.integers(0, 99_999)) | st.tuples(*[st.integers(0, 99_999)] * 3),
    kind=st.sampled_from(["image", "document", "pdf"]),
    field=st.sampled_from(["base64", "base64.data", "url", "file.file_id"]),
    words=st.text(),
)
def test_a_place_is_read_as_it_is_written(position: tuple[int, ...], kind: str, field: str, words: str) -> None:
    """Exactly the named part, regardless of the message's wording."""
    where = f"messages.{position[0]}.content.{position[1]}" + (f".tool_result.content.{position[2]}" if position[2:] else "")
    assert part_refused(f"{where}.{kind}.source.{field}: {words}") == RefusedPart(
        "image" if kind == "image" else "document", position, "anthropic"
    )


@given(st.text() | st.text(alphabet="mesag.contimdfur0123456789_: "))
@example("messages." + "9" * 100_000)
@example("messages.1.content." * 50_000)
def test_any_message_is_parsed_without_errors(message: str) -> None:
    found: Any = part_refused(message)
    if found is not None:
        assert found[0] in ("image", "document", None)
        assert found[1] is None or len(found[1]) in (2, 3)
