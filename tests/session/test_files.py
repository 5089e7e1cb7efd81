"""Opening image files: at paths passed by the program, and at paths in data below a folder that the caller allowed."""

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
    """Run with both ways to open a file below a folder: by descriptors, and by real paths as on Windows."""
    way: str = request.param
    if way == "real paths":
        monkeypatch.setattr(files, "_HAS_FOLDER_DESCRIPTORS", False)
    elif not files._HAS_FOLDER_DESCRIPTORS:
        pytest.skip("this system has no descriptors of folders")
    return way


def data_of(path: str, folder: Path | None) -> bytes | None:
    """Return the bytes of an image with this path after loading a saved session."""
    part = {"type": "image", "path": path, "media_type": "image/png"}
    item = {"type": "message", "id": "m", "created_at": 1, "role": "user", "content": [part]}
    saved = json.loads(json.dumps({"version": 1, "id": "s", "items": [item]}))
    message = Session.from_dict(saved, read_files_below=folder).items[0]
    assert isinstance(message, Message)
    image = message.content[0]
    assert isinstance(image, Image)
    assert image.path == path
    return image.data


# Paths passed by the program


@pytest.mark.parametrize("data", [*IMAGES.values(), *HEIF.values()], ids=[*IMAGES, *HEIF])
def test_image_with_a_path_reads_the_file(tmp_path: Path, data: bytes) -> None:
    """`Image(path=...)`: the file's bytes are read once, at construction."""
    path = tmp_path / "photo.txt"  # the name does not matter
    path.write_bytes(data)
    image = Image(path=str(path))
    path.write_bytes(SECRET)
    assert (image.data, image.path) == (data, str(path))
    assert read_image(path) == SECRET


def test_every_heif_brand_that_is_read_can_be_sent() -> None:
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
def test_a_file_that_is_not_an_image_stays_a_reference(tmp_path: Path, way: str, make: Callable[[Path], object]) -> None:
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
def test_a_path_without_an_image_is_no_error(path: str, tmp_path: Path, way: str) -> None:
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
def test_a_pipe_is_not_opened(tmp_path: Path, way: str) -> None:
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
def test_the_writer_of_a_pipe_is_not_woken(tmp_path: Path, way: str) -> None:
    """Opening a device can have side effects, so it is not opened at all."""
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
def test_every_file_is_closed(tmp_path: Path, way: str) -> None:
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

    def refuse(*args: object, **options: object) -> int:
        raise AssertionError(f"opened or looked at {args}")

    (tmp_path / "it.png").write_bytes(png())
    with monkeypatch.context() as patched:
        patched.chdir(tmp_path)
        for name in ("open", "stat", "lstat"):
            patched.setattr(os, name, refuse)
        assert data_of(path, None) is None


def test_a_path_in_the_folder_is_read_when_the_caller_opts_in(tmp_path: Path, way: str) -> None:
    """Relative paths are resolved against the folder; absolute paths must be in it."""
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
def test_the_folder_itself_may_be_a_link(tmp_path: Path, way: str) -> None:
    """The folder itself is trusted; links below it are refused."""
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "it.png").write_bytes(png())
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert data_of("it.png", tmp_path / "link") == png()
    assert data_of(str(tmp_path / "link" / "it.png"), tmp_path / "link") == png()
    assert data_of(str(tmp_path / "real" / "it.png"), tmp_path / "link") == png()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Create `in/`, the allowed folder, and images outside of it that must stay unreachable."""
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
    wanted = png() if path == "it.png/." else None  # another spelling of the same path
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
def test_swapping_files_during_open_does_not_escape_the_folder(tmp_path: Path, swapped: str) -> None:
    """Each component is opened from its folder's descriptor without following links, so there is no gap between check and use."""
    if not files._HAS_FOLDER_DESCRIPTORS:
        pytest.skip("this system has no descriptors of folders")
    inside, outside = tmp_path / "in", tmp_path / "out"
    for folder, data in ((inside / "sub", png()), (outside, SECRET)):
        folder.mkdir(parents=True)
        (folder / "it.png").write_bytes(data)
    swapped_path = inside / "sub" / "it.png" if swapped == "file" else inside / "sub"
    aside, link = tmp_path / "aside", tmp_path / "link"
    link.symlink_to(outside / "it.png" if swapped == "file" else outside)
    over = threading.Event()
    swaps = 0

    def swap() -> None:
        nonlocal swaps
        while not over.is_set():
            swapped_path.rename(aside)
            link.rename(swapped_path)
            swapped_path.rename(link)
            aside.rename(swapped_path)
            swaps += 1

    thread = threading.Thread(target=swap, daemon=True)
    thread.start()
    outcomes: set[bytes | None] = set()
    try:
        end = time.monotonic() + 60  # a busy machine may give the swapping thread little of its time
        with Folder(inside) as opened:
            reads = 0
            while (reads < 5_000 or swaps <= 100 or outcomes != {None, png()}) and time.monotonic() < end:
                outcomes.add(opened.read_image("sub/it.png"))
                reads += 1
    finally:
        over.set()
        thread.join(10)
    assert outcomes == {None, png()}  # both results occurred, so the swaps did happen in between
    assert swaps > 100


