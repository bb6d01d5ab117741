"""Parameters of explainers, as scikit-learn has them: ``get_params``, ``set_params``, and clones."""

from __future__ import annotations

import inspect
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from sparcets.config.base import Config
from sparcets.errors import ConfigError
from sparcets.registry import did_you_mean

if TYPE_CHECKING:
    from typing_extensions import Self

SEPARATOR = "__"  # between a part and its field, as in pipelines of scikit-learn


class Parameters:
    """The part of every explainer that other libraries read its settings from."""

    classifier: Any
    config: Any
    info_: Any

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
        return {**found, **_fields_of(self.config, "config")} if deep else found

    def set_params(self, **params: Any) -> Self:
        """Set arguments of the constructor, or fields of the config as ``config__starts=2``; then ``fit`` is needed.

        Examples
        --------
        >>> import sparcets as sp
        >>> from sparcets.testing.mocks import mean_proba
        >>> ex = sp.Explainer(sp.wrap(mean_proba)).set_params(config__starts=2, config__train__lr=1e-3)
        >>> ex.config.starts, ex.config.train.lr
        (2, 0.001)
        """
        known, own = self.get_params(), self.get_params(deep=False)
        for name in params:
            if name not in known:
                hint = did_you_mean(name, known)
                raise ConfigError(
                    f"{type(self).__name__} has no parameter {name!r}.{hint} get_params() lists them all."
                )
        given = {**own, **{name: value for name, value in params.items() if name in own}}
        if not isinstance(given["config"], type(self.config)):
            raise ConfigError(f"'config' must be of class {type(self.config).__name__}, got {given['config']!r}.")
        for name, value in params.items():
            if name not in own:
                given["config"] = _with(given["config"], name.split(SEPARATOR)[1:], value)
        self.__init__(**given)  # type: ignore[misc]  # from the start: what other settings fitted must not answer
        return self

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted explainer of the same model with the same settings.

        The model is what is explained, so that it is kept as it is: neither copied nor forgotten.
        """
        return type(self)(**self.get_params(deep=False))


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
