"""Files that may hold secrets: read only if the user agrees, under every name they have, and never searched. And `.gitignore`."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path, PurePath, PureWindowsPath
from typing import IO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_window.repl.gitignore import MAX_RULES
from context_window.repl.secret_names import is_secret
from context_window.repl.workspace import Workspace, WorkspaceError
from session import files
from session.files import Folder
from tests.support.shell import POSIX

TOKEN = "hunter2"

SECRETS = """
.local/state/context-window/history
.env .ENV .env.local prod.env config/.env .envrc .env.bak .env~ .env.swp server.pem server.key Server.KEY server.key.bak id_rsa
id_ed25519 id_rsa.old deploy/id_ecdsa_sk .netrc _netrc .npmrc .pypirc .git-credentials .git/config .git/objects/ab/cd .git
.ssh/known_hosts .aws/credentials .aws/config credentials.json gcp-credentials.json credentials.toml store.p12 store.pfx store.jks
passwords.kdbx .docker/config.json kubeconfig .kube/config terraform.tfstate terraform.tfstate.backup prod.tfvars prod.auto.tfvars
.bash_history .zsh_history .python_history .pgpass secrets.yml secrets.toml .secrets .secrets.toml service-account-prod.json
client_secret_1.json .htpasswd .vault-token AuthKey.p8 home/.config/gh/hosts.yml local.settings.json wp-config.php
.config/gcloud/credentials.db .gnupg/pubring.kbx src/.git/../config/.git/HEAD
"""
HARMLESS = """
.env.example .env.sample .env.template .env.dist id_rsa.pub server.pub main.py environment.py env.py secrets.py src/secrets/__init__.py
keys.md .gitignore .gitattributes .github/workflows/ci.yml package.json tokenizer.json README.md docs/credentials.md
terraform.tfvars.example .dockerignore docker/config.json config.json key.py history.py secrets.yml.example .envoy.yaml monkey.txt
keyboard.ts main.tf credentials.py hosts.yml git/config
"""


@pytest.mark.parametrize("path", SECRETS.split())
def test_names_that_suggest_secrets(path: str) -> None:
    assert is_secret(PurePath("/work", path))


@pytest.mark.parametrize("path", HARMLESS.split())
def test_names_that_only_deal_with_secrets_are_harmless(path: str) -> None:
    assert not is_secret(PurePath("/work", path))


@pytest.mark.parametrize(
    "name", [".env.", ".env ", ".env . .", ".env::$DATA", ".e\u200cnv", ".ＥＮＶ", "id_r\u017fa", "server.\u212aey", ".GIT/config"]
)
def test_names_that_a_lenient_file_system_opens_as_a_secret_are_secret(name: str) -> None:
    """Windows ignores dots, spaces and streams at the end, HFS+ invisible characters, others case: each of these opens a secret."""
    assert is_secret(PurePath("/work", name))
    assert is_secret(PureWindowsPath("C:\\work", name))


class User:
    """A user who answers questions. Records them."""

    def __init__(self, *, answer: bool) -> None:
        self.answer = answer
        self.questions: list[str] = []

    def __call__(self, description: str) -> bool:
        self.questions.append(description)
        return self.answer


@pytest.fixture
def root(tmp_path: Path) -> Path:
    inside = tmp_path / "inside"
    for folder in ("src", ".git/info", "node_modules/p"):
        (inside / folder).mkdir(parents=True)
    (inside / ".env").write_text(f"PASSWORD={TOKEN}\n", encoding="utf-8")
    (inside / ".git" / "config").write_text(f"token={TOKEN}\n", encoding="utf-8")
    (inside / "src" / "main.py").write_text("print('hello')\n", encoding="utf-8")
    return inside


WAYS = [".env", "./.env", "./.git/../.env", "src/../.env", ".env/", "src//..//.env", ".git/config", ".git/./config", "src/../.git/config"]
LINKS = ["soft", "chain", "hard", "node_modules/p/hard", "folder/config", "src/up/.env"]


def _links(root: Path) -> None:
    (root / "soft").symlink_to(".env")
    (root / "chain").symlink_to("soft")
    (root / "hard").hardlink_to(root / ".env")
    (root / "node_modules" / "p" / "hard").hardlink_to(root / ".env")
    (root / "folder").symlink_to(".git")
    (root / "src" / "up").symlink_to("..")


@POSIX
@pytest.mark.parametrize("path", [*WAYS, *LINKS])
def test_a_secret_is_read_only_if_the_user_agrees_whatever_its_name(root: Path, path: str) -> None:
    _links(root)
    with pytest.raises(WorkspaceError, match="nobody can be asked"):
        Workspace(root).read_file(path)
    user = User(answer=False)
    refusing = Workspace(root, allow_secret=user)
    for _ in range(2):
        with pytest.raises(WorkspaceError, match="the user does not let you read"):
            refusing.read_file(path)
    assert len(user.questions) == 1
    user = User(answer=True)
    allowing = Workspace(root, allow_secret=user)
    assert TOKEN in allowing.read_file(path)
    assert TOKEN in allowing.read_file(path, 1, 1)
    assert len(user.questions) == 1
    with pytest.raises(WorkspaceError, match="is not searched"):
        allowing.search(TOKEN, path)


@POSIX
def test_no_search_and_no_recursive_listing_shows_a_secret(root: Path) -> None:
    _links(root)
    for answer in (False, True):
        workspace = Workspace(root, allow_secret=User(answer=answer))
        for path in (".", "node_modules", ".git", "src", "node_modules/p"):
            assert TOKEN not in workspace.search("PASSWORD|token|hunter", path)
        assert "files that may hold secrets are left out" in workspace.search("x")
        listed = workspace.list_files(recursive=True)
        assert ".env" not in listed.splitlines()[0]
        assert "left out" in listed
    plain = Workspace(root).list_files()
    assert ".env (17, may hold secrets)" in plain
    assert "soft (a link, may hold secrets)" in plain
    assert "config (14, may hold secrets)" in Workspace(root).list_files(".git")


@POSIX
def test_the_question_names_the_secret_behind_a_hard_link(root: Path, tmp_path: Path) -> None:
    _links(root)
    user = User(answer=False)
    (tmp_path / "elsewhere").write_text("what is it?", encoding="utf-8")
    (root / "other.txt").hardlink_to(tmp_path / "elsewhere")
    workspace = Workspace(root, allow_secret=user)
    for path in ("hard", "other.txt"):
        with pytest.raises(WorkspaceError):
            workspace.read_file(path)
    assert user.questions == ["hard, the same file as .env", "other.txt, a hard link to a file elsewhere"]
    assert "what is it" not in workspace.search("what")


@POSIX
def test_harmless_hard_links_are_read_without_a_question(root: Path, tmp_path: Path) -> None:
    (root / "again.py").hardlink_to(root / "src" / "main.py")
    (tmp_path / "store").write_text("from the store", encoding="utf-8")
    (root / "node_modules" / "p" / "index.js").hardlink_to(tmp_path / "store")
    workspace = Workspace(root)
    assert "hello" in workspace.read_file("again.py")
    assert "again.py:1" in workspace.search("hello")
    assert workspace.read_file("node_modules/p/index.js") == "from the store"


@POSIX
@given(
    steps=st.lists(st.sampled_from(["..", ".", "src", ".git", "folder", "soft", "hard", ".env", "config", "", "up", "chain"]), max_size=6)
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_path_shows_a_secret_unless_the_user_agrees(root: Path, steps: list[str]) -> None:
    """A file that may hold secrets is never shown without the user's consent, whatever path leads to it."""
    if not (root / "soft").is_symlink():
        _links(root)
    workspace = Workspace(root, allow_secret=User(answer=False))
    tools: list[Callable[[str], str]] = [workspace.read_file, workspace.list_files, lambda path: workspace.search(".", path)]
    for tool in tools:
        try:
            assert TOKEN not in tool("/".join(steps))
        except WorkspaceError:
            continue


