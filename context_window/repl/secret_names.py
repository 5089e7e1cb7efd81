"""Names of files and folders that usually hold secrets: passwords, tokens, private keys.

Data, and `is_secret`, which applies it. Nothing here touches the disk.
"""

from __future__ import annotations

import re
import unicodedata
from fnmatch import translate
from functools import lru_cache
from pathlib import PurePath

FOLDERS = frozenset({".aws", ".azure", ".git", ".gnupg", ".hg", ".kube", ".oci", ".password-store", ".ssh", ".svn"})
"""Folders in which every file counts as secret. Version control is among them: its configuration can hold tokens, and its objects hold
every file ever added."""
FILES = (
    # settings of a program or a deployment
    *(".env", ".env.*", ".env-*", ".env_*", "*.env", ".envrc", ".envrc.*", ".dev.vars", "local.settings.json", "wp-config.php"),
    *("*.tfstate", "*.tfstate.*", "*.tfvars", "*.tfvars.json", ".terraformrc", "terraform.rc"),
    # keys and key stores
    *("*.pem", "*.key", "*.ppk", "*.p8", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.keyring", "*.kdb", "*.kdbx", "*.ovpn"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "ssh_host_*_key"),
    # accounts
    *("credentials", "credentials.*", "credentials*.json", "*credentials.json", ".credentials*", ".git-credentials", ".gitconfig"),
    *("secret.*", "secrets.*", ".secret", ".secrets", ".secrets.*", "client_secret*.json", "auth.json", ".htpasswd", ".vault-token"),
    *("service-account*.json", "service_account*.json", "serviceaccount*.json", "kubeconfig", "kubeconfig.*", "*.kubeconfig"),
    *(".netrc", "_netrc", ".npmrc", ".pypirc", "pip.conf", "pip.ini", ".dockercfg", ".dockerconfigjson", ".databrickscfg", ".clasprc.json"),
    *(".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf", ".s3cfg", ".boto"),
    # histories of commands
    *(".*_history", "*_history", ".histfile", ".*_history-*", "consolehost_history.txt"),
)
"""Patterns for file names, in lower case."""
PATHS = (
    *(".docker/config.json", "gh/hosts.yml", ".config/git/config", ".m2/settings.xml", ".gradle/gradle.properties"),
    *("gcloud/access_tokens.db", "gcloud/credentials.db"),
    *("context-window/history", "context-window/sessions.db"),  # files of this chat
)
"""Ends of paths, in lower case, for files whose names alone are not specific enough."""
CODE = frozenset(
    ".c .cc .cpp .cs .css .go .h .html .java .js .jsx .kt .md .php .py .pyi .rb .rs .rst .swift .ts .tsx".split()  # noqa: SIM905 - a list is longer
)
"""Suffixes of programs and documents. For example, `secrets.py` usually deals with secrets but holds none."""
HARMLESS = (
    *(".example", ".sample", ".template", ".tmpl", ".dist", ".defaults", ".pub"),
    *(".env-example", ".env_example", ".env-sample", ".env_sample", ".env-template", ".env_template"),
)
"""Suffixes of files that are meant to be shared."""
_FILES = re.compile("|".join(map(translate, FILES)))
_PATHS = tuple(f"/{ending}" for ending in PATHS)
_COPY_END = re.compile(
    r"""(
    ~ | [._-](bak|backup|old|orig|save|tmp|copy)[0-9]*  # made by people and editors
    | \.sw[a-p]                                         # by Vim
    | \.[0-9]+ | \.~[0-9]+~                             # numbered, by logrotate and Emacs
    | \ (-\ )?copy(\ ?\(?[0-9]+\)?)? | \ ?\([0-9]+\)     # by file managers and browsers
    )$
    | (?<=\.[a-z0-9]{3})\.txt$ | (?<=\.[a-z0-9]{4})\.txt$  # to pass a filter; `version_history.txt` is not a copy
    """,
    re.VERBOSE,
)
"""Endings that mark a copy of a file. A copy is as secret as its original."""


def is_secret(path: PurePath | str) -> bool:
    """True if a file or folder of this path usually holds secrets.

    Case does not matter, and neither do characters that file systems ignore: `.ENV`, `.env.` and `.env::$DATA` can all open `.env`.

    Args:
        path: The path, without `..`, which would hide folder names.
    """
    text = str(path)
    return _is_secret(text) or (":" in text and _is_secret(text.replace(":", "_")))  # a colon starts a stream only on Windows


@lru_cache(maxsize=1_024)
def _is_secret(path: str) -> bool:
    parts = [_canonical(part) for part in path.replace("\\", "/").split("/")]
    originals = [_original(part) for part in parts]
    if not FOLDERS.isdisjoint(parts) or not FOLDERS.isdisjoint(originals):
        return True
    name = originals[-1]
    if name.endswith(HARMLESS):
        return False
    stem, dot, suffix = name.rpartition(".")
    names = {parts[-1], name, f"{_original(stem)}{dot}{suffix}"}  # the last for `auth copy.json`
    if ".sw" in parts[-1]:
        names.add(name.removeprefix("."))  # Vim hides its copy of `id_rsa` as `.id_rsa.swp`
    if any("/".join((*originals[:-1], variant)).endswith(_PATHS) for variant in names):
        return True
    is_code = PurePath(name).suffix in CODE and name != "wp-config.php" and not name.startswith(".env")
    return not is_code and any(map(_FILES.match, names))


@lru_cache(maxsize=4_096)
def _original(name: str) -> str:
    """Return the name of the original if this is the name of a copy, else the name itself."""
    if len(name) > 2 and name[0] == name[-1] == "#":  # Emacs's copy of an unsaved file
        name = name[1:-1]
    while True:
        end = _COPY_END.search(name)
        if end is None or end.start() == 0:
            return name
        name = name[: end.start()]


@lru_cache(maxsize=4_096)  # most are folder names, which recur for every file
def _canonical(name: str) -> str:
    """Return the name as the most lenient file system compares it.

    HFS+ ignores invisible characters, and many systems ignore case. Windows ignores dots and spaces at the end, and a stream name after a
    colon.
    """
    if not name.isascii():
        name = "".join(character for character in unicodedata.normalize("NFKC", name) if unicodedata.category(character) != "Cf")
    return name.casefold().partition(":")[0].rstrip(". ")
