"""Parameters of an explainer as in scikit-learn: the arguments of its constructor and the fields of its config."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from sparcets.core.config import Config, check_config
from sparcets.core.errors import ConfigError, quoted
from sparcets.core.registry import did_you_mean
from sparcets.core.settings import MethodConfig
from sparcets.methods import EXPLAINERS

if TYPE_CHECKING:
    from typing_extensions import Self

SEPARATOR = "__"  # between a nested object and its field, as in pipelines of scikit-learn


def _fields_of(config: Config, prefix: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in fields(config):
        name, value = f"{prefix}{SEPARATOR}{field.name}", getattr(config, field.name)
        found[name] = value
        if isinstance(value, Config):
            found |= _fields_of(value, name)
    return found


def _with(config: Config, path: list[str], value: Any) -> Any:
    name, *rest = path
    return replace(config, **{name: _with(getattr(config, name), rest, value) if rest else value})


class Parameters:
    """An object with a ``config``, all of whose parameters can be read, set and cloned."""

    config_class: ClassVar[type[MethodConfig]]
    config: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor by name; if ``deep``, the fields of the config too.

        Examples
        --------
        >>> import sparcets as sp
        >>> from sparcets.testing.mocks import mean_proba
        >>> ex = sp.Nearest(sp.wrap(mean_proba), sp.NearestConfig(candidates=5))
        >>> ex.get_params()["config__candidates"]
        5
        """
        found = {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}
        config: Any = self.config  # may be anything
        return {**found, **_fields_of(config, "config")} if deep and isinstance(config, Config) else found

    def set_params(self, **params: Any) -> Self:
        """Set arguments of the constructor, or fields of the config as ``config__max_series=500``; then fit again.

        Examples
        --------
        >>> import sparcets as sp
        >>> from sparcets.testing.mocks import mean_proba
        >>> ex = sp.Sparce(sp.wrap(mean_proba)).set_params(config__seed=7, config__train__lr=1e-3)
        >>> ex.config.seed, ex.config.train.lr
        (7, 0.001)
        """
        known, own = self.get_params(), self.get_params(deep=False)
        for name in params:
            if name not in known:
                hint = did_you_mean(name, known)
                raise ConfigError(
                    f"{type(self).__name__} has no parameter {quoted(name)}.{hint} get_params() lists them all."
                )
        given = {**own, **{name: value for name, value in params.items() if name in own}}
        if given["config"] is None:
            given["config"] = self.config_class()
        check_settings(given["config"], self)
        for name, value in params.items():
            if name not in own:
                given["config"] = _with(given["config"], name.split(SEPARATOR)[1:], value)
        self.__init__(**given)  # type: ignore[misc]  # unfitted, since the fit belongs to the previous settings
        return self

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted explainer of the same model with the same settings.

        The model is kept as it is, not copied.
        """
        return type(self)(**self.get_params(deep=False))


def check_settings(config: Any, explainer: Parameters) -> None:
    """Raise unless settings belong to a method; the error names the method that they belong to."""
    if isinstance(config, explainer.config_class):
        return
    given = config.__name__ if isinstance(config, type) else type(config).__name__
    takers = {"ClassifierConfig": "sp.TorchClassifier('fcn', config)"}
    for name in EXPLAINERS:
        module, _, method = EXPLAINERS.location(name).partition(":")
        takers[f"{method}Config"] = f"{'sp.' if module.startswith('sparcets.') else ''}{method}(clf, config)"
    check_config(config, explainer.config_class, type(explainer).__name__, instead=takers.get(given, ""))
