"""Which earlier content the model used at each request, and how much of it a view shows.

1. A step is a request and the response to it. The response uses a term if its texts or calls contain it.
2. A use counts if the term was last seen at least `GAP` items before the request (what came just before, every view shows) and stands in at
   most `COMMON` of the items before it. Each step weighs 1, divided among its uses.
3. Recall is the weight of the used terms that the view shows. Verbatim recall is the same without numbers, and an identifier counts only
   in an original line that is shown whole: a list of all identifiers would be a view that nobody can work with.
4. An edit is blind if it quotes a line, last seen at least `GAP` items before, that the view does not show: the model would have had to
   read the file again. An output is a re-read as far as it repeats lines that the view does not show.
5. The cost of a request: the longest prefix of items equal to the request before at the read price, the rest at the write price.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar

from session.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.units import NONE, Grouping

from .sessions import Recording, tokens_of
from .terms import LINE_TERM_MOST, PIECE, Terms, lines_of, parsed, plain_line, terms_of, text_of

GAP = 6
"""Items between the last sight of a term and a use of it that counts."""
COMMON = 0.15
"""Terms in a larger part of the items are not counted."""
REPEATED = 5
"""Lines that an output must repeat to count as a re-read."""
READ_PRICE, WRITE_PRICE = 0.1, 1.25
"""Prices of a token that the provider's cache has and has not, in parts of the plain price."""
CACHEABLE = 1_024
"""Tokens that a prefix must have to be cached."""

PATH, IDENTIFIER, NUMBER, LINE = KINDS = ("paths", "identifiers", "numbers", "lines")
Term: TypeAlias = tuple[str, str]
"""A kind and a text."""
Value = TypeVar("Value")

_OLD_TEXT = frozenset({"old_string", "old_str", "oldText", "old_text", "old_content", "oldString", "search"})
"""Arguments of edits that quote the file as it is."""
_PATCH = "*** Begin Patch"


# The session


@dataclass(frozen=True, slots=True)
class Step:
    """A request and what its response uses.

    Attributes:
        start: Number of items before the response.
        newest: The first position of what the model has not read yet; with the response before it.
        last_user: The position of the last user message; -1 if there is none.
        uses: Used terms that count.
        quotes: Of each edit: the quoted lines that count.
        known_paths: Of each call that names a path which is in the log: these paths.
        repeated: Of each output of its calls that repeats lines: these lines.
    """

    start: int
    newest: int
    last_user: int
    uses: tuple[Term, ...]
    quotes: tuple[tuple[str, ...], ...]
    known_paths: tuple[tuple[str, ...], ...]
    repeated: tuple[tuple[str, ...], ...]


