"""Files on a store that only one of two drivers can create.

    s3                 PUT with `If-None-Match: *` (boto3); other stores that speak S3 must know it
    hdfs               written aside and renamed: HDFS does not rename over a file
    gs, abfs, memory   the mode `create` of fsspec's file systems (gcsfs, adlfs): such a PUT

fsspec's own form of that mode asks first and writes then, so a store that does not replace it is
refused: between the two another driver may have written.
"""

from __future__ import annotations

import uuid
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from matchwood.errors import StorageError

_CREATES = {"memory", "s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"}
"""Schemes of fsspec whose file systems create a file in one request."""
_EXISTS = (409, 412)
"""What S3 answers where there is a file, or another request is creating it."""


def create_on(store: Any, path: str, content: bytes, address: str) -> None:
    """Create a file on a store; FileExistsError if there is one, StorageError if the store has no
    such request.

    store, path  pyarrow's file system of an address, and the path on it
    """
    kind = store.type_name
    if kind == "s3":
        _create_s3(path, content, address)
    elif kind == "hdfs":
        aside = f"{path}.{uuid.uuid4().hex}"
        store.create_dir(path.rpartition("/")[0], recursive=True)
        with store.open_output_stream(aside) as file:
            file.write(content)
        _rename_on_hdfs(store, aside, path)
    else:
        _fsspec(store, address).pipe_file(path, content, mode="create")


def _rename_on_hdfs(store: Any, aside: str, path: str) -> None:
    from pyarrow.fs import FileType

    try:
        store.move(aside, path)
    except OSError:
        store.delete_file(aside)
        if store.get_file_info(path).type == FileType.NotFound:
            raise
        raise FileExistsError(path) from None


def _fsspec(store: Any, address: str) -> Any:
    """fsspec's file system for an address, if it creates files in one request."""
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    scheme = address.partition(":")[0].lower()
    if scheme in _CREATES:
        if isinstance(store, PyFileSystem) and isinstance(store.handler, FSSpecHandler):
            return store.handler.fs
        try:
            return import_module("fsspec.core").url_to_fs(address)[0]
        except (ImportError, ValueError) as error:
            raise StorageError(
                f"expected fsspec's package for {scheme!r}, which creates files in one request, "
                f"found none ({error}): install it"
            ) from error
    raise StorageError(
        "expected a store where only one of two drivers can create a file, found the scheme "
        f"{scheme!r}: use s3, gs, abfs or hdfs, or a folder that all workers see"
    )


def _create_s3(path: str, content: bytes, address: str) -> None:
    bucket, _, key = path.partition("/")
    client = _s3_client(address)
    errors = import_module("botocore.exceptions")
    try:
        client.put_object(Bucket=bucket, Key=key, Body=content, IfNoneMatch="*")
    except errors.ClientError as error:
        if error.response["ResponseMetadata"]["HTTPStatusCode"] not in _EXISTS:
            raise OSError(str(error)) from error
        try:
            there = client.get_object(Bucket=bucket, Key=key)["Body"].read()
        except errors.ClientError:
            there = None
        if there != content:  # the same: our own request, which was sent again on the way
            raise FileExistsError(path) from None
    except errors.BotoCoreError as error:
        raise OSError(str(error)) from error


@cache
def _s3_client(address: str) -> Any:
    """A client with what the address says, as pyarrow reads it, and else with boto3's defaults."""
    try:
        boto3 = import_module("boto3")
    except ImportError as error:
        raise StorageError(
            "expected the package boto3, which creates files on S3 in one request, found none: "
            "pip install boto3"
        ) from error
    parts = urlsplit(address)
    options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    given: dict[str, Any] = {}
    if parts.username and parts.password:
        given["aws_access_key_id"] = unquote(parts.username)
        given["aws_secret_access_key"] = unquote(parts.password)
    if "endpoint_override" in options:
        given["endpoint_url"] = f"{options.get('scheme', 'https')}://{options['endpoint_override']}"
    return boto3.client("s3", region_name=options.get("region"), **given)