@POSIX
@pytest.mark.parametrize("has_descriptors", [True, False])
def test_a_folder_that_becomes_a_link_between_check_and_open_opens_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch, has_descriptors: bool
) -> None:
    """The decision is about the opened file: a path that changes after it was resolved is not followed."""
    if not has_descriptors:
        monkeypatch.setattr(files, "_HAS_FOLDER_DESCRIPTORS", False)
    (root / "src" / "config").write_text("harmless", encoding="utf-8")
    workspace = Workspace(root)
    assert workspace.read_file("src/config") == "harmless"

    open_file = Folder.open

    def swapping(folder: Folder, file: Path) -> IO[bytes]:
        (root / "src").rename(root / "was")
        (root / "src").symlink_to(".git")
        return open_file(folder, file)

    monkeypatch.setattr(Folder, "open", swapping)
    with pytest.raises(WorkspaceError, match="cannot be read"):
        workspace.read_file("src/config")


@POSIX
@pytest.mark.parametrize("tool", ["read_file", "search"])
def test_a_file_that_becomes_a_hard_link_between_check_and_open_is_judged_as_opened(
    root: Path, monkeypatch: pytest.MonkeyPatch, tool: str
) -> None:
    (root / "notes").write_text("harmless", encoding="utf-8")

    open_file = Folder.open

    def swapping(folder: Folder, file: Path) -> IO[bytes]:
        if file.name == "notes":
            file.unlink(missing_ok=True)
            file.hardlink_to(root / ".env")
        return open_file(folder, file)

    monkeypatch.setattr(Folder, "open", swapping)
    workspace = Workspace(root)
    with pytest.raises(WorkspaceError, match=r"the same file as \.env|is not searched"):
        workspace.read_file("notes") if tool == "read_file" else workspace.search("harm|PASS", "notes")


