"""Files in a folder behind signed URLs."""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from functions.adapters.laptop import object_store
from functions.core import errors

SECRET = b"a secret of at least thirty-two bytes"
PATH = "6a1c/9b2d/original.pdf"


@pytest.fixture
def store(tmp_path: Path) -> object_store.LocalObjectStore:
    return object_store.LocalObjectStore(tmp_path / "storage", SECRET, "http://127.0.0.1:8000/", max_bytes=10)


def token_of(url: str) -> str:
    return parse_qs(urlsplit(url).query)["token"][0]


def upload_token(store: object_store.LocalObjectStore, path: str = PATH) -> str:
    return token_of(store.sign_upload(path).url)


def files_in(store: object_store.LocalObjectStore) -> list[str]:
    return sorted(str(path.relative_to(store._root.parent)) for path in store._root.parent.rglob("*") if path.is_file())


def test_urls_look_like_those_of_supabase(store: object_store.LocalObjectStore) -> None:
    """LIB-3"""
    signed = store.sign_upload(PATH)
    assert (signed.method, signed.headers, signed.expires_in) == ("PUT", {"content-type": "application/pdf"}, 7200)
    address = urlsplit(signed.url)
    assert address.netloc == "127.0.0.1:8000"
    assert address.path == f"/storage/v1/object/upload/sign/documents/{PATH}"
    address = urlsplit(store.sign_download(PATH, "Été & Co.pdf"))
    assert address.path == f"/storage/v1/object/sign/documents/{PATH}"
    assert parse_qs(address.query)["download"] == ["Été & Co.pdf"]


