"""What URIs of buckets name, and that no error and nothing shown of them holds a secret."""

from __future__ import annotations

import pytest
from pyarrow import fs

from tailrace.catalog.values.errors import SQLError
from tailrace.catalog.values.shown_text import shown_text
from tailrace.changefeed.sinks.objects.location import parse_location, redacted_location

S3 = "AWS_ACCESS_KEY_ID=app&AWS_SECRET_ACCESS_KEY=kanari7%2F%2B"
AZURE = "AZURE_ACCOUNT_NAME=app&AZURE_ACCOUNT_KEY=a2FuYXJpNw%3D%3D"
ENDPOINT = "http%3A%2F%2F127.0.0.1%3A1"


@pytest.mark.parametrize(
    ("uri", "path", "client"),
    [
        (f"s3://lake/a/b%20c?{S3}&AWS_ENDPOINT={ENDPOINT}", "lake/a/b c", fs.S3FileSystem),
        (f"S3://lake/a/?{S3}&AWS_REGION=eu-west-1", "lake/a", fs.S3FileSystem),
        ("gs://lake/a?BEARER_TOKEN=kanari7", "lake/a", fs.GcsFileSystem),
        (f"azure://lake/a?{AZURE}&AZURE_ENDPOINT={ENDPOINT}", "lake/a", fs.AzureFileSystem),
        (f"azure-blob://lake/a?{AZURE}", "lake/a", fs.AzureFileSystem),
    ],
)
def test_a_folder_of_a_bucket(uri: str, path: str, client: type) -> None:
    location = parse_location(uri)
    assert location.path == path and not location.implicit
    assert isinstance(location.connect(), client)
    statement = shown_text(f"CREATE CHANGEFEED FOR t INTO '{uri}'")
    for secret in ("kanari7", "a2FuYXJpNw"):
        assert secret not in redacted_location(uri) + repr(location) + location.target + statement


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        (f"s3://lake?{S3}", "the path"),
        (f"s3://lake/../x?{S3}", "the path"),
        (f"s3://app:kanari7@lake/x?{S3}", "the host"),
        (f"s3://lake:80/x?{S3}", "the host"),
        (f"s3://lake/x?{S3}&AWS_ENDPOINT=ftp://h", "AWS_ENDPOINT is"),
        (f"s3://lake/x?{S3}&S3_STORAGE_CLASS=x", "unknown parameter"),
        (f"s3://lake/x?{S3}&AUTH=implicit", "AUTH=implicit excludes"),
        (f"s3://lake/x?{S3}+", "holds a blank"),
        ("s3://lake/x?AWS_SECRET_ACCESS_KEY=kanari7", "credentials are"),
        ("s3://lake/x", "credentials are"),
        ("azure://lake/x?AZURE_ACCOUNT_KEY=kanari7", "AZURE_ACCOUNT_NAME is missing"),
        (f"azure://lake/x?{AZURE}x", "AZURE_ACCOUNT_KEY is no key"),
        (f"azure://lake/x?{AZURE.replace('a2F', 'kanari7!')}", "AZURE_ACCOUNT_KEY is no key"),
        (f"azure://lake/x?{AZURE}&AZURE_CLIENT_SECRET=kanari7", "unknown parameter"),
        ("azure://lake/x?AZURE_ACCOUNT_NAME=app&AUTH=implicit", "not those of the node"),
        ("azure://lake/x?AZURE_ACCOUNT_NAME=app", "credentials are AZURE_ACCOUNT_KEY"),
        ("gs://lake/x?CREDENTIALS=kanari7", "unknown parameter"),
        (f"s3://lake/x?{S3}&file_size=big", "file_size"),
    ],
)
def test_what_is_no_folder_of_a_bucket(uri: str, words: str) -> None:
    with pytest.raises(SQLError, match=words) as told:
        parse_location(uri)
    assert told.value.sqlstate == "22023"
    assert "kanari7" not in f"{told.value.message} {told.value.detail} {told.value.hint}"
