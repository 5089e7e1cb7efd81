"""The note that restates the state of the work after a trim."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hypothesis import event, given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, Message, Session
from context_window.decision.placeholders import unnamed
from context_window.decision.working_state import last_failure, plan_of_work
from context_window.strategies import Extract
from session.identity import is_digest
from session.items import Item, parts_of_item
from session.parts import Text
from tests.support.engine import Engine, lines_of, texts_of
from tests.support.extracting import EXTRACTS, coded_sessions
from tests.support.harness import copy_of
from tests.support.strategic import decided_by
from tests.support.strategies import chosen_limits
from tests.support.twin import cost, responses


@given(st.data())
def test_a_note_is_small_and_stays_until_the_next_trim(data: st.DataObject) -> None:
    """at most .15 of the window, counted, in no view that fills more than .9 of it, at its end; then it stays where it is until the next
    trim"""
    full_log = data.draw(coded_sessions(max_steps=30))
    bounds = decided_by(data.draw(EXTRACTS), data.draw(chosen_limits(sum(map(cost, full_log.items)))))
    log = copy_of(full_log)
    engine = Engine(log, bounds)
    earlier = engine.process(log).plan
    for item in full_log.items:
        log.append(item)
        outcome = engine.process(log)
        note = outcome.plan.state_note
        if note is not None and note.before == len(log):
            assert note.tokens == cost(note.message) <= 0.15 * bounds.trigger
            assert outcome.total <= 0.9 * bounds.trigger
            assert outcome.view.items[-1] is note.message
            assert bounds.drops_thinking or sum(map(cost, outcome.view.items)) <= outcome.total
            event("a note")
        if note != earlier.state_note and earlier.state_note is not None and earlier.state_note.before < len(log) - 1:
            earlier_forms = [(decision.action, decision.lines, decision.reason) for decision in earlier]
            forms = [(decision.action, decision.lines, decision.reason) for decision in outcome.plan]
            read = responses(list(log.items), log.response_breaks)[-1][0]  # what comes later is not read yet
            assert forms[:read] != earlier_forms[:read] or note is None
            event("another note")
        assert sum(is_note(item) for item in outcome.view.items) == (note is not None)
        earlier = outcome.plan


def is_note(item: Item) -> bool:
    return is_digest(item) and item.id.startswith("state-")


def text_of(item: Item) -> str:
    return "\n".join(part.text for part in parts_of_item(item) if isinstance(part, Text))


class Coder:
    """A coder that reads and edits two files, writes plans, and runs tests again and again: most of them pass, one fails."""

    def __init__(self) -> None:
        self.log = Session()
        self.log.add_message("user", "Make the tests pass. You must never edit the tests.\nThe names of the quarters are in the wiki.")
        self.files = {f"src/app{n}.py": [f"    value_{n}_{line} = compute_{line}({line * 7})" for line in range(90)] for n in (1, 2)}

    def call(self, name: str, output: str, **arguments: object) -> None:
        call = self.log.add_function_call(name, arguments)
        self.log.add_function_output(name, output, call.call_id)

    def step(self, number: int) -> None:
        """One step of the work. Each ends where the model is called."""
        path = f"src/app{1 + number // 3 % 2}.py"
        lines = self.files[path]
        match number % 3:
            case 0:
                self.call("read_file", "\n".join(lines), path=path)
                if number % 2:
                    self.call("todo_write", "ok", todos=[{"content": f"Step {number}: mend compute_{number}", "status": "open"}])
            case 1:
                at = number * 5 % len(lines)
                old, lines[at] = lines[at], f"    value_{at} = mended_{number}()"
                self.call("edit_file", "ok", path=path, old_string=old, new_string=lines[at])
            case _:
                names = [f"tests/test_app.py::test_value_{test} PASSED [{test} %] in 0.{number}{test} s" for test in range(60)]
                failure = f"E   ValueError: compute_{number} has no quarter"
                self.call("bash", "\n".join([*names, failure, "FAILED tests/test_app.py::test_quarter"]), command="pytest -v")

    def work(self, manager: ContextWindowManager) -> Iterator[Session]:
        """Take 60 steps, and yield the view of each request."""
        for number in range(60):
            self.step(number)
            yield manager.process_session(self.log)


def manager_of_coder() -> ContextWindowManager:
    return ContextWindowManager(context_window=ContextWindow(max_tokens=14_000, strategy=Extract()))


def test_after_trims_the_coder_sees_what_it_works_on() -> None:
    """The plan, the last failure, the user's rules, and the file read last before an edit are whole; of a digest, at most 5 % are lines of
    tests that passed."""
    coder = Coder()
    notes, digest_lines, passed = set(), 0, 0
    for number, view in enumerate(coder.work(manager_of_coder())):
        seen = "\n".join("\n".join(texts_of(item)) or text_of(item) for item in view.items)
        for section in (plan_of_work(coder.log.items), last_failure(coder.log.items)):
            assert section is None or all(line in seen for line in section.lines)
        assert "You must never edit the tests." in seen
        if number % 3 == 1:
            path = f"src/app{1 + number // 3 % 2}.py"
            assert all(line in seen for line in coder.files[path])
        notes |= {item.id for item in view.items if is_note(item)}
        texts = [part.text for item in view.items if is_digest(item) for part in parts_of_item(item) if isinstance(part, Text)]
        digest_lines += sum(len(lines_of([text])) for text in texts)
        passed += sum(text.count("PASSED") for text in texts)
    assert len(notes) > 3
    assert digest_lines > 500
    assert passed <= 0.05 * digest_lines


def test_the_note_stays_where_it_is_while_only_new_outputs_are_shortened() -> None:
    """Unless something was taken that the model has read, each request begins like the one before: the provider's cache has all of it."""
    coder = Coder()
    window = ContextWindow(max_tokens=14_000, strategy=Extract(), largest_output=0.1)
    manager, earlier, stayed = ContextWindowManager(context_window=window), Session().items, 0
    for number in range(60):
        coder.step(number)
        if number % 3 == 1:
            coder.call("bash", "\n".join(f"line {line} of the listing of step {number}" for line in range(400)), command=f"list {number}")
        view = manager.process_session(coder.log)
        has_note = any(map(is_note, earlier))
        notes = [number for number, item in enumerate(view.items) if is_note(item)]
        if has_note and notes and view.items[notes[0]] in earlier:
            assert view.items[: len(earlier)] == earlier
            stayed += notes[0] < len(earlier) - 1
        earlier = view.items
    assert stayed > 3


def test_a_model_that_cannot_recall_is_told_of_no_ids() -> None:
    coder, manager = Coder(), manager_of_coder()
    view = [*coder.work(manager)][-1]
    (note,) = (item for item in view.items if is_note(item))
    assert any(item.id in text_of(note) for item in coder.log.items)
    bare = unnamed(note)
    assert isinstance(bare, Message)
    assert "recall" not in bare.text
    assert not any(item.id in bare.text for item in coder.log.items)


def test_a_view_with_a_note_is_saved_and_read() -> None:
    coder, manager = Coder(), manager_of_coder()
    view = [*coder.work(manager)][-1]
    assert any(map(is_note, view.items))
    saved = Session.from_dict(json.loads(json.dumps(view.to_dict())))
    assert saved.items == view.items
    assert manager.process_session(saved).items == view.items