class Timeline:
    """The steps of a session, and where each term stands.

    Attributes:
        recording: The session.
        steps: Its steps.
        tokens: Tokens by position.
        places: By term, the positions of the items that contain it, in order.
        line_places: By line that can be recognized, the same.
        first_user: The position of the first user message; -1 if there is none.
        plain_cost: The cost of sending the whole log with every request.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.texts = [text_of(item) for item in recording.items]
        self.tokens = [tokens_of(item) for item in recording.items]
        self.terms = [terms_of(text) for text in self.texts]
        self.places: dict[Term, list[int]] = defaultdict(list)
        self.line_places: dict[str, list[int]] = defaultdict(list)
        lines: set[str] = set()
        for place, text in enumerate(self.texts):
            for term in _all_terms(self.terms[place]):
                self.places[term].append(place)
            for line in dict.fromkeys(lines_of(text)):
                self.line_places[line].append(place)
            lines.update(map(plain_line, text.splitlines()))
        self._lines = lines
        self._long_lines = "\n".join(line for line in lines if len(line) > LINE_TERM_MOST)
        self.first_user = next(
            (place for place, item in enumerate(recording.items) if isinstance(item, Message) and item.role == "user"), NONE
        )
        self.steps = tuple(self._steps())
        self.plain_cost = self._plain_cost()

    def is_verbatim(self, line: str) -> bool:
        """True if the line, as `plain_line` returns it, is one of the log's, or a long piece of a line that is longer still."""
        return line in self._lines or (len(line) >= PIECE and line in self._long_lines)

    def _steps(self) -> Iterator[Step]:
        items, breaks = self.recording.items, self.recording.session.response_breaks
        groups = Grouping()
        requests: list[tuple[int, int, int]] = []
        for place, item in enumerate(items):
            if groups.starts_response(item, item.id in breaks):
                requests.append((place, groups.frontier, groups.last_user))
            groups.feed(item, item.id in breaks)
        ends = [start for start, *_ in requests[1:]] + [len(items)]
        for (start, newest, last_user), end in zip(requests, ends, strict=True):
            response = [place for place in range(start, end) if groups.response[place] == start]
            yield self._step(start, newest, last_user, response, range(response[-1] + 1, end))

    def _step(self, start: int, newest: int, last_user: int, response: Sequence[int], after: Iterable[int]) -> Step:
        items = self.recording.items
        spoken = [place for place in response if not isinstance(items[place], Reasoning)]
        used = {term for place in spoken for term in _all_terms(self.terms[place])}
        calls = [place for place in spoken if isinstance(items[place], FunctionCall)]
        quotes = (
            tuple(line for line in dict.fromkeys(quoted_lines(items[place])) if self._is_old(self.line_places.get(line, ()), start))
            for place in calls
        )
        known_paths = (tuple(path for path in sorted(self.terms[place].paths) if self.places[PATH, path][0] < start) for place in calls)
        repeated = (
            tuple(line for line in dict.fromkeys(lines_of(self.texts[place])) if self.line_places[line][0] < start)
            for place in after
            if isinstance(items[place], FunctionCallOutput)
        )
        return Step(
            start,
            newest,
            last_user,
            tuple(sorted(term for term in used if self._counts(term, start))),
            tuple(lines for lines in quotes if lines),
            tuple(paths for paths in known_paths if paths),
            tuple(lines for lines in repeated if len(lines) >= REPEATED),
        )

    def _counts(self, term: Term, start: int) -> bool:
        places = self.places[term]
        return self._is_old(places, start) and sum(place < start for place in places) <= COMMON * start

    @staticmethod
    def _is_old(places: Sequence[int], start: int) -> bool:
        """True if one of the positions is before the request, and none of them shortly before it."""
        before = [place for place in places if place < start]
        return bool(before) and start - before[-1] >= GAP

    def _plain_cost(self) -> float:
        bill = Bill()
        sent: list[tuple[object, int]] = []
        for step in self.steps:
            sent += [(place, self.tokens[place]) for place in range(len(sent), step.start)]
            bill.add(sent)
        return bill.total


def _all_terms(terms: Terms) -> Iterator[Term]:
    for kind in KINDS:
        for text in getattr(terms, kind):
            yield kind, text


def is_verbatim_kind(term: Term) -> bool:
    """True if the term counts for verbatim recall."""
    return term[0] != NUMBER


def quoted_lines(item: Item) -> list[str]:
    """Return the lines of a file that an edit quotes as they were before it. Empty for any other call."""
    if not isinstance(item, FunctionCall):
        return []
    return [line for text in _old_texts(parsed(item.arguments)) for line in lines_of(text)]