def test_an_uploaded_file_can_be_downloaded(store: object_store.LocalObjectStore, tmp_path: Path) -> None:
    received = store.receive(PATH, upload_token(store), [b"12", b"345"], mime_type="application/pdf")
    assert (received.path, received.size, received.mime_type) == (PATH, 5, "application/pdf")
    assert received.etag == "827ccb0eea8a706c4c34a16891f84e7b"  # printf 12345 | md5sum
    found = store.info(PATH)
    assert found is not None
    assert (found.path, found.size, found.mime_type) == (PATH, 5, "application/pdf")
    store.download(PATH, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"12345"
    assert store.open_signed(PATH, token_of(store.sign_download(PATH, "x.pdf"))).read_bytes() == b"12345"


def test_overwriting_makes_a_new_version(store: object_store.LocalObjectStore) -> None:
    first = store.put(PATH, [b"one"])
    second = store.put(PATH, [b"two"])
    assert first.version != second.version
    assert (store._root / PATH).read_bytes() == b"two"


def test_a_missing_object_is_reported_as_missing(store: object_store.LocalObjectStore, tmp_path: Path) -> None:
    assert store.info(PATH) is None
    with pytest.raises(errors.NotFoundError):
        store.download(PATH, tmp_path / "copy")
    with pytest.raises(errors.NotFoundError):
        store.open_signed(PATH, token_of(store.sign_download(PATH, "x")))
    assert not (tmp_path / "copy").exists()


def test_existing_objects_and_empty_folders_are_removed(store: object_store.LocalObjectStore) -> None:
    store.put(PATH, [b"x"])
    store.put("6a1c/other/original.txt", [b"x"])
    assert store.remove([PATH, "6a1c/none/original.pdf"]) == 1
    assert store.remove([PATH]) == 0
    assert files_in(store) == ["documents/6a1c/other/original.txt"]
    assert not (store._root / "6a1c/9b2d").exists()


def test_an_upload_over_the_limit_is_stopped_and_leaves_nothing(store: object_store.LocalObjectStore) -> None:
    """LIB-4"""
    pieces = iter([b"12345678", b"90A", b"never read"])
    with pytest.raises(errors.TooLargeError):
        store.receive(PATH, upload_token(store), pieces)
    assert list(pieces) == [b"never read"]
    assert files_in(store) == []


def test_an_interrupted_upload_keeps_the_old_object(store: object_store.LocalObjectStore) -> None:
    def broken() -> Iterator[bytes]:
        yield b"half"
        raise ConnectionResetError

    store.put(PATH, [b"old"])
    with pytest.raises(ConnectionResetError):
        store.put(PATH, broken())
    with pytest.raises(errors.InvalidInputError, match="4 of 9 bytes"):
        store.put(PATH, [b"half"], expected_size=9)
    assert files_in(store) == [f"documents/{PATH}"]
    assert (store._root / PATH).read_bytes() == b"old"


def test_concurrent_uploads_to_one_path_are_not_mixed_up(store: object_store.LocalObjectStore) -> None:
    def slowly(letter: bytes) -> object:
        for _ in range(10):
            yield letter
            time.sleep(0.001)

    threads = [Thread(target=store.put, args=(PATH, slowly(letter))) for letter in (b"a", b"b", b"c")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (store._root / PATH).read_bytes() in (b"a" * 10, b"b" * 10, b"c" * 10)
    assert files_in(store) == [f"documents/{PATH}"]


def test_partial_files_of_killed_processes_are_removed_after_a_day(store: object_store.LocalObjectStore) -> None:
    store.put(PATH, [b"x"])
    old, young = store._incoming / "old", store._incoming / "young"
    for file in (old, young):
        file.write_bytes(b"half")
    os.utime(old, (0, 0))
    store.put(PATH, [b"y"])
    assert (old.exists(), young.exists()) == (False, True)


OUTSIDE = ["../x", "a/../../x", "/etc/passwd", "a//b", "a/./b", "", ".", "a/", "a\\..\\b", "a/b\x00", "a/é", "~root/x"]
OUTSIDE += [".incoming/x", "a" * 300, "a/" * 20 + "x", "%2e%2e/x", "a\n"]


@pytest.mark.parametrize("path", OUTSIDE)
def test_paths_cannot_escape_the_folder(store: object_store.LocalObjectStore, path: str) -> None:
    for action in (
        store.sign_upload,
        store.info,
        lambda path: store.put(path, [b"x"]),
        lambda path: store.remove([path]),
    ):
        with pytest.raises(errors.NotFoundError):
            action(path)
    assert files_in(store) == []


def test_links_cannot_escape_the_folder(store: object_store.LocalObjectStore, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "original.pdf").write_bytes(b"private")
    store._root.mkdir(parents=True)
    (store._root / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(errors.NotFoundError):
        store.info("link/original.pdf")


def test_a_token_is_for_one_path_and_one_operation(store: object_store.LocalObjectStore) -> None:
    other = "6a1c/other/original.pdf"
    for path, token in ((other, upload_token(store)), (PATH, token_of(store.sign_download(PATH, "x")))):
        with pytest.raises(errors.NotAllowedError, match="another file or operation"):
            store.receive(path, token, [b"x"])
    with pytest.raises(errors.NotAllowedError, match="another file or operation"):
        store.open_signed(PATH, upload_token(store))


def test_a_token_expires(store: object_store.LocalObjectStore) -> None:
    token = token_of(store.sign_download(PATH, "x", expires_in=-1))
    with pytest.raises(errors.NotAllowedError, match="expired"):
        store.open_signed(PATH, token)


def forged(store: object_store.LocalObjectStore) -> list[str]:
    """Tokens that this server did not sign."""
    body, signature = upload_token(store).split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    later = base64.urlsafe_b64encode(json.dumps({**claims, "exp": claims["exp"] + 9}).encode()).decode().rstrip("=")
    flipped = ("A" if signature[0] != "A" else "B") + signature[1:]
    return [
        f"{later}.{signature}",
        f"{body}.{flipped}",
        f"{body}.",
        body,
        ".",
        "",
        "é.é",
        f"{body}.{signature}.x",
        "a" * 9,
    ]


def test_a_forged_token_is_refused_before_anything_is_read(store: object_store.LocalObjectStore) -> None:
    for token in forged(store):
        pieces = iter([b"x"])
        with pytest.raises(errors.NotAllowedError, match="not valid"):
            store.receive(PATH, token, pieces)
        assert list(pieces) == [b"x"]


def test_a_token_signed_with_another_secret_is_refused(store: object_store.LocalObjectStore, tmp_path: Path) -> None:
    other = object_store.LocalObjectStore(tmp_path, SECRET + b"!", "http://127.0.0.1")
    with pytest.raises(errors.NotAllowedError):
        store.receive(PATH, upload_token(other), [b"x"])


def test_an_unwritable_folder_raises_our_error(store: object_store.LocalObjectStore, tmp_path: Path) -> None:
    (tmp_path / "storage").write_text("a file where the folder should be")
    with pytest.raises(errors.StorageUnavailableError, match="Not a directory"):
        store.put(PATH, [b"x"])


def test_a_path_survives_its_round_trip_through_a_url(store: object_store.LocalObjectStore) -> None:
    path = "A_b-c/1.2/original.md"
    assert unquote(urlsplit(store.sign_upload(path).url).path).endswith(f"/documents/{path}")
