"""The terms of a log, and what seeing each of them again is worth to the model.

A term is a path, an identifier, a number of three digits or more, a whole line of 28 characters or more, or a rule: a line of the user's
messages or of the category CONTEXT with a word such as *must* or *never*. A model that goes on with
its work mostly uses terms that it has seen: the path of a file, the name of a function, the line that it is about to change. Which terms
it will use is not known, but past use says much. With the parts of the log that have come so far,

    value = class × (1 + uses) × 2 if a user named it × 2 if a call named it ÷ √((1 + 10 × age ÷ window) × (1 + crowd))

    class   1.6 for a path, 1 for an identifier, 0.2 for a whole line, 0.25 for a number; a million for a rule, which so is chosen first
    uses    calls and texts of the model that had the term
    age     tokens of the log after the last item that had it
    window  tokens above which a view is trimmed
    crowd   terms in that item: a path in a list of 300 is worth less than one named alone

The constants were fitted on recorded sessions, and are flat: another exponent or factor changes little. Only +, ×, ÷ and √ are used,
which every machine rounds alike, so the same log has the same values everywhere.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from math import sqrt
from typing import NamedTuple

from session.identity import is_digest
from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, parts_of_item
from session.json_strings import string_values
from session.parts import Text

from .extracts import Line, lines_of, texts_of
from .tool_rules import RECALL
from .working_state import command_of, names_error, shows_texts

PATH, NAME, LINE, NUMBER, RULE = 1.6, 1.0, 0.2, 0.25, 1e6
"""The value of a term by its class."""
MIN_LINE = 28
"""Characters of a line that is a term itself."""
DECAY = 10
"""Age, in windows, at which a term's value has fallen to less than a third, times ten."""

_WORDS = re.compile(r"[\w./:-]{3,}", re.ASCII)
"""Stretches of text that names are in. Finding these first is faster: a stretch is searched for names only once in a log."""
_PREFIX = re.compile(r"\d+[→\t|:]\s*")
"""A line number, as tools put it before the lines of a file."""
_NAMES = re.compile(r"[A-Za-z_][\w-]*(?:[./:]+[\w-]+)+|[A-Za-z_]\w*(?:-\w+)+|[A-Za-z_]\w{4,}|\b[0-9a-f]{8,}\b|\b\d{3,}\b", re.ASCII)
_COMPOUND = re.compile(r"[_./:\-0-9]|.[A-Z]")
_FILE = re.compile(
    r"\.(?:[chm]|[ch]pp|cc|cfg|conf|cs|css|csv|go|html?|ini|ipynb|java|jsx?|jsonl?|kt|lock|lua|md|php|pyi?|rb|rs|rst|scala|sh|sql|svg|"
    r"swift|toml|tsx?|txt|vue|xml|ya?ml)$"
)


COMMON = 3
"""Number of outputs of commands from which on lines of the same form are worth nothing."""
_DIGITS = re.compile(r"\d+")
_RULE_NAME = "\0"
"""Begins the name of a rule."""
_RULE = re.compile(
    r"\b(?:must|never|don[’']?t|do not|always|only|should|make sure|ensure|instead|avoid|without|prefer|important|needs? to|no longer)\b",
    re.IGNORECASE,
)


class Term:
    """One term of a log, and its use so far.

    Attributes:
        weight: Its class, doubled if a user named it and if a call named it.
        uses: Calls and texts of the model that had it.
        last: Position of the last item that had it.
    """

    __slots__ = ("by_call", "by_user", "last", "uses", "weight")

    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.uses = 0
        self.last = 0
        self.by_user = self.by_call = False


class ItemTerms(NamedTuple):
    """The terms of an item.

    Attributes:
        lines: Its lines (`extracts.py`).
        of_lines: The terms of each line, each once.
        rest: Terms of everything else, which no extract takes away: the name of a call's tool.
    """

    lines: Sequence[Line]
    of_lines: Sequence[Sequence[Term]]
    rest: Sequence[Term]

    def all(self) -> Iterable[Term]:
        """Return all of them, each once, in order."""
        return dict.fromkeys([*self.rest, *(term for terms in self.of_lines for term in terms)])


