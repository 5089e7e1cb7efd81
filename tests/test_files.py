"""Files that are opened for their bytes: images that a program names, and images that data names in a folder the caller opted in for."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import PIL.Image
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session import FormatError, Image, Message, Session, TranscriptError, files
from session.files import MAX_IMAGE_FILE, Folder, read_image
from session.images import HEIF_BRANDS
from session.providers.media import sniff
from session.transcripts import read_account, read_transcript, read_transcripts
from tests.support.pictures import png

LINKS = pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
PIPES = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
SECRET = png(9, 9)


def encoded(form: str) -> bytes:
    file = io.BytesIO()
    PIL.Image.new("RGB", (5, 4)).save(file, form)
    return file.getvalue()


IMAGES = {form: encoded(form) for form in ("PNG", "JPEG", "GIF", "WEBP")}
HEIF = {brand.decode(): b"\0\0\0\x18ftyp" + brand + bytes(12) for brand in HEIF_BRANDS}


@pytest.fixture(params=["descriptors", "real paths"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to open a file below a folder: by descriptors, and the one for systems that have none for folders."""
    way: str = request.param
    if way == "real paths":
        monkeypatch.setattr(files, "_HAS_FOLDER_DESCRIPTORS", False)
    elif not files._HAS_FOLDER_DESCRIPTORS:
        pytest.skip("this system has no descriptors of folders")
    return way


def data_of(path: str, folder: Path | None) -> bytes | None:
    """The bytes that an image in a saved session has after loading it, its path being this."""
    part = {"type": "image", "path": path, "media_type": "image/png"}
    item = {"type": "message", "id": "m", "created_at": 1, "role": "user", "content": [part]}
    saved = json.loads(json.dumps({"version": 1, "id": "s", "items": [item]}))
    message = Session.from_dict(saved, read_files_below=folder).items[0]
    assert isinstance(message, Message)
    image = message.content[0]
    assert isinstance(image, Image)
    assert image.path == path
    return image.data


# Paths in a program


@pytest.mark.parametrize("data", [*IMAGES.values(), *HEIF.values()], ids=[*IMAGES, *HEIF])
def test_a_program_that_names_an_image_file_gets_its_bytes(tmp_path: Path, data: bytes) -> None:
    """`Image(path=...)`: the file's bytes are read once, at construction."""
    path = tmp_path / "photo.txt"  # the name does not matter
    path.write_bytes(data)
    image = Image(path=str(path))
    path.write_bytes(SECRET)
    assert (image.data, image.path) == (data, str(path))
    assert read_image(path) == SECRET


def test_a_brand_of_heif_that_is_read_is_one_that_is_sent() -> None:
    assert {sniff(data) for data in HEIF.values()} == set(HEIF_BRANDS.values()) == {"image/heic", "image/heif"}


def _nothing(path: Path) -> None:
    pass


def _cut(path: Path) -> None:
    path.write_bytes(png()[:20])


def _text(path: Path) -> None:
    path.write_text("SECRET=1")


def _large(path: Path) -> None:
    path.write_bytes(png())
    os.truncate(path, MAX_IMAGE_FILE + 1)


@pytest.mark.parametrize("make", [_nothing, Path.mkdir, Path.touch, _cut, _text, _large])
def test_what_is_no_image_file_stays_a_reference(tmp_path: Path, way: str, make: Callable[[Path], object]) -> None:
    """`session/files.py`: regular files only, at most 32 MiB, and an image by its first bytes."""
    path = tmp_path / "it.png"
    make(path)
    assert read_image(path) is None
    assert Image(path=str(path)).data is None
    assert data_of("it.png", tmp_path) is None


def test_the_largest_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "it.png"
    path.write_bytes(png())
    os.truncate(path, MAX_IMAGE_FILE)
    assert len(read_image(path) or b"") == MAX_IMAGE_FILE


@pytest.mark.parametrize("path", ["", "a\0b", "\ud800", "x" * 5_000, "/dev/null", "/dev/zero", "/proc/self/environ", "/proc/self/mem", "/"])
def test_a_path_that_leads_to_no_image_is_no_error(path: str, tmp_path: Path, way: str) -> None:
    assert read_image(path) is None
    folder = Path("/") if path.startswith("/") and os.name != "nt" else tmp_path
    with Folder(folder) as opened:
        assert opened.read_image(path) is None


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_must_not_be_read_stays_a_reference(tmp_path: Path) -> None:
    path = tmp_path / "it.png"
    path.write_bytes(png())
    path.chmod(0)
    assert read_image(path) is None
    assert data_of("it.png", tmp_path) is None


