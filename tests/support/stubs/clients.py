"""The vendors' own clients, pointed at a stub: no proxy, no retry, no key that means anything."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .server import Stub

if TYPE_CHECKING:
    import anthropic
    import openai
    from google import genai

TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For what is never encrypted: each client would read the certificates anew, which takes longer than most tests."""


@contextmanager
def anthropic_client(stub: Stub) -> Iterator[anthropic.Anthropic]:
    """Anthropic's client."""
    import anthropic

    http = anthropic.DefaultHttpxClient(trust_env=False, verify=TLS)
    with anthropic.Anthropic(api_key="key", base_url=stub.url, max_retries=0, http_client=http) as client:
        yield client


@contextmanager
def openai_client(stub: Stub) -> Iterator[openai.OpenAI]:
    """OpenAI's client."""
    import openai

    http = openai.DefaultHttpxClient(trust_env=False, verify=TLS)
    with openai.OpenAI(api_key="key", base_url=f"{stub.url}/v1", max_retries=0, http_client=http) as client:
        yield client


@contextmanager
def google_client(stub: Stub) -> Iterator[genai.Client]:
    """Google's client."""
    from google import genai
    from google.genai.types import HttpOptions

    options = HttpOptions(base_url=stub.url, client_args={"trust_env": False, "verify": TLS})
    client = genai.Client(api_key="key", vertexai=False, http_options=options)
    try:
        yield client
    finally:
        client.close()
