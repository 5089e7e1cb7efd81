"""Export of events to OpenTelemetry: as log events if a logger provider is configured, else as events of the current span.

Attribute names follow the semantic conventions for generative AI; attributes that these do not define begin with `context_window.`. No
content is exported, only ids, numbers, and the events' reasons.
"""

from __future__ import annotations

import logging
from dataclasses import fields
from re import sub
from typing import TYPE_CHECKING, TypeAlias

from session.sanitize import clean
from session.usage import Usage

from .definitions import SERIOUS, Event, Trimmed

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
    """Export an event, if OpenTelemetry is installed and configured. An exception of its packages is logged by type only."""
    try:
        from opentelemetry.trace import get_current_span
    except ImportError:  # another package with this prefix, without the API: nothing is configured
        return
    try:
        log = _log()
        if log is not None:
            _emit(log, event, attributes_of(event, model))
        elif (span := get_current_span()).is_recording():
            span.add_event(name_of(event), attributes_of(event, model))
    except Exception as error:  # noqa: BLE001 - other people's packages, including any exporter
        logger.error("OpenTelemetry failed on %s: %s", type(event).__name__, type(error).__name__)  # noqa: TRY400 - it may hold content


def name_of(event: Event) -> str:
    """Return the event's name in OpenTelemetry: `context_window.threshold_crossed`."""
    return OURS + sub(r"(?<=[a-z])(?=[A-Z])", "_", type(event).__name__).lower()


def attributes_of(event: Event, model: str | None = None) -> Attributes:
    """Return the event's fields under the names of the conventions, or else under our own."""
    attributes: Attributes = {} if model is None else {MODEL: clean(model)}
    attributes[f"{OURS}stage"] = event.stage
    for field in fields(event):
        value = getattr(event, field.name)
        if field.name == "kinds":
            attributes.update({f"{OURS}kinds.{kind.replace(' ', '_')}": number for kind, number in value})
        elif isinstance(value, Usage):
            counts = {spec.name: getattr(value, spec.name) for spec in fields(value)}
            attributes.update({f"{OURS}{field.name}.{name}": count for name, count in counts.items() if count})
        else:
            attributes[CONVENTIONS.get(field.name, OURS + field.name)] = (
                clean(value) if isinstance(value, str) else value
            )  # exporters encode it as UTF-8
    if isinstance(event, Trimmed):
        attributes[f"{OURS}before"] = event.before
    return attributes


def _log() -> Logger | None:
    """Return the configured logger; None without one."""
    from opentelemetry._logs import get_logger_provider

    provider = get_logger_provider()
    if type(provider).__module__.startswith("opentelemetry._logs"):  # the API's default, which does nothing
        return None
    return provider.get_logger("context_window")


def _emit(log: Logger, event: Event, attributes: Attributes) -> None:
    from opentelemetry._logs import LogRecord, SeverityNumber

    severity = SeverityNumber.WARN if isinstance(event, SERIOUS) else SeverityNumber.INFO
    log.emit(
        LogRecord(severity_number=severity, severity_text=severity.name, body=str(event), attributes=attributes, event_name=name_of(event))
    )
