"""The Dockerfile and compose.yaml: what they copy, install and run is there. (`.ci/run` lints them; Docker is not needed.)

The health check runs as it stands, against a gateway that is started with the image's own command.
"""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from context_window.cli import commands
from session.store.postgres_url import parsed_url
from tests.support.project import project_files
from tests.support.shared import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
GATEWAY: dict[str, Any] = COMPOSE["services"]["gateway"]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
TOKEN = "/data/token"


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions with their arguments."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text("utf-8"))
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in text.splitlines() if line and not line.startswith("#")]


def arguments(name: str) -> list[str]:
    return [argument for instruction, argument in instructions() if instruction == name]


def command() -> list[str]:
    (line,) = arguments("CMD")
    words: list[str] = json.loads(line)
    return words


def health_check() -> str:
    (line,) = arguments("HEALTHCHECK")
    program, option, code = json.loads(line.partition(" CMD ")[2])
    assert (program, option) == ("python", "-c")
    return str(code)


def test_what_is_copied_is_there_and_not_ignored() -> None:
    sources = [name for line in arguments("COPY") if not line.startswith("--from") for name in line.split()[:-1]]
    there = {path.relative_to(ROOT).parts[0] for path in project_files()}
    assert {"pyproject.toml", "README.md", *PROJECT["license-files"]} <= set(sources), "the build reads these"
    assert [name for name in sources if name not in there and find_spec(name) is None] == []
    ignored = (ROOT / ".dockerignore").read_text("utf-8").split()
    assert {line[1:] for line in ignored if line.startswith("!")} == set(sources)


def test_what_is_installed_exists_and_suffices() -> None:
    (extras,) = re.findall(r"'\.\[(.*)\]'", (ROOT / "Dockerfile").read_text("utf-8"))
    assert set(extras.split(",")) == {"gateway", "postgres"}
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
    bases = {base.partition(" AS ")[0] for base in arguments("FROM")}
    (version,) = {base.removeprefix("python:").removesuffix("-slim") for base in bases}
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_nobody_is_root() -> None:
    (user,) = arguments("USER")
    assert user == "65534:65534"
    order = [name for name, _ in instructions()]
    assert order.index("USER") < order.index("CMD")


@pytest.mark.parametrize("words", [command(), GATEWAY["command"]], ids=["Dockerfile", "compose.yaml"])
def test_the_command_has_options_that_exist(words: list[str]) -> None:
    name, *options = words
    assert arguments("ENTRYPOINT") == [f'["{PROJECT["name"]}"]']
    given = commands.commands[name].make_context(name, list(options)).params
    assert (given["host"], given["port"], given["token_file"]) == ("0.0.0.0", 8383, TOKEN)
    assert arguments("EXPOSE") == ["8383"]
    assert given["command"] == ()


def test_the_services_find_each_other() -> None:
    given = commands.commands["gateway"].make_context("gateway", GATEWAY["command"][1:]).params
    database, prometheus = COMPOSE["services"]["postgres"], COMPOSE["services"]["prometheus"]
    parsed_url(given["address"])  # else it raises
    assert (
        given["address"] == f"postgresql://{database['environment']['POSTGRES_USER']}@postgres/{database['environment']['POSTGRES_USER']}"
    )
    assert GATEWAY["environment"]["PGPASSWORD"] == database["environment"]["POSTGRES_PASSWORD"]
    (scraped,) = yaml.safe_load(COMPOSE["configs"]["prometheus"]["content"])["scrape_configs"]
    assert scraped["static_configs"] == [{"targets": ["gateway:8383"]}]
    assert given["names"] == ("gateway",), "else the gateway refuses Prometheus' Host header"
    assert scraped["http_headers"] == {"X-Gateway-Token": {"files": ["/gateway/token"]}}
    assert {"gateway:/data"} == set(GATEWAY["volumes"])
    assert "gateway:/gateway:ro" in prometheus["volumes"]
    assert prometheus["configs"] == [{"source": "prometheus", "target": "/etc/prometheus/prometheus.yml"}]
    mounted = {mount.partition(":")[0] for service in COMPOSE["services"].values() for mount in service["volumes"]}
    assert mounted == set(COMPOSE["volumes"])


def test_only_this_machine_reaches_the_ports() -> None:
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", ())]
    assert len(ports) == 2
    assert all(port.startswith("127.0.0.1:") for port in ports)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """A gateway with compose's command, but for the port, the place of the token and the database; its port and its token's file."""
    token = tmp_path_factory.mktemp("data") / "token"
    changed = {"--port=8383": "--port=0", f"--token={TOKEN}": f"--token={token}"}
    words = [changed.get(word, word) for word in GATEWAY["command"] if not word.startswith("--store")]
    with subprocess.Popen([sys.executable, "-m", "context_window", *words], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = re.search(r"http://0\.0\.0\.0:(\d+)", process.stderr.readline())
            assert found
            yield int(found[1]), token
        finally:
            process.kill()


def test_the_health_check_passes_while_the_gateway_answers(running: tuple[int, Path]) -> None:
    port, token = running
    code = health_check().replace("8383", str(port)).replace(TOKEN, token.as_posix())
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
    for broken in (code.replace(str(port), "9"), code.replace("/metrics", "/nothing"), code.replace("x-gateway", "x")):
        assert subprocess.run([sys.executable, "-c", broken], stderr=subprocess.DEVNULL, timeout=60, check=False).returncode != 0


def test_prometheus_reads_the_totals_under_the_services_name(running: tuple[int, Path]) -> None:
    port, token = running
    statuses = []
    for host in ("gateway:8383", "elsewhere:8383"):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/metrics", headers={"Host": host, "X-Gateway-Token": token.read_text("utf-8").strip()})
        statuses.append(connection.getresponse().status)
        connection.close()
    assert statuses == [200, 403]
