"""A hundred made-up keys, and how one may be spelled."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from random import Random
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits
from urllib.parse import quote

WORD = ascii_letters + digits
HEX = "0123456789abcdef"
FORMS = (
    ("sk-ant-api03-", WORD + "-_", 95),
    ("sk-ant-oat01-", WORD + "-_", 95),
    ("sk-proj-", WORD + "-_", 120),
    ("sk-svcacct-", WORD + "-_", 60),
    ("sk-", WORD, 48),
    ("sk-or-v1-", HEX, 64),
    ("ghp_", WORD, 36),
    ("ghs_", WORD, 36),
    ("github_pat_", WORD + "_", 82),
    ("glpat-", WORD + "-_", 20),
    ("xoxb-", digits + "-" + WORD, 50),
    ("AIza", WORD + "-_", 35),
    ("GOCSPX-", WORD + "-_", 28),
    ("ya29.", WORD + "-_", 100),
    ("AKIA", ascii_uppercase + "234567", 16),
    ("ASIA", ascii_uppercase + "234567", 16),
    ("sk_live_", WORD, 24),
    ("rk_test_", WORD, 24),
    ("whsec_", WORD, 32),
    ("hf_", WORD, 34),
    ("gsk_", WORD, 52),
    ("xai-", WORD, 80),
    ("pplx-", WORD, 48),
    ("nvapi-", WORD + "-_", 64),
    ("tvly-", WORD + "-_", 32),
    ("csk-", ascii_lowercase + digits, 48),
    ("pcsk_", WORD + "_", 70),
    ("pypi-AgE", WORD + "-_", 150),
    ("npm_", WORD, 36),
    ("dop_v1_", HEX, 64),
    ("dapi", HEX, 32),
    ("r8_", WORD, 37),
    ("ntn_", WORD, 43),
    ("lin_api_", WORD, 40),
    ("shpat_", HEX, 32),
    ("sbp_", HEX, 40),
    ("hvs.", WORD + "-_", 90),
    ("ABSK", WORD, 100),
)
PASSWORDS = ("Tr0ub4dor&3x!", "correct7horse9", "p@ssw0rd-Q1w2", "zX9#kLm2!vB", "H7gf-92kd-LLqp", "s3cr3tP4ss!", "9f8e7d6c5b4a")
"""Those without a key's first letters. They are known by what stands before them."""


def made_up_keys() -> list[str]:
    """Return a hundred keys, the same each time."""
    random = Random(31)
    prefixes = [FORMS[number % len(FORMS)] for number in range(93)]
    keys = [f"{prefix}{''.join(random.choices(letters, k=length - 1))}{random.choice(digits)}" for prefix, letters, length in prefixes]
    return [*keys, *PASSWORDS]


def _escaped(text: str) -> str:
    return "".join(letter if letter.isalnum() else f"\\u{ord(letter):04x}" for letter in text)


def _coded(text: str) -> str:
    return "".join(letter if letter.isalnum() else f"%{ord(letter):02X}" for letter in text)


SPELLINGS: dict[str, Callable[[str], str]] = {
    "as sent": lambda key: f"password={key} was wrong",
    "quoted": lambda key: f'{{"api_key": "{key}"}}',
    "JSON": lambda key: f'{{"body": "\\nsecret: \\"{_escaped(key)}\\""}}',
    "JSON in JSON": lambda key: json.dumps(json.dumps({"password": key})),
    "address": lambda key: f"GET /v1?token={_coded(key)}&x=1",
    "address in address": lambda key: f"GET /v1?next={quote(f'/a?token={_coded(key)}', safe='')}",
    "Base64": lambda key: f"see {base64.b64encode(f'password={key}'.encode()).decode()} there",
    "Base32": lambda key: f"see {base64.b32encode(f'password={key}'.encode()).decode()} there",
    "hexadecimal": lambda key: f"see 0x{f'password={key}'.encode().hex()} there",
    "octal": lambda key: f"printf 'password={''.join(f'{chr(92)}{ord(letter):03o}' for letter in key)}'",
    "Basic": lambda key: f"Authorization: Basic {base64.b64encode(f'anna:{key}'.encode()).decode()}",
    "login": lambda key: f"postgresql://anna:{_coded(key) if '@' in key or '/' in key else key}@db:5432/main",
    "colour": lambda key: f"\x1b[31mpassword={key}\x1b[0m",
}
"""Thirteen spellings of a key, each in a text as they occur."""
