"""A path that came from data is never opened, whatever is done to the session: no copy of an image gets back the right to open it."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import os
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from session import FormatError, Image, Message, Session
from session.store import SessionStore
from tests.support.pictures import png


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "it.png"
    path.write_bytes(png())
    return path


OF_IMAGES: dict[str, Callable[[Image], Image]] = {
    "copied": copy.copy,
    "copied deeply": copy.deepcopy,
    "replaced": dataclasses.replace,
    "pickled": lambda image: pickle.loads(pickle.dumps(image)),
    "in another detail": lambda image: dataclasses.replace(image, detail="low"),
    "of another size": lambda image: dataclasses.replace(image, width=None, height=None),
    "with another label": lambda image: dataclasses.replace(image, media_type="image/jpeg"),
    "with its own path": lambda image: dataclasses.replace(image, path=image.path),
}


def _stored(session: Session) -> Session:
    with tempfile.TemporaryDirectory() as folder, SessionStore(Path(folder, "sessions.db")) as store:
        store.save(session)
        return store.load(session.id)


def _merged(session: Session) -> Session:
    other = session.fork()
    other.add_message("user", "more")
    return asyncio.run(session.merge(other))


OF_SESSIONS: dict[str, Callable[[Session], Session]] = {
    "forked": Session.fork,
    "copied": copy.copy,
    "copied deeply": copy.deepcopy,
    "saved": lambda session: Session.from_dict(session.to_dict()),
    "stored": _stored,
    "merged": _merged,
    "viewed": lambda session: Session.from_view(
        ContextWindowManager(context_window=ContextWindow(max_tokens=10_000)).process_session(session)
    ),
    "built anew": lambda session: Session([dataclasses.replace(item) for item in session.items]),
}


def images(session: Session) -> list[Image]:
    return [part for message in session.messages() for part in message.content if isinstance(part, Image)]


@given(st.lists(st.sampled_from(list(OF_IMAGES)), max_size=4), st.lists(st.sampled_from(list(OF_SESSIONS)), max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_no_copy_of_an_image_opens_a_path_that_came_from_data(picture: Path, of_images: list[str], of_sessions: list[str]) -> None:
    """`Image.open_path`: False in every image that exists, so that no copy of one opens a file."""
    part = {"type": "image", "path": str(picture), "media_type": "image/png"}
    item = {"type": "message", "id": "m", "created_at": 1, "role": "user", "content": [part]}
    session = Session.from_dict({"version": 1, "id": "s", "items": [item]})
    (image,) = images(session)
    for step in of_images:
        image = OF_IMAGES[step](image)
    session.add_message("user", ["look", image])
    for step in of_sessions:
        session = OF_SESSIONS[step](session)
    shown = images(session)
    assert len(shown) >= 1
    assert [(one.data, one.path) for one in shown] == [(None, str(picture))] * len(shown)
    assert "base64" not in str(session.to_anthropic_messages())


def test_no_image_that_exists_may_open_its_path(picture: Path) -> None:
    for image in (Image(path=str(picture)), Image(path="gone"), Image(url="u"), Image(path=str(picture), open_path=False)):
        assert image.open_path is False
    assert dataclasses.replace(Image(path="gone"), path=str(picture)).data is None
    assert dataclasses.replace(Image(path="gone"), path=str(picture), open_path=True).data == png()  # asked for explicitly


def test_whether_a_path_was_opened_is_no_part_of_the_value(picture: Path) -> None:
    opened, made = Image(path=str(picture)), Image(data=png(), path=str(picture), open_path=False)
    assert opened == made
    assert hash(opened) == hash(made)
    assert repr(opened) == repr(made)
    assert "open_path" not in str(Session([Message("user", opened)]).to_dict())


@pytest.mark.parametrize("value", [1, "no", None])
def test_the_permission_is_true_or_false(picture: Path, value: object) -> None:
    with pytest.raises(FormatError) as caught:
        Image(path=str(picture), open_path=value)  # type: ignore[arg-type]
    assert caught.value.where == "Image.open_path"


def test_a_view_does_not_change_with_the_file(tmp_path: Path) -> None:
    """A view is a function of the log alone: the file is read once, when the image is made."""
    path = tmp_path / "it.png"
    path.write_bytes(png(5, 5))
    session = Session([Message("user", Image(path=str(path)))])
    before = session.to_anthropic_messages()
    path.write_bytes(png(50, 50))
    assert session.to_anthropic_messages() == before
    path.unlink()
    assert session.to_anthropic_messages() == before


CONVERTERS: dict[str, Callable[[Session], object]] = {
    "anthropic": Session.to_anthropic_messages,
    "openai": Session.to_openai_messages,
    "openai-responses": Session.to_openai_responses,
    "google": lambda session: asyncio.run(session.to_google_contents()),
}


@pytest.mark.parametrize("provider", CONVERTERS)
def test_no_converter_opens_a_file(picture: Path, monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    """Converters open no file: an image that is only a path is sent as a note."""
    session = Session([Message("user", ["look", Image(path=str(picture), open_path=False)])])
    CONVERTERS[provider](session)  # the imports come first

    def refuse(*args: object, **more: object) -> int:
        raise AssertionError(f"opened or looked at {args}")

    with monkeypatch.context() as patched:
        for name in ("open", "stat", "lstat"):
            patched.setattr(os, name, refuse)
        patched.setattr("builtins.open", refuse)
        wire = CONVERTERS[provider](session)
    assert f"[image missing: {picture}]" in str(wire)
