"""Events as OpenTelemetry's: a log-based event where a logger provider is configured, else an event of the current span.

Names are those of the semantic conventions for generative AI where they have one; what they have no name for is under
`context_window.`. No content goes out, only ids, numbers, and the reasons that the events name.
"""

from __future__ import annotations

import logging
from dataclasses import fields
from re import sub
from typing import TYPE_CHECKING, TypeAlias

from session.door import clean

from .events import SERIOUS, Event

if TYPE_CHECKING:
    from opentelemetry._logs import Logger

logger = logging.getLogger(__name__)

Attributes: TypeAlias = dict[str, str | int | float]

CONVENTIONS = {
    # https://opentelemetry.io/docs/specs/semconv/registry/attributes/gen-ai/
    "session_id": "gen_ai.conversation.id",
    "tokens": "gen_ai.usage.input_tokens",
}
MODEL = "gen_ai.request.model"
OURS = "context_window."


def export(event: Event, model: str | None = None) -> None:
    """Hands the event to OpenTelemetry, where that is there and listens. It costs nobody a turn: what it raises is logged by type.

    Args:
        event: The event.
        model: The model in use, where its name is known.
    """
    try:
        from opentelemetry.trace import get_current_span
    except ImportError:  # a package of the same family, without the API: nothing is configured
        return
    try:
        log = _log()
        if log is not None:
            _emit(log, event, attributes_of(event, model))
        elif (span := get_current_span()).is_recording():
            span.add_event(name_of(event), attributes_of(event, model))
    except Exception as error:  # noqa: BLE001 - another one's package, exporters and all
        logger.error("OpenTelemetry failed on %s: %s", type(event).__name__, type(error).__name__)  # noqa: TRY400 - it may hold content


def name_of(event: Event) -> str:
    """What OpenTelemetry calls the event: `context_window.threshold_crossed`."""
    return OURS + sub(r"(?<=[a-z])(?=[A-Z])", "_", type(event).__name__).lower()


def attributes_of(event: Event, model: str | None = None) -> Attributes:
    """The event's fields by the names of the conventions, else by ours."""
    found: Attributes = {} if model is None else {MODEL: clean(model)}
    found[f"{OURS}stage"] = event.stage
    for field in fields(event):
        value = getattr(event, field.name)
        if field.name == "kinds":
            found.update({f"{OURS}kinds.{kind.replace(' ', '_')}": number for kind, number in value})
        else:
            found[CONVENTIONS.get(field.name, OURS + field.name)] = clean(value) if isinstance(value, str) else value  # exporters encode
    return found


def _log() -> Logger | None:
    """The log that events go to; None where none is configured."""
    from opentelemetry._logs import get_logger_provider

    provider = get_logger_provider()
    if type(provider).__module__.startswith("opentelemetry._logs"):  # the API's own do nothing
        return None
    return provider.get_logger("context_window")


def _emit(log: Logger, event: Event, attributes: Attributes) -> None:
    from opentelemetry._logs import LogRecord, SeverityNumber

    severity = SeverityNumber.WARN if isinstance(event, SERIOUS) else SeverityNumber.INFO
    log.emit(
        LogRecord(severity_number=severity, severity_text=severity.name, body=str(event), attributes=attributes, event_name=name_of(event))
    )