@PIPES
def test_a_pipe_is_not_waited_for_and_nothing_is_taken_out_of_it(tmp_path: Path, way: str) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    results: list[object] = []
    reading = threading.Thread(target=lambda: results.extend([read_image(path), data_of("pipe", tmp_path)]), daemon=True)
    reading.start()
    reading.join(10)
    assert results == [None, None]
    with open(os.open(path, os.O_RDWR | os.O_NONBLOCK), "r+b", buffering=0) as pipe:
        pipe.write(IMAGES["GIF"])
        assert read_image(path) is None
        assert data_of("pipe", tmp_path) is None
        assert pipe.read(10_000) == IMAGES["GIF"]


@PIPES
def test_a_writer_is_not_woken_by_a_reader_that_wants_a_file(tmp_path: Path, way: str) -> None:
    """What is no regular file is not even opened: to open a device may already do something."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    woken = threading.Event()

    def write() -> None:
        with contextlib.suppress(OSError), open(path, "wb"):
            woken.set()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    time.sleep(0.05)
    for _ in range(20):
        assert read_image(path) is None
        assert data_of("pipe", tmp_path) is None
    assert not woken.wait(0.05)
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    writer.join(10)


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc to count open files")
def test_no_file_stays_open(tmp_path: Path, way: str) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "it.png").write_bytes(png())
    (tmp_path / "a" / "text.png").write_text("no image")
    before = _open_files()
    for path in ("a/it.png", "a/text.png", "a", "a/gone/it.png", "a/it.png/x", "a\0b", ".."):
        for _ in range(3):
            read_image(tmp_path / path)
            data_of(path, tmp_path)
    assert _open_files() == before


# Paths in data


@given(st.text(max_size=20) | st.sampled_from(["it.png", "./it.png", "/proc/self/environ", "../x", "~/it.png", "file:///it.png"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_a_path_in_data_is_not_opened_unless_the_caller_opts_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    """`Session.from_dict`: no file that the data names is opened, unless `read_files_below` names the folder it is in."""

    def refuse(*args: object, **more: object) -> int:
        raise AssertionError(f"opened or looked at {args}")

    (tmp_path / "it.png").write_bytes(png())
    with monkeypatch.context() as patched:
        patched.chdir(tmp_path)
        for name in ("open", "stat", "lstat"):
            patched.setattr(os, name, refuse)
        assert data_of(path, None) is None


def test_a_path_in_the_folder_is_read_when_the_caller_opts_in(tmp_path: Path, way: str) -> None:
    """Relative paths are resolved against the folder; absolute ones have to lie in it."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    path = tmp_path / "a" / "b" / "it.png"
    path.write_bytes(png(7, 5))
    assert data_of("a/b/it.png", tmp_path) == png(7, 5)
    assert data_of("./a//b/./it.png", tmp_path) == png(7, 5)
    assert data_of(str(path), tmp_path) == png(7, 5)
    assert data_of(str(path), tmp_path / "a") == png(7, 5)
    assert data_of("it.png", tmp_path / "a" / "b" / ".." / "b") == png(7, 5)
    assert data_of(str(path), tmp_path / "a" / "b" / ".." / "b") == png(7, 5)
    assert data_of("it.png", tmp_path / "a") is None


