"""Imports go one way: each layer may use itself and those before it, never those after it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from parsed import tree_of

pytestmark = pytest.mark.xdist_group("layers")  # one process parses all files

SRC = Path(__file__).parents[1] / "src"

# The order of the layers; those in one tuple stand side by side.  FACADE is matchwood/__init__.py,
# the public names of the library: it sees the engine, and not Spark, benchmarks or commands.
FACADE = "matchwood"
ORDER: list[tuple[str, ...]] = [
    ("errors",),
    ("kernel",),
    ("lang",),
    ("forms", "rules"),
    ("encode",),
    ("index",),
    ("context",),
    ("engine",),
    (FACADE,),
    ("workload",),
    ("spark",),
    ("bench",),
    ("cli",),
    ("__main__",),
]
# Modules that subclass what an extra brings; they are imported on demand themselves.
SUBCLASSES = {"matchwood.spark.source", "matchwood.spark.log_source"}
RANK = {layer: rank for rank, layers in enumerate(ORDER) for layer in layers}


def layer_of(module: str) -> str:
    """`matchwood.lang.nodes` -> `lang`; `matchwood` itself -> the facade."""
    return [*module.split("."), FACADE][1]


def modules_under(src: Path) -> dict[str, Path]:
    names = {}
    for path in sorted(src.glob("matchwood/**/*.py")):
        parts = list(path.relative_to(src).with_suffix("").parts)
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def statements(path: Path) -> Iterator[ast.AST]:
    """The statements of a file, also those inside others; no expressions, which most nodes are."""
    inner = list(tree_of(path).body)
    while inner:
        node = inner.pop()
        yield node
        for blocks in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner += getattr(node, blocks, ())


def imported(module: str, path: Path, known: set[str]) -> Iterator[tuple[int, str]]:
    """Line and target of every import of ours in a file: at the top, inside functions, for types.

    Imports that only the type checker sees count too: they tie the reader to a later layer just
    as well.  So do `import_module("matchwood...")` calls.
    """
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    has_calls = re.search("import_module|__import__", path.read_text(encoding="utf-8"))
    for node in ast.walk(tree_of(path)) if has_calls else statements(path):
        targets: list[str] = []
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join(above + ([base] if base else []))
            # `from matchwood import errors` is about the module errors, not about the facade.
            names = [f"{base}.{alias.name}" for alias in node.names]
            targets = [name if name in known else base for name in names]
        elif isinstance(node, ast.Call) and _called(node.func) in {"import_module", "__import__"}:
            texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            targets = [text for text in texts if isinstance(text, str)]
        for target in targets:
            if target.split(".")[0] == "matchwood":
                yield node.lineno, target


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def violations(src: Path) -> list[str]:
    modules = modules_under(src)
    # Every layer is known even before its first file exists.
    known = set(modules) | {f"matchwood.{layer}" for layer in RANK}
    found = []
    for module, path in modules.items():
        layer = layer_of(module)
        if layer not in RANK:
            found.append(f"{module}: the layer {layer!r} has no place in ORDER")
            continue
        for line, target in imported(module, path, known):
            there = layer_of(target)
            if RANK.get(there, len(ORDER)) > RANK[layer]:
                found.append(f"{path.relative_to(src)}:{line}: {layer} imports {there} ({target})")
    return found


def test_every_import_goes_to_its_own_layer_or_an_earlier_one() -> None:
    assert violations(SRC) == []


KERNEL_MAY_IMPORT = {
    "__future__",
    "math",
    "typing",
    "numpy",
    "numba",
    "matchwood.kernel.jit",
    "matchwood.kernel.bound",
    "matchwood.kernel.byte_search",
    "matchwood.kernel.chains",
    "matchwood.kernel.memory",
    "matchwood.kernel.objects",
}

# Which files hold kernels: those whose name ends in _kernels, and in the folder of one structure
# those named here; pyproject.toml has the same lists.
STRUCTURES = {
    "scan": "match",
    "be_tree": "change check_layout cut delete insert match nodes rank takedown",
    "pst": (
        "access ahead bloom_build bloom_change bloom_check_layout bloom_match entries hash_build "
        "hash_change hash_match keys records signatures space_hash spaces"
    ),
    "a_tree": "blocks check_layout delete insert levels links match nodes renumber search share",
    "vcr": "activate change decompose match",
    "blocks": (
        "check_layout cluster codes entries groups match match_best match_groups match_sets "
        "members pack reach verify words"
    ),
    "terms": "check_layout leaves match odds pieces split words",
}
KERNEL_FILES = {
    f"matchwood.index.{folder}.{name}"
    for folder, names in STRUCTURES.items()
    for name in names.split()
}
DECORATORS = {"kernel", "kernel_with_gil", "part", "inlined"}


def is_kernel_file(module: str) -> bool:
    return module.endswith("_kernels") or module in KERNEL_FILES


def test_files_of_kernels_exist_and_hold_some() -> None:
    modules = modules_under(SRC)
    assert set(modules) >= KERNEL_FILES
    for module, path in modules.items():
        tree = tree_of(path)
        has_kernels = any(
            isinstance(node, ast.FunctionDef)
            and DECORATORS & {each.id for each in node.decorator_list if isinstance(each, ast.Name)}
            for node in tree.body
        )
        assert not has_kernels or is_kernel_file(module), f"{module} holds kernels"
        assert has_kernels or module not in KERNEL_FILES, f"{module} holds no kernel"


def test_a_folder_of_a_structure_has_its_page_and_names_without_its_prefix() -> None:
    index = SRC / "matchwood" / "index"
    for folder in [*STRUCTURES, "core", "stabbing", "baselines"]:
        page = ast.get_docstring(ast.parse((index / folder / "__init__.py").read_text()))
        assert page, f"index/{folder}/__init__.py has no docstring"
        for file in (index / folder).glob("*.py"):
            assert not file.stem.startswith(f"{folder}_"), f"{file.name} repeats its folder's name"
    assert [path.name for path in index.glob("*.py")] == ["__init__.py"]


MOST_FILES = 42
"""Files in one folder beyond which a reader needs rooms."""


def test_no_folder_is_one_room_for_everything() -> None:
    for folder in sorted({path.parent for path in SRC.glob("matchwood/**/*.py")}):
        files = list(folder.glob("*.py"))
        assert len(files) <= MOST_FILES, f"{folder.relative_to(SRC)} has {len(files)} files"


def test_a_room_has_its_page_and_names_without_its_prefix() -> None:
    for layer in ("encode", "engine", "spark"):
        for page in sorted((SRC / "matchwood" / layer).glob("*/__init__.py")):
            room = page.parent
            assert ast.get_docstring(tree_of(page)), f"{layer}/{room.name} has no page"
            prefix = f"{room.name.rstrip('s')}_"
            for file in room.glob("*.py"):
                assert not file.stem.startswith(prefix), f"{file.name} repeats its room's name"


def test_files_that_texts_name_exist() -> None:
    """`x.py` and `x_kernels` in a comment or docstring name a file, or a function that is there."""
    tops = ("src", "tests", "benchmarks", "examples")
    names = {each.stem for top in tops for each in SRC.parent.joinpath(top).rglob("*.py")}
    texts = {each: each.read_text(encoding="utf-8") for each in SRC.rglob("*.py")}
    defined = {name for text in texts.values() for name in re.findall(r"\bdef (\w+)", text)}
    wrong = []
    for path, text in texts.items():
        files = set(re.findall(r"\b([a-z]\w*)\.py\b", text)) - names
        kernels = set(re.findall(r"\b([a-z]\w*_kernels)\b", text)) - names - defined
        wrong += [(path.name, name) for name in files | kernels]
    assert wrong == []


def test_the_calls_of_the_architecture_page_go_through_files_and_functions_that_exist() -> None:
    """A file of the source, and a name right behind it that is a function of that file."""
    page, package = SRC.parent / "docs" / "architecture.md", SRC / "matchwood"
    walks = [line for line in page.read_text(encoding="utf-8").splitlines() if ".py` " in line]
    for call in ("m.add(", "m.match(", "m.match_many(", "m.set_context(", "spark.match("):
        assert any(line.startswith(f"| `{call}") for line in walks), call
    named = re.findall(r"`([a-z_]+(?:/\w+)+\.py)`(?: `(\w+)`)?", "\n".join(walks))
    assert len([name for _, name in named if name]) > 10
    wrong = []
    for file, name in named:
        path = (SRC.parent if file.startswith("tests/") else package) / file
        if not path.is_file() or (name and f"def {name}(" not in path.read_text(encoding="utf-8")):
            wrong.append((file, name))
    assert wrong == []


def test_kernels_import_only_numpy_the_decorators_and_other_kernels() -> None:
    found = []
    for module, path in modules_under(SRC).items():
        if not is_kernel_file(module):
            continue
        for node in statements(path):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or "."]
            else:
                continue
            found += [
                f"{path.name}:{node.lineno}: {name}"
                for name in names
                if name not in KERNEL_MAY_IMPORT and not is_kernel_file(name)
            ]
    assert found == []


MOST_ARGUMENTS = 8


def long_signatures(path: Path) -> list[str]:
    return [
        node.name
        for node in tree_of(path).body
        if isinstance(node, ast.FunctionDef)
        and DECORATORS & {each.id for each in node.decorator_list if isinstance(each, ast.Name)}
        and len(node.args.args) + len(node.args.kwonlyargs) > MOST_ARGUMENTS
    ]


def test_kernels_take_at_most_eight_arguments() -> None:
    found = {module: long_signatures(path) for module, path in modules_under(SRC).items()}
    assert {module: names for module, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("where", "text", "wrong"),
    [
        ("lang/parser.py", "from matchwood.errors import ParseError", False),
        ("lang/parser.py", "from matchwood import errors", False),
        ("lang/parser.py", "from matchwood.forms.nnf import nnf", True),
        ("lang/parser.py", "import matchwood.engine", True),
        ("lang/parser.py", "from matchwood import attr", True),
        ("lang/parser.py", "from matchwood import forms", True),
        ("lang/parser.py", "from ..forms import nnf", True),
        ("lang/parser.py", "from .. import forms", True),
        ("lang/parser.py", "from . import nodes", False),
        ("lang/__init__.py", "from .nodes import And", False),
        ("lang/__init__.py", "from ..errors import ParseError", False),
        ("errors.py", "def late():\n    from matchwood.lang import nodes", True),
        ("errors.py", "if TYPE_CHECKING:\n    import matchwood.lang.nodes", True),
        ("errors.py", "importlib.import_module('matchwood.engine')", True),
        ("spark/batch.py", "import matchwood.bench", True),
        ("bench/runner.py", "import matchwood.spark", False),
        ("engine/matcher.py", "import matchwood.workload", True),
        ("workload/begen.py", "import matchwood.encode.schema", False),
        ("cli/main.py", "import matchwood, matchwood.bench, matchwood.spark", False),
        ("utils.py", "", True),
    ],
)
def test_the_walk_sees_every_way_to_import(
    tmp_path: Path, where: str, text: str, wrong: bool
) -> None:
    for name in ("lang/nodes.py", where):
        path = tmp_path / "matchwood" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    path.write_text(text)
    assert len(violations(tmp_path)) == (1 if wrong else 0)


def declared(project: dict[str, Any]) -> tuple[set[str], set[str]]:
    """Names of the packages that are always there, and of those that an extra brings."""
    name = re.compile(r"[\w-]+")
    core = {name.match(line)[0] for line in project["dependencies"]}
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    return core, {name.match(line)[0] for line in extras}


def test_every_package_that_is_imported_is_declared() -> None:
    project = tomllib.loads((SRC.parent / "pyproject.toml").read_text())["project"]
    core, optional = declared(project)
    found = []
    for module, path in modules_under(SRC).items():
        tree = tree_of(path)
        for node in statements(path):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            else:
                continue
            # What an extra brings is imported on demand: inside functions, or for types.
            is_demanded = node not in tree.body or module in SUBCLASSES
            allowed = core | optional if is_demanded else core
            for package in {name.split(".")[0] for name in names}:
                if package not in {"matchwood", *sys.stdlib_module_names, *allowed}:
                    found.append(f"{module}:{node.lineno}: {package}")
    assert found == []


# numba takes most of a second to import, so it waits for the first match.
HEAVY = ["matplotlib", "numba", "pandas", "polars", "pyspark"]


@pytest.mark.parametrize("module", ["matchwood", "matchwood.spark"])
def test_import_stays_light(module: str) -> None:
    code = f"import sys, {module}; print(*sorted(set({HEAVY}) & set(sys.modules)))"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(SRC)!r}); {code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


NAMED_TUPLES = {"_replace", "_asdict", "_fields", "_make"}
MOST_PRIVATE = 18
"""Private names of the product that tests of behaviour read; may only shrink."""


def private_names(path: Path) -> list[str]:
    """Private attributes that a file reads of anything but `self`."""
    if not re.search(r"\._[a-z]", path.read_text(encoding="utf-8")):
        return []
    return [
        f"{path.name}:{node.lineno}: {node.attr}"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith(("__", "_repr", "_is_owned"))
        and node.attr not in NAMED_TUPLES
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "os", "sys"))
    ]


def test_private_names_are_read_by_the_checks_of_a_layout() -> None:
    tests = Path(__file__).parent
    found = [
        name
        for path in sorted(tests.rglob("*.py"))
        if path.name != "inside.py" and not path.stem.endswith("_checks")
        for name in private_names(path)
    ]
    assert len(found) <= MOST_PRIVATE, "\n".join(found)
