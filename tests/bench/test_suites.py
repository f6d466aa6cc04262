from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from matchwood.bench import find_suite, list_suites
from matchwood.bench.suite import read_suite
from matchwood.errors import MatchwoodError

GOOD = """
description = "d"
[[indexes]]
index = "scan"
[presets.smoke]
workload = "uniform:smoke"
"""


@pytest.mark.parametrize("name", [each.name for each in list_suites()])
def test_every_suite_has_what_people_expect(name: str) -> None:
    suite = find_suite(name)
    assert suite.description
    assert {"smoke", "small"} <= suite.presets.keys()
    for preset_name, preset in suite.presets.items():
        for case in preset.cases:
            assert suite.rows(preset_name, case)
            assert case.generator(seed=5).seed == 5
        assert preset.cases[0].label or len(preset.cases) == 1


def test_every_index_of_a_suite_exists() -> None:
    from matchwood.index.core.registry import REGISTRY

    named = {spec.index for each in list_suites() for spec in find_suite(each.name).indexes}
    assert named <= REGISTRY.keys() | {"null"}


def test_a_suite_reads_cases_settings_and_restrictions() -> None:
    text = GOOD + 'cases = [{label = "a", n_attributes = 30}, {label = "b", indexes = ["slow"]}]\n'
    text = '[[indexes]]\nindex = "scan"\nlabel = "slow"\nevents = 3\npresets = ["smoke"]\n' + text
    text = text.replace('description = "d"\n', "")
    suite = read_suite("mine", text)
    preset = suite.preset("smoke")
    assert preset.cases[0].generator().parameters()["n_attributes"] == 30
    assert [each.label for each in suite.rows("smoke", preset.cases[0])] == ["slow", "scan"]
    assert [each.label for each in suite.rows("smoke", preset.cases[1])] == ["slow"]
    assert [each.label for each in suite.rows("smoke", preset.cases[0], ("scan",))] == [
        "slow",
        "scan",
    ]


def test_a_suite_may_be_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    assert find_suite(str(path)).name == "mine"
    with pytest.raises(MatchwoodError, match="expected a suite file, found nothing at"):
        find_suite(str(tmp_path / "other.toml"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("description = ", "expected TOML"),
        ("", r"expected \[\[indexes\]\] and \[presets.NAME\]"),
        (GOOD + "colour = 1", "preset 'smoke': expected keys among .* found colour"),
        (GOOD + "cases = [{ colour = 1 }]", "expected parameters among .* found colour"),
        (GOOD + 'cases = [{ indexes = ["x"] }]', "expected names that exist, found x"),
        (GOOD + "cases = [3]", "expected a table for each case, found 3"),
        (GOOD + "repetitions = 0", "expected repetitions >= 1"),
        (GOOD.replace("uniform:smoke", "nothing"), "expected a workload among"),
        (GOOD.replace("workload =", "delete = 0 #"), "expected a workload among"),
        (GOOD.replace('index = "scan"', 'label = "scan"'), "expected also index, found none"),
        (GOOD.replace('"scan"', '"scan"\nbuild = "slowly"'), "expected build = 'bulk' or 'insert'"),
        (GOOD.replace("[presets", '[[indexes]]\nindex = "scan"\n[presets'), "a label of its own"),
        (GOOD.replace('"scan"', '"scan"\npresets = ["tiny"]'), "names that exist, found tiny"),
    ],
)
def test_a_faulty_suite_is_explained(text: str, message: str) -> None:
    with pytest.raises(MatchwoodError, match=message):
        read_suite("mine", text)


def test_unknown_suites_and_presets_are_explained() -> None:
    with pytest.raises(MatchwoodError, match=r"expected a suite among .*scan.* found 'nothing'"):
        find_suite("nothing")
    with pytest.raises(MatchwoodError, match="expected a preset among smoke, small, found 'huge'"):
        find_suite("scan").preset("huge")


def test_listing_suites_needs_no_compiler() -> None:
    code = "import sys, matchwood.bench as b; b.list_suites(); print('numba' in sys.modules)"
    path = str(Path(__file__).parents[2] / "src")
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r}); {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