@LINKS
def test_the_folder_itself_may_be_named_by_a_link(tmp_path: Path, way: str) -> None:
    """The folder is the caller's own; links are refused below it."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "it.png").write_bytes(png())
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert data_of("it.png", tmp_path / "link") == png()
    assert data_of(str(tmp_path / "link" / "it.png"), tmp_path / "link") == png()
    assert data_of(str(tmp_path / "real" / "it.png"), tmp_path / "link") == png()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """`in/`, the folder that was opted in for, and beside it images that nothing in it may lead to."""
    inside = tmp_path / "in"
    (inside / "sub").mkdir(parents=True)
    (tmp_path / "in2").mkdir()
    for name in ("secret.png", "in2/secret.png"):
        (tmp_path / name).write_bytes(SECRET)
    (inside / "it.png").write_bytes(png())
    if os.name != "nt":
        (inside / "link.png").symlink_to(tmp_path / "secret.png")
        (inside / "inner.png").symlink_to("it.png")
        (inside / "up").symlink_to("..")
        (inside / "loop").symlink_to("loop")
        with socket.socket(socket.AF_UNIX) as unix, contextlib.suppress(OSError):
            unix.bind(str(inside / "socket"))
    return inside


@pytest.mark.parametrize(
    "path",
    [
        "../secret.png",
        "sub/../../secret.png",
        "sub/../it.png",
        "link.png",
        "inner.png",
        "up/secret.png",
        "up/in/it.png",
        "loop",
        "loop/it.png",
        "socket",
        "sub",
        ".",
        "..",
        "",
        "/",
        "//",
        "it.png\0",
        "it.png/.",
        "it.png/x",
        "\ud800.png",
        "x" * 300,
        "sub/" * 5_000 + "it.png",
        "{folder}2/secret.png",
        "{folder}/../secret.png",
        "{folder}/link.png",
        "/{folder}/it.png2",
        "/proc/self/cwd/it.png",
        "/dev/fd/0",
        "file://{folder}/it.png",
        "~/it.png",
        "C:\\it.png",
        "\\\\server\\share\\it.png",
        "//server/share/it.png",
        "it.png:stream",
    ],
)
def test_a_path_that_leads_out_of_the_folder_stays_a_reference(tree: Path, way: str, path: str) -> None:
    """`..`, absolute paths outside, NUL, links, devices, folders: references, never errors, never hangs."""
    wanted = png() if path == "it.png/." else None  # the same file, spelled otherwise
    assert data_of(path.replace("\0", "\0").format(folder=tree).replace("\ud800", "\ufffd"), tree) == wanted
    with Folder(tree) as folder:
        assert folder.read_image(path.format(folder=tree)) == wanted


PIECES = st.sampled_from(["..", ".", "", "in", "in2", "it.png", "secret.png", "sub", "up", "link.png", "inner.png", "\0", "é", "loop"])


@given(st.lists(PIECES, max_size=6), st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_path_leads_out_of_the_folder(tree: Path, pieces: list[str], absolute: bool) -> None:
    path = "/".join([str(tree), *pieces] if absolute else pieces)
    with Folder(tree) as folder:
        assert folder.read_image(path) in {None, png()}


@LINKS
@pytest.mark.parametrize("swapped", ["file", "folder"])
def test_a_swap_while_the_file_is_opened_lets_nothing_out(tmp_path: Path, swapped: str) -> None:
    """Opened from the folder's descriptor, a component at a time, links refused: there is no moment between a check and its use."""
    if not files._HAS_FOLDER_DESCRIPTORS:
        pytest.skip("this system has no descriptors of folders")
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder, data in ((inside / "sub", png()), (outside, SECRET)):
        folder.mkdir(parents=True)
        (folder / "it.png").write_bytes(data)
    place = inside / "sub" / "it.png" if swapped == "file" else inside / "sub"
    aside, link = tmp_path / "aside", tmp_path / "link"
    link.symlink_to(outside / "it.png" if swapped == "file" else outside)
    over = threading.Event()
    swaps = 0

    def swap() -> None:
        nonlocal swaps
        while not over.is_set():
            place.rename(aside)
            link.rename(place)
            place.rename(link)
            aside.rename(place)
            swaps += 1

    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    outcomes: set[bytes | None] = set()
    try:
        end = time.monotonic() + 20
        with Folder(inside) as opened:
            reads = 0
            while (reads < 5_000 or outcomes != {None, png()}) and time.monotonic() < end:
                outcomes.add(opened.read_image("sub/it.png"))
                reads += 1
    finally:
        over.set()
        thread.join(10)
    assert outcomes == {None, png()}  # both were met, so the swaps came in between
    assert swaps > 100