def test_a_file_replaced_before_it_is_opened_is_checked_again(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without folder descriptors, the opened file must be the one at the path afterwards, with no link on the way."""
    if os.name == "nt":
        pytest.skip("links need a privilege on Windows")
    monkeypatch.setattr(files, "_HAS_FOLDER_DESCRIPTORS", False)
    whole_open = os.open

    def swapping(path: str, *args: int, **options: int) -> int:
        if str(path).endswith("it.png"):
            (tree / "it.png").rename(tree / "aside")
            (tree / "it.png").symlink_to(tree.parent / "secret.png")
            descriptor = whole_open(path, *args, **options)
            (tree / "it.png").unlink()
            (tree / "aside").rename(tree / "it.png")
            return descriptor
        return whole_open(path, *args, **options)

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


def test_a_read_image_has_the_size_in_its_header(tmp_path: Path) -> None:
    (tmp_path / "it.png").write_bytes(png(7, 5))
    part = {"type": "image", "path": "it.png", "width": 1, "height": 1, "detail": "low"}
    item = {"type": "message", "id": "m", "created_at": 1, "role": "user", "content": [part]}
    message = Session.from_dict({"version": 1, "id": "s", "items": [item]}, read_files_below=tmp_path).items[0]
    assert isinstance(message, Message)
    assert message.content == (Image(data=png(7, 5), path="it.png", width=7, height=5, detail="low"),)


def test_bytes_in_the_data_take_precedence_over_the_file(tmp_path: Path) -> None:
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
def test_a_folder_that_cannot_be_opened_raises_format_error(tmp_path: Path, way: str, name: str) -> None:
    (tmp_path / "it.png").write_bytes(png())
    folder = str(tmp_path / name) if name else ""
    with pytest.raises(FormatError, match=r"^read_files_below: .*is not a folder; pass one that exists"):
        Session.from_dict(Session(id="s").to_dict(), read_files_below=folder)


@pytest.mark.parametrize("folder", [3, b"x", True])
def test_a_folder_of_another_type_is_refused(folder: object) -> None:
    """The system's calls would take an integer for an open file."""
    with pytest.raises(FormatError, match=r"^read_files_below: .*is not a folder; pass one that exists"):
        Session.from_dict(Session(id="s").to_dict(), read_files_below=folder)  # type: ignore[arg-type]


# Transcripts


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Write a saved session that names an image next to it and one outside its folder."""
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


def test_a_transcripts_images_are_read_from_the_allowed_folder(saved: Path) -> None:
    folder = saved.parent
    for session in (
        read_transcript(saved, read_files_below=folder),
        *read_transcripts(saved, read_files_below=str(folder)),
        *read_account(saved, read_files_below=folder).sessions,
    ):
        assert bytes_in(session) == [png(), None, None]


def test_the_error_for_an_unusable_folder_does_not_blame_the_transcript(saved: Path) -> None:
    """The argument is wrong, not the file."""
    with pytest.raises(FormatError, match=r"^read_files_below: "):
        read_transcript(saved, read_files_below=saved.parent / "gone")
    with pytest.raises(TranscriptError):
        read_transcript(saved.parent / "gone.json", read_files_below=saved.parent)