def test_the_file_that_is_read_is_the_one_the_user_was_asked_about(root: Path) -> None:
    """A file that takes another's place while the user reads the question is not shown."""

    def slow_user(_: str) -> bool:
        (root / "new").write_text("another secret", encoding="utf-8")
        (root / "new").replace(root / ".env")
        return True

    if os.name != "posix":
        pytest.skip("an open file cannot be replaced on Windows")
    assert Workspace(root, allow_secret=slow_user).read_file(".env") == f"PASSWORD={TOKEN}"


def test_one_question_at_a_time_and_one_for_each_file(root: Path) -> None:
    """Parallel calls ask one question after the other, and once for each file."""
    asking = threading.Lock()
    questions: list[str] = []

    def user(description: str) -> bool:
        assert asking.acquire(blocking=False), "two questions at once"
        questions.append(description)
        threading.Event().wait(0.02)
        asking.release()
        return description == ".env"

    workspace = Workspace(root, allow_secret=user)
    results: list[str] = []

    def read(path: str) -> None:
        try:
            results.append(workspace.read_file(path))
        except WorkspaceError as error:
            results.append(str(error))

    threads = [threading.Thread(target=read, args=(path,)) for path in [".env", ".git/config"] * 5]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(questions) == [".env", ".git/config"]
    assert sum(TOKEN in result for result in results) == 5
    assert sum("does not let you" in result for result in results) == 5


def test_an_interrupted_question_counts_as_no_answer(root: Path) -> None:
    answers: Iterator[bool] = iter([True])

    def user(_: str) -> bool:
        if len(broken) == 0:
            broken.append(True)
            raise WorkspaceError("stopped")
        return next(answers)

    broken: list[bool] = []
    workspace = Workspace(root, allow_secret=user)
    with pytest.raises(WorkspaceError, match="stopped"):
        workspace.read_file(".env")
    assert TOKEN in workspace.read_file(".env")


# .gitignore


def test_ignored_files_are_left_out_unless_they_are_named(root: Path) -> None:
    (root / ".gitignore").write_text("*.log\n/out/\n!keep.log\n", encoding="utf-8")
    (root / ".git" / "info" / "exclude").write_text("private.txt\n", encoding="utf-8")
    (root / "src" / ".gitignore").write_text("!special.log\ngenerated\n", encoding="utf-8")
    (root / "out").mkdir()
    for name in ("a.log", "keep.log", "out/built.txt", "private.txt", "src/special.log", "src/generated", "src/b.log"):
        (root / name).write_text("needle\n", encoding="utf-8")
    workspace = Workspace(root)
    assert workspace.search("needle").splitlines()[:2] == ["keep.log:1: needle", "src/special.log:1: needle"]
    assert workspace.search("needle").count("needle") == 2
    assert "a.log" not in workspace.list_files(recursive=True)
    assert "a.log (7)" in workspace.list_files()
    assert workspace.read_file("a.log") == "needle"
    assert workspace.search("needle", "a.log") == "a.log:1: needle"
    assert workspace.search("needle", "out") == "out/built.txt:1: needle"
    assert Workspace(root / "src").search("needle") == "special.log:1: needle"