class TermIndex:
    """The terms of a log that grows. Reads each item once, when it is first asked about a log that has it.

    It is a function of the log alone. What a trim has taken from the view still counts.
    """

    def __init__(self) -> None:
        self._terms: dict[str, Term | None] = {}  # None: a word that is no term
        self._terms_of_words: dict[str, Sequence[Term]] = {}
        self._terms_of_lines: dict[str, Sequence[Term]] = {}
        self._tokens_up_to = array("q")  # by position: tokens of the log up to and with the item
        self._tokens = 0
        self._crowds = array("q")  # by position: number of the item's terms
        self._runs: dict[int, str] = {}  # by position of a command's output: the command
        self._last_runs: dict[str, int] = {}  # by command: position of its last output
        self._recalled: set[int] = set()  # positions of answers to recalls
        self._commands: set[int] = set()  # positions of what commands printed, without what shows texts of others
        self._forms: dict[str, int] = {}  # by form of a line: number of these that have it
        self._states_rules = bytearray()  # by position: 1 if the item's lines may be rules
        self._items: dict[int, ItemTerms] = {}
        self._has_calls = False
        self._follows_answer = False

    def __deepcopy__(self, _memo: object) -> TermIndex:
        """Return an index that has read nothing yet. Reading makes it the same."""
        return TermIndex()

    def read(self, log: Sequence[Item], tokens: Sequence[int], calls: Mapping[int, FunctionCall], visible: Iterable[int]) -> None:
        """Read the log, with the tokens of its items and the calls of its outputs, and remember the terms of the visible ones."""
        items = self._items
        for index in range(self.length, len(log)):
            item = log[index]
            is_result = self._is_result(index)
            is_user = isinstance(item, Message) and item.role == "user" and not (is_digest(item) or is_result)
            self._states_rules.append(is_user or (isinstance(item, Message) and item.category is MessageCategory.CONTEXT))
            items[index] = self._read(index, item)
            self._count_forms(index, item, calls.get(index), is_result=is_result)
            self._crowds.append(self._count_uses(index, item, items[index].all(), is_user=is_user))
            self._tokens += tokens[index]
            self._tokens_up_to.append(self._tokens)
        self._items = {index: items[index] if index in items else self._read(index, log[index]) for index in visible}

    def __getitem__(self, index: int) -> ItemTerms:
        """Return the terms of one of the items that were named to `read`."""
        return self._items[index]

    @property
    def length(self) -> int:
        """Number of items that were read."""
        return len(self._crowds)

    def value(self, term: Term, window: int) -> float:
        """Return the value of a term now."""
        age = self._tokens - self._tokens_up_to[term.last]
        return term.weight * (1 + term.uses) / sqrt((1 + DECAY * age / window) * (1 + self._crowds[term.last]))

    def is_repeated(self, index: int, line: str) -> bool:
        """True if a line of an output is worth nothing: its command ran again later, its form is in many outputs of commands, or it was
        recalled.

        Other lines that name an error are never worth nothing.
        """
        if index in self._recalled:
            return True
        run = self._runs.get(index)
        is_old = run is not None and self._last_runs[run] != index
        is_common = index in self._commands and self._forms.get(form_of(line), 0) >= COMMON
        return (is_old or is_common) and not names_error(line)

    def _count_forms(self, index: int, item: Item, call: FunctionCall | None, *, is_result: bool) -> None:
        """Note what an item repeats; `call` is that of an output."""
        if isinstance(item, FunctionCallOutput) and item.name == RECALL:
            self._recalled.add(index)
        if call is not None and (command := command_of(call)) is not None:
            self._runs[index] = command
            self._last_runs[command] = index
        if is_result or (call is not None and not shows_texts(call)):
            self._commands.add(index)
            texts = texts_of(item)
            for form in {form_of(texts[text][start:end]) for text, start, end in lines_of(texts)}:
                self._forms[form] = self._forms.get(form, 0) + 1

    def _count_uses(self, index: int, item: Item, terms: Iterable[Term], *, is_user: bool) -> int:
        """Note which terms an item has, and return their number."""
        is_call = isinstance(item, FunctionCall)
        is_answer = is_call or (isinstance(item, Message) and item.role == "assistant")
        self._has_calls = self._has_calls or is_call
        self._follows_answer = is_answer
        crowd = 0
        for term in terms:
            crowd += 1
            term.last = index
            term.uses += is_answer
            if is_user and not term.by_user:
                term.by_user, term.weight = True, 2 * term.weight
            if is_call and not term.by_call:
                term.by_call, term.weight = True, 2 * term.weight
        return crowd

    def _is_result(self, index: int) -> bool:
        """True if a message of the user's role here is the result of a command: in a log without calls, it follows an answer."""
        return self._follows_answer and not self._has_calls and index > 2

    def _read(self, index: int, item: Item) -> ItemTerms:
        texts = texts_of(item)
        lines = lines_of(texts)
        of_lines = [self.terms_of(texts[text][start:end]) for text, start, end in lines]
        if self._states_rules[index]:
            rules = (rule_in(texts[text][start:end]) for text, start, end in lines)
            of_lines = [[*terms, *self._terms_named((rule,))] if rule else terms for terms, rule in zip(of_lines, rules, strict=True)]
        rest = [term for text in _other_texts(item, texts) for line in text.split("\n") for term in self.terms_of(line)]
        return ItemTerms(lines, of_lines, list(dict.fromkeys(rest)))

    def terms_of(self, line: str) -> Sequence[Term]:
        """Return the terms of a line, each once."""
        line = without_number(line)
        earlier_terms = self._terms_of_lines.get(line)
        if earlier_terms is not None:
            return earlier_terms
        terms: list[Term] = []
        for word in _WORDS.findall(line):
            of_word = self._terms_of_words.get(word)
            if of_word is None:
                of_word = self._terms_of_words[word] = self._terms_named(_NAMES.findall(word))
            if of_word:
                terms += of_word
        if len(line) >= MIN_LINE:
            terms += self._terms_named((line,))
        terms = self._terms_of_lines[line] = list(dict.fromkeys(terms))
        return terms

    def _terms_named(self, names: Iterable[str]) -> list[Term]:
        """Return the terms with these names, without plain words."""
        by_name = self._terms
        for name in names:
            if name not in by_name:
                weight = weight_of(name)
                by_name[name] = Term(weight) if weight else None
        return [term for name in names if (term := by_name[name]) is not None]


