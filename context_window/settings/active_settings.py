"""The settings in use, the usage figures counted under them, and the switch to another model in the middle of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from threading import RLock
from typing import Any, TypeAlias

from session.redaction import short

from ..counting.anthropic_options import NO_OPTIONS, RequestOptions
from ..counting.count_clients import ApiClient
from ..counting.counter import AnyCounter
from ..counting.overhead import request_overhead
from ..errors import ModelArgumentError, UnknownModelError
from ..models import describe_model, similar_names
from ..tools import Tool
from .budget import ModelConfig, name_and_limit, read_config
from .context_window import ContextWindow
from .resolved import Settings, resolve_settings
from .usage_snapshot import UsageFigures, UsageSnapshot

LimitsByModel: TypeAlias = tuple[dict[str, str | ModelConfig | None], int | None]
"""The configurations that apply when their model is switched to, by its name; and the limit for all other models."""

Recount: TypeAlias = Callable[[UsageFigures, Settings, Settings], UsageFigures]
"""Converts figures counted under one set of settings to another: (figures, settings they were counted under, new settings)."""


@dataclass(frozen=True, slots=True)
class SettingsSource:
    """The manager's arguments from which settings are resolved, except for the model. None chooses a counter, or means no client."""

    token_counter: AnyCounter | None
    api_client: ApiClient | None
    context_window: ContextWindow
    tools: Sequence[Tool]
    options: RequestOptions

    def resolve(self, model_config: object) -> Settings:
        """Return the settings for a model; see `resolve_settings` for the errors."""
        return resolve_settings(model_config, self.token_counter, self.api_client, self.context_window, self.tools, self.options)


class ActiveSettings:
    """The settings in use.

    Every call reads `current` once and uses that object to its end, so a switch in another thread never mixes two models in one call.
    Figures are stored with `record`, which recounts them if the settings changed meanwhile: `usage` always holds figures under `current`.
    """

    def __init__(self, model_config: object, source: SettingsSource, recount: Recount) -> None:
        """
        Raises:
            UnknownModelError: The model's window is not known and no `max_tokens` is given.
            BudgetError: A limit makes no sense.
        """
        config = read_config(model_config)  # the caller may change its mapping
        self.current = source.resolve(config)
        self.usage = UsageSnapshot()
        self._config = config
        self._source = source
        self._recount = recount
        name, tokens = name_and_limit(config)
        self._configs: dict[str, str | ModelConfig | None] = {} if name is None else {name: config}
        self._unnamed_tokens = tokens if name is None else None
        self._lock = RLock()  # reentrant: a finaliser may call the manager at any time

    def use_model(self, model: str | ModelConfig | Mapping[str, Any]) -> None:
        """Switch to another model; `ContextWindowManager.use_model` has the details, and what it raises."""
        model_config = read_config(model)
        name, config = self._config_of(model_config)

        def with_model(current: Settings, source: SettingsSource) -> tuple[Settings, SettingsSource]:
            settings = source.resolve(config)
            return current if settings.equals(current) else settings, source

        self._switch(with_model)
        self._config = config
        if not isinstance(model_config, str):
            self._configs[name] = config

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of a manager with these settings, for the model in use."""
        source = replace(self._source, options=dict(self._source.options))  # the empty mapping of its default cannot be pickled
        return {"model_config": self._config, **{spec.name: getattr(source, spec.name) for spec in fields(source)}}

    @property
    def limits_by_model(self) -> LimitsByModel:
        """The limits that were given for models by name, and for all others."""
        return dict(self._configs), self._unnamed_tokens

    @limits_by_model.setter
    def limits_by_model(self, limits: LimitsByModel) -> None:
        self._configs, self._unnamed_tokens = dict(limits[0]), limits[1]

    def __repr__(self) -> str:
        name, _ = name_and_limit(self._config)
        budget, window = self.current.budget, self.current.window
        return f"{'no model' if name is None else short(name)}, budget of {budget.tokens:,} tokens, {window!r}"

    def count_tools(self, tools: Sequence[Tool], options: RequestOptions = NO_OPTIONS) -> None:
        """Reserve room for these tools and options, for every model, if they cost more than those reserved so far."""

        def with_tools(current: Settings, source: SettingsSource) -> tuple[Settings, SettingsSource]:
            budget = current.budget
            overhead = request_overhead(budget.counter, tools, budget.frame, budget.model, options)
            if overhead.fixed <= current.overhead.fixed:
                return current, source
            settings = replace(current, overhead=overhead, tools=tools, limits=replace(current.limits, overhead=overhead.fixed))
            return settings, replace(source, tools=tools, options=options)

        self._switch(with_tools)

    def figures(self) -> tuple[Settings, UsageFigures]:
        """Return the settings in use together with the figures counted under them."""
        with self._lock:
            return self.current, self.usage.figures

    def record(self, figures: UsageFigures, settings: Settings) -> None:
        """Store figures that were counted under `settings`, recounted if other settings are in use by now."""
        while True:
            with self._lock:
                current = self.current
                if settings is current:
                    self.usage.replace(figures)
                    return
            figures, settings = self._recount(figures, settings, current), current

    def _switch(self, change: Callable[[Settings, SettingsSource], tuple[Settings, SettingsSource]]) -> None:
        """Replace the settings, their source and the figures together. Repeats if another thread changed one of them meanwhile."""
        while True:  # counting takes long, so it happens outside the lock
            with self._lock:
                current, figures, source = self.current, self.usage.figures, self._source
            settings, new_source = change(current, source)
            if settings is current:
                return
            recounted = self._recount(figures, current, settings)
            with self._lock:
                if current is self.current and figures is self.usage.figures and source is self._source:
                    self.current, self._source = settings, new_source
                    self.usage.replace(recounted)
                    return

    def _config_of(self, model: str | ModelConfig | None) -> tuple[str, str | ModelConfig | None]:
        """Return the model's name and the configuration that applies to it."""
        name, _ = name_and_limit(model)
        if name is None:
            raise ModelArgumentError("name", model, "pass the model's name, or a ModelConfig with one")
        if not isinstance(model, str):
            return name, model
        if name in self._configs:
            return name, self._configs[name]
        description = describe_model(name)
        if description.window is None and description.family == "other":  # a typo must not cost the session its counter
            raise UnknownModelError(name, similar_names(name))
        return name, ModelConfig(name, self._unnamed_tokens)