NAMES = st.sampled_from(["a", "b", "ab", "a.txt", "b.log", "c d", "é"])
RULES = st.lists(
    st.tuples(
        st.sampled_from(["", "!", "/", "!/"]),
        st.lists(st.sampled_from(["a", "b", "*", "a?", "*.txt", "**", "[ab]", "c d", "é", "a*"]), min_size=1, max_size=3),
        st.sampled_from(["", "/"]),
    )
    .map(lambda parts: parts[0] + "/".join(parts[1]) + parts[2])
    .filter(lambda rule: not rule.endswith("**/")),  # pathspec takes `a/**/` for `a/`, git for the folders in `a`
    max_size=5,
)


@pytest.mark.skipif(shutil.which("git") is None, reason="compares with git")
@given(top=RULES, inner=RULES, exclude=RULES, files=st.lists(st.lists(NAMES, min_size=1, max_size=3).map("/".join), min_size=1, max_size=8))
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_same_files_are_ignored_as_by_git(
    tmp_path_factory: pytest.TempPathFactory, top: list[str], inner: list[str], exclude: list[str], files: list[str]
) -> None:
    """`.gitignore` files, also nested ones, and `.git/info/exclude` exclude the same files as in git."""
    place = tmp_path_factory.mktemp("repository")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for folder in ("info", "objects", "refs"):  # as `git init` makes it, without starting a process
        (place / ".git" / folder).mkdir(parents=True)
    (place / ".git" / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    for name in files:
        try:
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).touch()
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
    (place / ".gitignore").write_text("\n".join(top), encoding="utf-8")
    (place / ".git" / "info" / "exclude").write_text("\n".join(exclude), encoding="utf-8")
    if (place / "a").is_dir():
        (place / "a" / ".gitignore").write_text("\n".join(inner), encoding="utf-8")
    listing = ["git", "-c", "core.quotepath=off", "ls-files", "-z", "--others", "--exclude-standard"]
    done = subprocess.run(listing, cwd=place, check=True, capture_output=True, env=environment)
    listed = Workspace(place).list_files(recursive=True).splitlines()
    assert sorted(line.removesuffix(")").rpartition(" (")[0] for line in listed if not line.startswith("[")) == sorted(
        name for name in done.stdout.decode().split("\0") if name
    )


def test_pathological_rules_take_bounded_time(root: Path) -> None:
    """No `.gitignore` delays a search: matching is linear, and the number of rules is bounded."""
    (root / ("a" * 200)).write_text("needle\n", encoding="utf-8")
    (root / ".gitignore").write_text(
        "*a" * 60 + "b\n" + "[z-a]\n!\n[\n" + "x" * 50_000 + "\n" + "*a*b\n" * (MAX_RULES + 1), encoding="utf-8"
    )
    workspace = Workspace(root)
    assert "needle" in workspace.search("needle")
    assert f"only the first {MAX_RULES:,} lines" in workspace.search("needle")
    (root / ".gitignore").write_bytes(b"\xff\0\n" * 10 + b"[[:foo:]]\n*.log\n")
    (root / "a.log").write_text("needle\n", encoding="utf-8")
    assert "a.log" not in workspace.search("needle")


@POSIX
def test_a_gitignore_that_is_not_a_regular_file_is_skipped(root: Path, tmp_path: Path) -> None:
    os.mkfifo(root / ".gitignore")
    (root / "src" / ".gitignore").symlink_to(tmp_path / "rules")
    (tmp_path / "rules").write_text("*\n", encoding="utf-8")
    assert "main.py" in Workspace(root).search("hello")


@POSIX
def test_file_names_that_are_not_utf_8_are_listed(root: Path) -> None:
    (root / ".gitignore").write_text("*.log\n", encoding="utf-8")
    try:
        (root / os.fsdecode(b"caf\xe9.txt")).write_text("needle\n", encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes UTF-8 alone")
    assert "needle" in Workspace(root).search("needle")
