"""Keys and passwords are found however they are spelled, and what only resembles one is not."""

from __future__ import annotations

import threading
import time
from random import Random
from string import ascii_letters

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session import secret_finder
from session.redaction import redacted
from session.secret_finder import decoded, layers, secrets_in
from tests.support.made_up_keys import PASSWORDS, SPELLINGS, made_up_keys


def readings(text: str) -> list[str]:
    """Return a text without escapes, and what is encoded in it."""
    plain = [layer.text for layer in layers(text)]
    return plain + [content for layer in plain for word in layer.replace('"', " ").split() if (content := decoded(word))]


def shows(text: str, key: str) -> bool:
    """True if a reader can see more of the key than its first letters."""
    size = min(8, len(key))
    return any(key[start : start + size] in reading for reading in readings(text) for start in range(len(key) - size + 1))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_key_is_found_in_every_spelling(spelling: str) -> None:
    """One detector finds a hundred made-up keys in thirteen spellings, as one secret, and redaction leaves nothing of them."""
    assert len(SPELLINGS) * len(made_up_keys()) == 1_300
    for key in made_up_keys():
        text = SPELLINGS[spelling](key)
        assert shows(text, key)  # or the test could not fail
        (secret,) = secrets_in(text)
        assert not shows(text[: secret.start] + text[secret.end :], key)
        assert not shows(redacted(text), key)


def test_a_key_with_known_first_letters_needs_no_name() -> None:
    for key in made_up_keys()[: -len(PASSWORDS)]:
        (secret,) = secrets_in(f"I use {key}, is that right?")
        assert secret.value == key
        assert secret.kind.startswith(("a ", "an "))


@pytest.mark.parametrize("kind", ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
def test_a_private_key_is_one_secret(kind: str) -> None:
    body = "\n".join(["MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"] * 20)
    text = f"here:\n-----BEGIN {kind}-----\n{body}\n-----END {kind}-----\nbye"
    (secret,) = secrets_in(text)
    assert (text[: secret.start], text[secret.end :]) == ("here:\n", "\nbye")
    assert [found.kind for found in secrets_in(repr(text))] == ["a private key"]


@pytest.mark.parametrize(
    "text",
    [
        "password = get_password()",
        "token: str | None = None",
        "max_tokens=100000, token_count: 123456",
        "api_key=os.environ['OPENAI_API_KEY']",
        "password=self.settings.password2",
        "secret: ${SECRET_1}",
        "api_key: your-api-key-1234",
        "sk-ant-api03-xxxxxxxxxxxxxxxxxxxxxxxx",
        "AKIAIOSFODNN7EXAMPLE",
        "token = tokens[0]",
        "the secret: keep your functions small",
        "git commit 4f9d1c2ab7e04f9d1c2ab7e04f9d1c2ab7e0dead",
        "password: /run/secrets/db_password_1",
        "a sk-learn pipeline and an eyJ in a word",
    ],
)
def test_what_only_resembles_a_secret_is_none(text: str) -> None:
    assert secrets_in(text) == []


@given(st.text('\\%"0nu2dabc/: =', max_size=60), st.data())
def test_layers_lead_back(text: str, data: st.DataObject) -> None:
    """a span is one of the text as it was given: what it leaves out are whole escapes"""
    for layer in layers(text):
        start = data.draw(st.integers(0, len(layer.text)))
        end = data.draw(st.integers(start, len(layer.text)))
        assert 0 <= layer.place(start) <= layer.place(end) <= len(text)
        assert (layer.place(0), layer.place(len(layer.text))) == (0, len(text))
    for shallow, deep in zip(layers(text), layers(text)[1:], strict=False):
        for index in range(len(deep.text)):
            raw = text[deep.place(index) : deep.place(index + 1)]
            assert deep.text[index] == raw or raw[0] in "\\%"
        assert len(deep.text) < len(shallow.text)


@given(st.text())
def test_any_text_has_spans_in_order(text: str) -> None:
    end = 0
    for secret in secrets_in(text):
        assert end <= secret.start < secret.end <= len(text)
        end = secret.end


@pytest.mark.parametrize(
    "part", ["sk-", "%25", "\\\\", "-----BEGIN PRIVATE KEY-----", "password=", "a://b:", "Basic ", "aB3+", "eyJ", "eyJ-", "SG.-", '\\"']
)
def test_time_grows_with_the_text(part: str) -> None:
    times = []
    for size in (50_000, 200_000):
        begun = time.process_time()
        secrets_in(part * (size // len(part)))
        times.append(time.process_time() - begun)
    assert times[1] < 12 * times[0] + 0.2


@given(
    st.lists(
        st.sampled_from([*made_up_keys()[::9], "password=", "\n", " ", "\\n", "-----BEGIN PRIVATE KEY-----", "QUJD", "x"]), max_size=30
    )
)
def test_parts_of_a_text_make_no_difference(words: list[str]) -> None:
    """A text is searched in parts. Its twin is searched at once."""
    text = "".join(words)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secret_finder, "STEP", 7)
        in_parts = secrets_in(text)
    assert in_parts == secrets_in(text)


@pytest.mark.no_cover
def test_no_other_thread_waits_for_a_long_text() -> None:
    """The gateway's other clients are served by one: a picture of 15 MB in a request that was recorded stopped them for seven seconds."""
    text = "".join(Random(1).choices(ascii_letters + " ", k=100_000)) * 80

    def longest_wait() -> float:
        waits, searching = [0.0], threading.Thread(target=secrets_in, args=[text])
        searching.start()
        while searching.is_alive():
            begun = time.perf_counter()
            time.sleep(0.001)
            waits.append(time.perf_counter() - begun)
        return max(waits)

    assert any(longest_wait() < 0.7 for _ in range(2))
