"""Names of files and folders that usually hold secrets: passwords, tokens, private keys.

Plain data, and `is_secret`, which reads it. Nothing here touches the disk.
"""

from __future__ import annotations

import re
import unicodedata
from fnmatch import translate
from functools import lru_cache
from pathlib import PurePath

FOLDERS = frozenset({".aws", ".azure", ".git", ".gnupg", ".hg", ".kube", ".oci", ".password-store", ".ssh", ".svn"})
"""Folders of which every file counts as secret. Version control: its configuration holds tokens, its objects every file ever added."""
FILES = (
    # settings of a program or a deployment
    *(".env", ".env.*", "*.env", ".envrc", ".dev.vars", "local.settings.json", "wp-config.php"),
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
    # commands that were typed
    *(".*_history", "*_history", ".histfile", ".*_history-*", "consolehost_history.txt"),
)
"""Patterns for the last part of a path, in lower case."""
PATHS = (
    *(".docker/config.json", "gh/hosts.yml", ".config/git/config", ".m2/settings.xml", ".gradle/gradle.properties"),
    *("gcloud/access_tokens.db", "gcloud/credentials.db"),
    *("context-window/history", "context-window/sessions.db"),  # what this chat keeps
)
"""Last parts of a path whose names alone say too little, in lower case."""
CODE = frozenset(
    ".c .cc .cpp .cs .css .go .h .html .java .js .jsx .kt .md .php .py .pyi .rb .rs .rst .swift .ts .tsx".split()  # noqa: SIM905 - a list is longer
)
"""Suffixes of programs and documents: `secrets.py` is about secrets, and holds none."""
HARMLESS = (".example", ".sample", ".template", ".tmpl", ".dist", ".defaults", ".pub")
"""Suffixes of files that are written to be shown."""
_FILES = re.compile("|".join(map(translate, FILES)))
_PATHS = tuple(f"/{ending}" for ending in PATHS)
COPIES = ("~", ".bak", ".backup", ".old", ".orig", ".save", ".swp", ".swo", ".tmp")
"""Suffixes of copies, which are as secret as their originals."""


def is_secret(path: PurePath | str) -> bool:
    """True if a file or folder of this path usually holds secrets.

    Case does not matter, nor what file systems ignore in a name: `.ENV`, `.env.` and `.env::$DATA` can open `.env`.

    Args:
        path: Without `..`, which would hide the names of folders.
    """
    return _is_secret(str(path))


@lru_cache(maxsize=1_024)
def _is_secret(path: str) -> bool:
    parts = [_canonical(part) for part in path.replace("\\", "/").split("/")]
    if not FOLDERS.isdisjoint(parts):
        return True
    name = parts[-1]
    while name.endswith(COPIES):
        name = next(name.removesuffix(suffix) for suffix in COPIES if name.endswith(suffix))
    if name.endswith(HARMLESS):
        return False
    if "/".join((*parts[:-1], name)).endswith(_PATHS):
        return True
    is_code = PurePath(name).suffix in CODE and name != "wp-config.php" and not name.startswith(".env")
    return not is_code and _FILES.match(name) is not None


@lru_cache(maxsize=4_096)  # most are names of folders, which come again with every file
def _canonical(name: str) -> str:
    """Return the name as the most lenient file system compares it.

    HFS+ ignores invisible characters, case-insensitive systems case, Windows dots and blanks at the end and a stream after a colon.
    """
    if not name.isascii():
        name = "".join(character for character in unicodedata.normalize("NFKC", name) if unicodedata.category(character) != "Cf")
    return name.casefold().partition(":")[0].rstrip(". ")