def _old_texts(value: Any, key: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, element in value.items():
            yield from _old_texts(element, name)
    elif isinstance(value, list):
        for element in value:
            yield from _old_texts(element, key)
    elif isinstance(value, str):
        if _PATCH in value:
            patch = value[value.index(_PATCH) :].splitlines()
            yield "\n".join(line[1:] for line in patch if line[:1] in {" ", "-"} and not line.startswith("---"))
        elif key in _OLD_TEXT:
            yield value


# The views


class Bill:
    """The cost of successive requests, in tokens at the plain price.

    Attributes:
        total: The cost so far.
    """

    def __init__(self) -> None:
        self.total = 0.0
        self._last: list[tuple[object, int]] = []

    def add(self, request: Sequence[tuple[object, int]]) -> None:
        """Add a request: of each of its items a value that is equal for equal contents, and the tokens."""
        cached = 0
        for item, last in zip(request, self._last, strict=False):
            if item != last:
                break
            cached += item[1]
        if cached < CACHEABLE:
            cached = 0
        self.total += READ_PRICE * cached + WRITE_PRICE * (sum(tokens for _, tokens in request) - cached)
        self._last = list(request)

    def forget(self) -> None:
        """The provider's cache has expired: nothing of the last request is in it."""
        self._last = []


class Shown(NamedTuple):
    """An item of a view.

    Attributes:
        item: The item. Held so that its `id()` stays its own.
        place: Its position in the log if the view shows it whole; -1 for anything else.
        key: Equal for equal contents.
        tokens: Its tokens.
        terms: Of what is not whole: its terms; the identifiers are only those in verbatim lines.
        identifiers: Of what is not whole: all of its identifiers.
        lines: Of what is not whole: the lines that can be recognized.
    """

    item: Item
    place: int
    key: object
    tokens: int
    terms: Terms = Terms()
    identifiers: frozenset[str] = frozenset()
    lines: frozenset[str] = frozenset()


@dataclass(slots=True)
class Tally:
    """What a policy's views of one session showed, and their cost. Sums over the steps.

    Attributes:
        steps: Steps with a use that counts.
        recall: Recall.
        verbatim_steps: Steps with a use that counts for verbatim recall.
        verbatim: Verbatim recall.
        whole: Recall by items that are shown whole.
        requests: Requests.
        over: Requests larger than the window.
        taskless: Requests without the first user message as it was.
        edits: Edits that quote lines.
        blind: Those of which the view lacks a quoted line.
        path_calls: Calls that name a path in the log.
        pathless: Those of which the view lacks such a path.
        repeats: Outputs that repeat lines.
        reread: Sum of the parts of these lines that the view lacks.
        cost: Cost of all requests, in parts of the cost without a window.
    """

    steps: int = 0
    recall: float = 0.0
    verbatim_steps: int = 0
    verbatim: float = 0.0
    whole: float = 0.0
    requests: int = 0
    over: int = 0
    taskless: int = 0
    edits: int = 0
    blind: int = 0
    path_calls: int = 0
    pathless: int = 0
    repeats: int = 0
    reread: float = 0.0
    cost: float = 0.0


OnRead: TypeAlias = Callable[[Step, Sequence[Shown], Callable[[str], bool], Sequence[Term], int], object]


@dataclass(slots=True)
class Reading:
    """Reads the views that a policy gives of one session.

    Attributes:
        timeline: The session.
        window: The window, in tokens.
        tally: The sums so far.
        on_read: Called with each step and what its view shows: the items, whether a line is shown, the terms that count for verbatim
            recall and that the view lacks, and the number of calls that name a lost path.
    """

    timeline: Timeline
    window: int
    tally: Tally = field(default_factory=Tally)
    on_read: OnRead | None = None
    _bill: Bill = field(default_factory=Bill)
    _shown: dict[int, Shown] = field(default_factory=dict)
    _places: dict[str, int] = field(default_factory=dict)
    _partial: tuple[list[Shown], Sight] | None = None

    def __post_init__(self) -> None:
        self._places = {item.id: place for place, item in enumerate(self.timeline.recording.items)}

    def read(self, step: Step, view: Sequence[Item]) -> None:
        """Add the view that was sent with the request of a step."""
        shown = [self._shown_of(item) for item in view]
        sight = self._sight(shown)
        tally = self.tally
        tally.requests += 1
        tally.over += sum(item.tokens for item in shown) > self.window
        tally.taskless += self.timeline.first_user not in {NONE, *sight.whole}
        if step.uses:
            tally.steps += 1
            tally.recall += _part(step.uses, self._shows, sight)
            tally.whole += _part(step.uses, self._shows_whole, sight)
        if uses := [term for term in step.uses if is_verbatim_kind(term)]:
            tally.verbatim_steps += 1
            tally.verbatim += _part(uses, self._shows_verbatim, sight)
        for lines in step.quotes:
            tally.edits += 1
            tally.blind += not all(self._shows_line(line, sight) for line in lines)
        paths_lost = sum(not all(self._shows((PATH, path), sight) for path in paths) for paths in step.known_paths)
        tally.path_calls += len(step.known_paths)
        tally.pathless += paths_lost
        for lines in step.repeated:
            tally.repeats += 1
            tally.reread += 1 - _part(lines, self._shows_line, sight)
        self._bill.add([(item.key, item.tokens) for item in shown])
        tally.cost = self._bill.total / self.timeline.plain_cost
        if self.on_read is not None:
            self.on_read(step, shown, lambda line: self._shows_line(line, sight), self._lost(step, sight), paths_lost)

    def lost(self, step: Step, view: Sequence[Item]) -> list[Term]:
        """Return the terms that count for verbatim recall and that the view of this step does not show."""
        return self._lost(step, self._sight([self._shown_of(item) for item in view]))

    def _lost(self, step: Step, sight: Sight) -> list[Term]:
        return [term for term in step.uses if is_verbatim_kind(term) and not self._shows_verbatim(term, sight)]

    def _shown_of(self, item: Item) -> Shown:
        shown = self._shown.get(id(item))
        if shown is None:
            shown = self._shown[id(item)] = self._look_at(item)
        return shown

    def _look_at(self, item: Item) -> Shown:
        text, place = text_of(item), self._places.get(item.id, NONE)
        if place != NONE and text == self.timeline.texts[place]:
            return Shown(item, place, place, tokens_of(item))
        terms = terms_of(text)
        lines = (line for line in text.splitlines() if self.timeline.is_verbatim(plain_line(line)))
        verbatim = terms_of("\n".join(lines)).identifiers
        shown_terms = Terms(terms.paths, verbatim, terms.numbers, terms.lines)
        return Shown(item, NONE, (type(item), text), tokens_of(item), shown_terms, terms.identifiers, frozenset(lines_of(text)))

    def _sight(self, shown: Sequence[Shown]) -> Sight:
        partial = [item for item in shown if item.place == NONE]
        whole = {item.place for item in shown}
        if self._partial is not None and self._partial[0] == partial:
            return self._partial[1]._replace(whole=whole)
        sight = Sight(
            whole,
            {kind: set().union(*(getattr(item.terms, kind) for item in partial)) for kind in KINDS},
            set().union(*(item.identifiers for item in partial)),
            set().union(*(item.lines for item in partial)),
        )
        self._partial = (partial, sight)
        return sight

    def _shows_whole(self, term: Term, sight: Sight) -> bool:
        return not sight.whole.isdisjoint(self.timeline.places[term])

    def _shows_verbatim(self, term: Term, sight: Sight) -> bool:
        return term[1] in sight.terms[term[0]] or self._shows_whole(term, sight)

    def _shows(self, term: Term, sight: Sight) -> bool:
        return self._shows_verbatim(term, sight) or (term[0] == IDENTIFIER and term[1] in sight.identifiers)

    def _shows_line(self, line: str, sight: Sight) -> bool:
        return line in sight.lines or not sight.whole.isdisjoint(self.timeline.line_places[line])


class Sight(NamedTuple):
    """What a view shows.

    Attributes:
        whole: Positions of the items that it shows whole.
        terms: By kind, the terms of all else that it shows; of the identifiers only those in verbatim lines.
        identifiers: All identifiers of all else.
        lines: The lines of all else.
    """

    whole: set[int]
    terms: Mapping[str, set[str]]
    identifiers: set[str]
    lines: set[str]


def _part(values: Sequence[Value], is_shown: Callable[[Value, Sight], bool], sight: Sight) -> float:
    """Return the part of the values that are shown."""
    return sum(is_shown(value, sight) for value in values) / len(values)