def form_of(line: str) -> str:
    """Return a line without its numbers."""
    return _DIGITS.sub("0", line.strip())


def rule_in(line: str) -> str | None:
    """Return the term that a line is if it is a rule; None if it is none."""
    return f"{_RULE_NAME}{line.strip()}" if _RULE.search(line) else None


def without_number(line: str) -> str:
    """Return a line without the spaces around it, and without the line number that a tool put in front."""
    line = line.strip()
    number = _PREFIX.match(line) if line[:1].isdigit() else None
    return line[number.end() :] if number else line


def weight_of(name: str) -> float:
    """Return the value of a term by its class; 0 for a plain word, which is no term."""
    if name.startswith(_RULE_NAME):
        return RULE
    if len(name) >= MIN_LINE and not _NAMES.fullmatch(name):
        return LINE
    if name.isdigit():
        return NUMBER
    if not _COMPOUND.search(name):
        return 0
    return PATH if "/" in name or _FILE.search(name) else NAME


def _other_texts(item: Item, texts: Sequence[str]) -> list[str]:
    """Return the texts of an item that are not among those that its extracts take lines from."""
    if isinstance(item, FunctionCall):
        return [item.name] if texts else [item.name, *string_values(item.arguments)]
    if isinstance(item, Compaction):
        return [item.summary]
    return [] if texts else [part.text for part in parts_of_item(item) if isinstance(part, Text)]
