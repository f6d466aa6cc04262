"""What is written beside shards when all of them are built: routes, what was refused, the manifest.

manifest.json                   the shards, their types and names; without it nothing is built
route_key.npy, route_shard.npy  every home key and its shards, by key
refused.arrow                   subscriptions that were refused, as rows of errors
plan.npz, digests.npy           what the next version is made from (`shards/increments`)
"""

from __future__ import annotations

import json
import shutil
import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from matchwood.errors import EventError, SchemaError
from matchwood.lang.names import is_context
from matchwood.spark.build_tasks import write_refused
from matchwood.spark.columns import both, error_table
from matchwood.spark.fingerprints import Digests
from matchwood.spark.increments import REFUSED, write_digests
from matchwood.spark.shards.homes import Costs
from matchwood.spark.shards.locations import HOMES, MANIFEST, PLAN, ROUTE_FILES
from matchwood.spark.shards.plan import Plan, Sampled


@dataclass(frozen=True)
class Kept:
    """What a version keeps for the next one."""

    key: str
    """The same for all tables that differ in their rows alone."""
    digests: Digests
    plan: Plan
    sampled: Sampled


@dataclass(frozen=True)
class Told:
    """What all shards have in common.

    types     of attributes, as far as they are known before shards are asked
    used      names that subscriptions use, as far as they are known before
    mixed     those of them that are compared with constants of several kinds: they have no type
    attributes  types that the subscriptions' own attributes declare
    """

    id_type: str
    types: Mapping[str, str]
    refused: pa.Table
    attributes: Mapping[str, str] | None = None
    used: Sequence[str] = ()
    mixed: Sequence[str] = ()
    kept: Kept | None = None


def finish(home: Path, reports: list[dict[str, Any]], facts: Told, build: str) -> None:
    """Number the shards, join their routes, then the manifest: without it nothing counts as built.

    home   a folder that has the folders of all shards, or of each the file HOMES alone; of shards
           whose report has `homes` not even that
    build  a name for the whole
    """
    mixed = {*facts.mixed, *[name for each in reports for name in each.get("mixed", ())]}
    types = {name: kind for name, kind in facts.types.items() if name not in mixed}
    for each in reports:
        if each["failed"] is not None:
            raise EventError(each["failed"])
        for name, kind in each["schema"].items():
            if is_context(name) or name in mixed:  # no event has it, or any kind of value
                continue
            if types.setdefault(name, kind) != kind:
                raise SchemaError(
                    f"attribute {name!r}: expected one type, found {types[name]} in one shard and "
                    f"{kind} in another: declare it with schema="
                )
    keys, numbers = [np.empty(0, np.uint64)], [np.empty(0, np.int32)]
    for number, each in enumerate(reports):
        each["shard"]["number"] = number
        homes = each["homes"] if "homes" in each else np.load(home / each["folder"] / HOMES)
        keys.append(homes)
        numbers.append(np.full(len(homes), number, np.int32))
    made = {each["folder"] for each in reports}
    for left in home.glob("shard-*"):
        if left.name not in made:  # of an attempt that Spark gave up
            shutil.rmtree(left, ignore_errors=True)
    key, shard = np.concatenate(keys), np.concatenate(numbers)
    order = np.argsort(key, kind="stable")
    np.save(home / ROUTE_FILES[0], key[order])
    np.save(home / ROUTE_FILES[1], shard[order])
    errors = [error for each in reports for error in each["errors"]]
    once = {(error["id"], error["message"]): error for error in errors}  # copies are refused alike
    write_refused(home / REFUSED, both(facts.refused, error_table(list(once.values()))))
    manifest = {
        "build": build, "id_type": facts.id_type, "types": types,
        "shards": [each["shard"] for each in reports],
        "routes": [checksum(home / name) for name in ROUTE_FILES],
        "filters": [n for n, each in enumerate(reports) if each["tests_filter"]],
        "tests_filter": any(each["tests_filter"] for each in reports),
        "is_copied": any(each["is_copied"] for each in reports),
        "computes": any(each.get("computes") for each in reports),
        "used": sorted({*facts.used, *[name for each in reports for name in each["used"]]}),
        "mixed": sorted(mixed),
        "attributes": None if facts.attributes is None else dict(facts.attributes),
        "key": None if facts.kept is None else facts.kept.key,
    }  # fmt: skip
    if facts.kept is not None:
        write_digests(home, facts.kept.digests)
        write_plan(home / PLAN, facts.kept)
    aside = home / f".{uuid.uuid4().hex}"
    aside.write_text(json.dumps(manifest))
    aside.replace(home / MANIFEST)


def write_plan(file: Path, kept: Kept) -> None:
    """By which rules rows go to shards: later versions use the same."""
    sampled = kept.sampled
    facts = {"types": sampled.types, "bytes": sampled.bytes,
            "column_types": dict(sampled.column_types), "n_shards": kept.plan.n_shards}  # fmt: skip
    np.savez_compressed(
        file, start=kept.plan.start, spread=kept.plan.spread, keys=sampled.costs.keys,
        shares=sampled.costs.shares, facts=np.frombuffer(json.dumps(facts).encode(), np.uint8),
    )  # fmt: skip


def read_plan(file: Path) -> tuple[Plan, Sampled]:
    with np.load(file, allow_pickle=False) as found:
        facts = json.loads(found["facts"].tobytes())
        costs = Costs(found["keys"], found["shares"])
        plan = Plan(facts["n_shards"], found["start"], found["spread"])
    return plan, Sampled(costs, facts["types"], facts["bytes"], facts["column_types"])


def checksum(file: Path) -> int:
    return zlib.crc32(file.read_bytes())
