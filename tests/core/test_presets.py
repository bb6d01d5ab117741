"""Settings by the name of a preset."""

from dataclasses import replace
from typing import Any

import pytest

from sparcets.core.errors import ConfigError
from sparcets.core.settings import ExplainerConfig, IcsConfig, NearestConfig, SparceConfig, from_preset


def test_presets_are_those_of_the_method() -> None:
    assert from_preset(SparceConfig, "default") == SparceConfig()
    assert from_preset(SparceConfig, "tiny") == SparceConfig.tiny()
    assert from_preset(SparceConfig, "paper", "ups") == SparceConfig.paper(target="ups")
    assert from_preset(ExplainerConfig, "quick", "ups") == replace(ExplainerConfig.quick(), target="ups")


@pytest.mark.parametrize("kind", [ExplainerConfig, IcsConfig, NearestConfig])
def test_a_target_makes_a_method_for_it_alone(kind: Any) -> None:
    assert from_preset(kind, "default", "ups") == kind(target="ups")
    assert from_preset(kind, "tiny", "2").target == 2


@pytest.mark.parametrize(
    ("kind", "preset", "target", "words"),
    [
        (NearestConfig, "paper", "ups", "NearestConfig has no preset 'paper'. Known: default, tiny."),
        (SparceConfig, "paper", None, "the paper trains for one target class"),
        (ExplainerConfig, "paper", "ups", "ExplainerConfig has no preset 'paper'. Known: default, quick, tiny."),
    ],
)
def test_a_preset_or_target_that_is_missing_is_an_error(
    kind: type, preset: str, target: str | None, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        from_preset(kind, preset, target)
    assert words in str(caught.value)
