"""Proof that the tests bite: faults that a change could bring, as patches in `tests/bites/`. A test must catch each of them.

A patch that no longer applies fails here too. Change it with the code, with `git diff -U1`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.resources import as_file, files
from pathlib import Path

import pytest

from tests.support.shared import ROOT

BITES = ROOT / "tests" / "bites"

CAUGHT_BY = {
    "trims_the_last_user_message": "test_system_pinned_frontier.py::test_system_pinned_frontier",
    "orphans_an_output": "test_pairs.py::test_pairs",
    "trims_dialog_before_system_output": "test_priority.py::test_priority",
    "trims_only_categories_over_their_share": "test_fits.py::test_fits",
    "over_trims": "test_work_conserving.py::test_work_conserving",
    "re_counts": "test_counted_once.py::test_counted_once",
    "moves_the_cut_every_turn": "test_sticky.py::test_sticky",
    "loses_a_pinned_item": "test_system_pinned_frontier.py::test_system_pinned_frontier",
    "mutates_its_input": "test_pure.py::test_pure",
    "drops_the_newest_unread_context_first": "test_frontier_steps.py::test_the_oldest_go_first",
    "drops_pinned_unread_context": "test_system_pinned_frontier.py::test_system_pinned_frontier",
    "replaces_the_newest_images": "test_frontier_steps.py::test_the_oldest_go_first",
    "replaces_images_before_unread_context": "test_frontier_steps.py::test_the_oldest_go_first",
    "truncates_keys_of_arguments": "test_recall.py::test_every_placeholder_names_the_id_that_gives_back_what_it_stands_for",
    "truncates_messages_before_outputs": "test_frontier_steps.py::test_each_step_waits_for_the_one_before_it",
    "truncates_calls_before_outputs": "test_frontier_steps.py::test_each_step_waits_for_the_one_before_it",
    "truncates_messages_that_the_window_spares": "test_frontier_steps.py::test_words_of_the_user_stay_if_the_window_says_so",
    "forgets_how_an_item_was_truncated": "test_sticky.py::test_sticky",
    "drops_the_first_message_although_it_is_kept": "test_first_message.py::test_first_message",
    "shrinks_nothing_of_the_frontier": "test_fits.py::test_fits",
    "forgets_the_cost_of_the_line": "test_fits.py::test_fits",
    "forgets_the_cost_of_the_usage_note": "test_fits.py::test_fits",
    "moves_the_usage_note_every_turn": "test_usage_note.py::test_the_line_stays_until_a_trim_makes_room",
    "keeps_the_usage_note_forever": "test_usage_note.py::test_the_model_is_told_when_it_is_due",
    "tells_of_what_a_summary_stands_for": "test_twin.py::test_twin",
    "keeps_reasoning_behind_another_line": "test_twin.py::test_twin",
    "forgets_all_for_one_large_output": "test_extract.py::test_a_large_output_does_not_cost_what_came_before",
    "forgets_what_a_heading_costs": "test_extract.py::test_a_choice_keeps_to_its_room",
    "forgets_the_cost_of_a_digest": "test_extract.py::test_twin",
    "splits_a_response": "test_extract.py::test_a_digest_stands_where_its_first_item_was",
    "puts_a_waiting_call_into_a_digest": "test_strategy_guarantees.py::test_fits",
    "brings_lines_back": "test_extract.py::test_lines_do_not_come_back",
    "forgets_the_cost_of_the_state_note": "test_state_note.py::test_a_note_is_small_and_stays_until_the_next_trim",
    "keeps_an_old_state_note": "test_state_note.py::test_after_trims_the_coder_sees_what_it_works_on",
    "takes_room_for_the_state_note_that_is_not_there": "test_state_note.py::test_a_note_is_small_and_stays_until_the_next_trim",
    "moves_the_state_note_without_a_trim": "test_state_note.py::test_the_note_stays_where_it_is_while_only_new_outputs_are_shortened",
    "forgets_the_growth": "test_auto_window.py::test_a_trim_comes_where_the_formula_says",
    "ignores_pauses": "test_strategy_twin.py::test_twin",
    "takes_repeated_lines_for_news": "test_state_note.py::test_after_trims_the_coder_sees_what_it_works_on",
    "shortens_what_was_recalled": "test_arrivals.py::test_a_large_output_is_small_from_its_first_request_on",
    "forgets_what_the_ends_of_an_output_cost": "test_arrivals.py::test_twin",
    "goes_on_blind": "test_refused_reads.py::test_no_read_is_blind",
    "forgets_the_decisions": "compaction/test_twenty_compactions.py::test_a_block_of_decisions_stays_small_and_keeps_the_newest",
    "shows_a_recall": "gateway/test_gateway_recall.py::test_recalls_are_answered_and_the_client_does_not_see_them",
    "rewrites_a_body_that_fits": "gateway/test_gateway_http.py::test_a_conversation_that_fits_goes_out_byte_for_byte",
    "loses_a_cache_mark": "gateway/test_gateway_clients.py::test_claude_s_client_calls_tools_for_twenty_turns",
    "loses_the_mark_at_the_end": "gateway/test_cache_marks.py::test_every_mark_is_back_on_its_block",
    "sends_a_refused_request_again_as_it_was": "gateway/test_gateway_repairs.py::test_the_client_never_sees_the_refusal",
    "offers_recall_at_times": "gateway/test_gateway_recall.py::test_recalls_are_answered_and_the_client_does_not_see_them",
    "takes_one_message_for_another": (
        "gateway/test_gateway_properties.py::test_a_worker_sends_the_bytes_that_it_would_send_without_having_seen_anything"
    ),
    "writes_a_number_as_another": "gateway/test_body_json.py::test_a_body_is_read_and_written_with_the_same_values",
    "lets_a_browser_page_in": "gateway/test_gateway_http.py::test_a_browser_page_cannot_use_it",
    "moves_the_prefix_of_a_view": "gateway/test_gateway_properties.py::test_every_view_is_valid_and_the_same_in_every_worker",
}
"""Each fault, and the test whose promise it breaks: a property, or a test of the gateway."""


def test_every_patch_is_tried() -> None:
    assert {path.stem for path in BITES.glob("*.patch")} == set(CAUGHT_BY)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The packages and the properties, free to be spoilt."""
    for package in ("context_window", "session"):  # where they are imported from: the suite also runs where only a wheel has them
        with as_file(files(package)) as source:
            shutil.copytree(source, tmp_path / package)
    for name in ("compaction", "gateway", "properties", "support"):
        shutil.copytree(ROOT / "tests" / name, tmp_path / "tests" / name)
    for name in ("tests/__init__.py", "tests/conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def spoil(copy: Path, patch: Path) -> None:
    """Applies the patch, or fails."""
    if git := shutil.which("git"):
        command = [git, "apply", "--verbose", str(patch)]
    elif program := shutil.which("patch"):
        command = [program, "-p1", "-i", str(patch)]
    else:
        pytest.skip("neither git nor patch is installed")
    # In a repository git would take the paths for its own, and skip missing ones.
    done = subprocess.run(
        command, cwd=copy, env={**os.environ, "GIT_CEILING_DIRECTORIES": str(copy.parent)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{patch.name} does not apply any more; renew it:\n{done.stderr}"


QUICK = list({test: fault for fault, test in reversed(CAUGHT_BY.items())}.values())[::12]


@pytest.mark.parametrize("fault", [pytest.param(fault, marks=[] if fault in QUICK else pytest.mark.long) for fault in CAUGHT_BY])
def test_a_property_catches(fault: str, copy: Path) -> None:
    spoil(copy, BITES / f"{fault}.patch")
    test = f"tests/{'' if '/' in CAUGHT_BY[fault] else 'properties/'}{CAUGHT_BY[fault]}"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}  # `-n auto`, for one, is not for it
    # The profile without shrinking: that the fault is found counts here, not its smallest example.
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", "0", test],
        cwd=copy,
        env={**clean, "HYPOTHESIS_PROFILE": "bites", "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )
    message = done.stdout + done.stderr
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, message
    # By an assertion of its own: code that breaks off would be caught by anything.
    assert re.search(rf"^FAILED {re.escape(test)}(\[.*\])? - (assert|AssertionError)", message, re.MULTILINE), message
