"""The wheel as a new user gets it: its size, and what its first calls wait for.

    python benchmarks/wheel.py [--wheel matchwood-*.whl]

Builds a wheel of this clone's last commit, with the kernels of every CPU baseline (minutes), or
takes one that is there; installs it into a new environment, and runs `first_calls.py --strict`
there with an empty home.  Ends with status 1 if a kernel compiles, a call is late, or the wheel
has more than 25 MB.  Needs a package index.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from pathlib import Path, PurePosixPath
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
MOST_MB = 25


def built(folder: Path) -> Path:
    """A wheel of the last commit; files that are not committed have no part in it."""
    clone = folder / "clone"
    git = shutil.which("git") or "git"
    subprocess.run([git, "clone", "--quiet", str(ROOT), str(clone)], check=True)
    began = time.perf_counter()
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    subprocess.run([*pip, "--no-deps", "--wheel-dir", str(folder), str(clone)], check=True)
    print(f"built in {time.perf_counter() - began:.0f} s")
    (wheel,) = folder.glob("*.whl")
    return wheel


def kernels(wheel: Path) -> Counter[str]:
    """How many kernels the wheel has, by baseline."""
    names = [PurePosixPath(name) for name in ZipFile(wheel).namelist()]
    return Counter(name.parts[2] for name in names if name.suffix == ".nbc")


def run_first_calls(wheel: Path, folder: Path) -> int:
    """The status of `first_calls.py --strict` in a new environment, with nothing in its home."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    subprocess.run([*pip, str(wheel)], check=True)
    home = folder / "home"
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
    calls = [str(python), "-I", str(ROOT / "benchmarks" / "first_calls.py"), "--strict"]
    return subprocess.run(calls, env={**kept, "HOME": str(home)}, cwd=home, check=False).returncode


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--wheel", type=Path, help="take this one instead of building it")
    given = options.parse_args().wheel
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = given.resolve() if given else built(folder)
        size = wheel.stat().st_size / 1e6
        listed = ", ".join(f"{n} kernels for {each}" for each, n in kernels(wheel).items())
        print(f"{wheel.name}: {size:.1f} MB, {listed or 'no kernels'}")
        return max(run_first_calls(wheel, folder), int(size > MOST_MB))


if __name__ == "__main__":
    sys.exit(main())