def test_a_file_that_takes_the_place_of_another_before_it_is_opened_is_looked_at_again(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without descriptors of folders: what was opened must be what the path leads to afterwards, without links."""
    if os.name == "nt":
        pytest.skip("links need a privilege on Windows")
    monkeypatch.setattr(files, "_HAS_FOLDER_DESCRIPTORS", False)
    whole_open = os.open

    def swapping(path: str, *args: int, **more: int) -> int:
        if str(path).endswith("it.png"):
            (tree / "it.png").rename(tree / "aside")
            (tree / "it.png").symlink_to(tree.parent / "secret.png")
            descriptor = whole_open(path, *args, **more)
            (tree / "it.png").unlink()
            (tree / "aside").rename(tree / "it.png")
            return descriptor
        return whole_open(path, *args, **more)

    monkeypatch.setattr(os, "open", swapping)
    assert data_of("it.png", tree) is None


def test_a_file_that_grows_while_it_is_read_stays_a_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "it.png"
    path.write_bytes(png())
    whole_fstat = os.fstat

    def growing(descriptor: int) -> os.stat_result:
        status = whole_fstat(descriptor)
        with path.open("ab") as file:
            file.write(b"more")
        return status

    monkeypatch.setattr(os, "fstat", growing)
    assert read_image(path) is None


def test_an_image_that_was_read_has_the_size_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "it.png").write_bytes(png(7, 5))
    part = {"type": "image", "path": "it.png", "width": 1, "height": 1, "detail": "low"}
    item = {"type": "message", "id": "m", "created_at": 1, "role": "user", "content": [part]}
    message = Session.from_dict({"version": 1, "id": "s", "items": [item]}, read_files_below=tmp_path).items[0]
    assert isinstance(message, Message)
    assert message.content == (Image(data=png(7, 5), path="it.png", width=7, height=5, detail="low"),)


def test_bytes_in_the_data_are_believed_before_a_file(tmp_path: Path) -> None:
    (tmp_path / "it.png").write_bytes(png(7, 5))
    saved = Session([Message("user", Image(data=png(2, 2), path="it.png"), id="m", created_at=1)], id="s").to_dict()
    assert Session.from_dict(saved, read_files_below=tmp_path).to_dict() == saved


def test_a_closed_folder_opens_nothing(tmp_path: Path, way: str) -> None:
    (tmp_path / "it.png").write_bytes(png())
    with Folder(tmp_path) as folder:
        pass
    with pytest.raises(ValueError, match="closed"):
        folder.open("it.png")
    assert folder.read_image("it.png") is None


@pytest.mark.parametrize("name", ["gone", "it.png", "a\0b", ""])
def test_a_folder_that_cannot_be_opened_is_the_callers_error(tmp_path: Path, way: str, name: str) -> None:
    (tmp_path / "it.png").write_bytes(png())
    folder = str(tmp_path / name) if name else ""
    with pytest.raises(FormatError, match=r"^read_files_below: .*is no folder; pass one that exists"):
        Session.from_dict(Session(id="s").to_dict(), read_files_below=folder)


@pytest.mark.parametrize("folder", [3, b"x", True])
def test_a_folder_of_another_type_is_refused(folder: object) -> None:
    """An integer would be taken for an open file by the system's own calls."""
    with pytest.raises(FormatError, match=r"^read_files_below: .*is no folder; pass one that exists"):
        Session.from_dict(Session(id="s").to_dict(), read_files_below=folder)  # type: ignore[arg-type]


# Transcripts


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A saved session that names an image beside it, and one outside its folder."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "it.png").write_bytes(png())
    (tmp_path / "secret.png").write_bytes(SECRET)
    images = [Image(path=path, open_path=False) for path in ("it.png", "../secret.png", str(tmp_path / "secret.png"))]
    path = folder / "session.json"
    path.write_text(json.dumps(Session([Message("user", images)], id="s").to_dict()), encoding="utf-8")
    return path


def bytes_in(session: Session) -> list[bytes | None]:
    return [part.data for message in session.messages() for part in message.content if isinstance(part, Image)]


def test_a_transcript_opens_no_image_by_itself(saved: Path) -> None:
    for session in (read_transcript(saved), *read_transcripts(saved), *read_account(saved).sessions):
        assert bytes_in(session) == [None, None, None]


def test_a_transcripts_images_are_read_in_the_folder_that_was_opted_in_for(saved: Path) -> None:
    folder = saved.parent
    for session in (
        read_transcript(saved, read_files_below=folder),
        *read_transcripts(saved, read_files_below=str(folder)),
        *read_account(saved, read_files_below=folder).sessions,
    ):
        assert bytes_in(session) == [png(), None, None]


def test_a_folder_that_cannot_be_opened_is_told_of_no_transcript(saved: Path) -> None:
    """The fault is the argument's, not the file's."""
    with pytest.raises(FormatError, match=r"^read_files_below: "):
        read_transcript(saved, read_files_below=saved.parent / "gone")
    with pytest.raises(TranscriptError):
        read_transcript(saved.parent / "gone.json", read_files_below=saved.parent)
