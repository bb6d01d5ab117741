"""Settings of the explainers, one class per method."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sparcets.core.config import Config
from sparcets.core.errors import ConfigError, quoted
from sparcets.core.network_config import (
    AutoTrainConfig,
    CriticConfig,
    DiscriminatorConfig,
    GatedGeneratorConfig,
    GeneratorConfig,
    TrainConfig,
)

if TYPE_CHECKING:
    from typing_extensions import Self


FAMILIES = ("neural", "convolutions", "quantiles", "intervals")  # of models, see :mod:`~sparcets.methods.own`


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodConfig(Config):
    """What every method has.

    ``neutral`` names the fields (of parts, with a dot) that change neither the fitted state nor the answers, or by
    rounding only; every other field does, and a test over the registry shows it.
    """

    neutral: ClassVar[frozenset[str]] = frozenset({"batch_size", "device"})

    seed: int = 0
    target: int | str | None = None  # the one target class it is fitted for; None: every class
    batch_size: int = 256  # queries explained at a time; bounds the memory
    device: str = "auto"

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        return [] if self.batch_size >= 1 else [f"'batch_size' must be >= 1, got {self.batch_size}"]

    def deciding_values(self) -> dict[str, Any]:
        """Return the plain values of all fields that are not neutral: what decides the fitted state and the answers."""
        values = self.to_dict()
        for name in self.neutral:
            *parts, last = name.split(".")
            holder = values
            for part in parts:
                holder = holder[part]
            del holder[last]
        return values


@dataclass(frozen=True, kw_only=True, slots=True)
class NearestConfig(MethodConfig):
    """Settings of :class:`~sparcets.Nearest`.

    Examples
    --------
    >>> NearestConfig(candidates=10).candidates
    10
    """

    neutral: ClassVar[frozenset[str]] = MethodConfig.neutral | {"seed"}  # nothing is random

    candidates: int = 100  # neighbours tried per query, nearest first, before it gives up

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        found = MethodConfig.problems(self)
        return found if self.candidates >= 1 else [*found, f"'candidates' must be >= 1, got {self.candidates}"]

    @classmethod
    def tiny(cls) -> NearestConfig:
        """Return settings for tests."""
        return cls(candidates=20)


@dataclass(frozen=True, kw_only=True, slots=True)
class LossWeights(Config):
    """Weights of the generator's five terms (the paper's λ1 to λ5, section 3); 0 leaves a term out altogether.

    Examples
    --------
    >>> LossWeights(sparsity=2.0, smoothness=0.0).sparsity
    2.0
    """

    adversarial: float = 1.0
    classification: float = 1.0
    similarity: float = 1.0
    sparsity: float = 1.0
    smoothness: float = 1.0

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        found = [f"{k!r} must be >= 0, got {v}" for k, v in self.to_dict().items() if v < 0]
        return found or ([] if any(self.to_dict().values()) else ["at least one weight must be > 0"])


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplainerConfig(MethodConfig):
    """Settings of :class:`~sparcets.Explainer`, our own method.

    Examples
    --------
    >>> ExplainerConfig.quick().override("seed=3", "believed_by=model").believed_by
    'model'
    """

    neutral: ClassVar[frozenset[str]] = MethodConfig.neutral | {"train.check_every"}

    generator: GatedGeneratorConfig = field(default_factory=GatedGeneratorConfig)
    critic: CriticConfig = field(default_factory=CriticConfig)
    train: AutoTrainConfig = field(default_factory=AutoTrainConfig)
    # The number of changed entries is penalised rather than their size.
    weights: LossWeights = field(
        default_factory=lambda: LossWeights(
            adversarial=2.5, classification=9.0, similarity=0.3, sparsity=8.0, smoothness=20.0
        )
    )
    families: tuple[str, ...] = FAMILIES  # kinds of models that an answer must convince too
    max_series: int = 2000  # training series that each of these models learns from, at most
    believed_by: Literal["families", "model"] = "families"  # "model": the explained model alone must be convinced
    proposals: Literal["auto", "generator", "search"] = "auto"  # auto: a generator for many series, else a search
    starts: int = 3  # real series that a search starts from, 1 to 3; fewer are quicker
    noise: float = 0.5  # on the inputs of the ensemble, in standard deviations of a series
    gate: Literal["none", "feature", "window"] = "window"  # gates: none, per feature, or per feature and window
    min_sparsity_weight: float = 0.3  # smallest and
    max_sparsity_weight: float = 10.0  # largest factor of the sparsity term that the generator is trained for
    ramp: float = 0.33  # share of the training over which the sparsity term is phased in

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        checks = [
            (
                len(set(self.families)) == len(self.families) and set(self.families) <= set(FAMILIES),
                f"'families' must be different ones of {', '.join(FAMILIES)}, got {', '.join(self.families)}",
            ),
            (self.max_series >= 10, f"'max_series' must be >= 10, got {self.max_series}"),
            (self.starts in (1, 2, 3), f"'starts' must be 1, 2 or 3, got {self.starts}"),
            (self.noise >= 0, f"'noise' must be >= 0, got {self.noise}"),
            (
                0 < self.min_sparsity_weight <= self.max_sparsity_weight,
                f"'min_sparsity_weight' must be > 0 and <= 'max_sparsity_weight', got {self.min_sparsity_weight}",
            ),
            (0 <= self.ramp <= 1, f"'ramp' must be a share, got {self.ramp}"),
            (
                any(v for k, v in self.weights.to_dict().items() if k != "adversarial"),
                "'weights' must have another term than 'adversarial' > 0",
            ),
        ]
        return MethodConfig.problems(self) + [message for fine, message in checks if not fine]

    @classmethod
    def quick(cls) -> ExplainerConfig:
        """Return settings that take a third of the time: fewer kinds of models, training series and starts."""
        return cls(families=("convolutions", "quantiles", "intervals"), max_series=600, proposals="search", starts=2)

    @classmethod
    def tiny(cls) -> ExplainerConfig:
        """Return settings for tests: seconds on a CPU."""
        return cls(
            generator=GatedGeneratorConfig(hidden=8, layers=2),
            critic=CriticConfig(hidden=16, layers=2),
            train=AutoTrainConfig(epochs=4, batch_size=32, lr=5e-3, check_every=20),
            families=("convolutions", "quantiles", "intervals"),
            proposals="generator",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class AdversarialConfig(MethodConfig):
    """What the paper's three methods with a generator and a discriminator share."""

    neutral: ClassVar[frozenset[str]] = MethodConfig.neutral | {"train.check_every", "train.restarts"}

    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    discriminator: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    weights: LossWeights = field(default_factory=LossWeights)
    trains_sparsity: bool = True  # False: the sparsity term is reported only, as in the published code
    standardise: bool = True  # False: trained and measured in the data's own units; the paper does not state which

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        training = [k for k, v in self.weights.to_dict().items() if v > 0 and (k != "sparsity" or self.trains_sparsity)]
        found = MethodConfig.problems(self)
        if self.train.balance and self.target is None:
            found.append("'train.balance' needs a 'target': queries and targets are balanced for one class")
        return found if training else [*found, "without 'trains_sparsity', a weight other than 'sparsity' must be > 0"]

    @classmethod
    def paper(cls, target: int | str) -> Self:
        """Return the paper's settings, for one target class.

        Sections 2 and 4: a two-layer bidirectional LSTM with 256 hidden units and dropout 0.4; a one-layer
        discriminator with 16; all weights of the method 1; 100 epochs, batches of 32, Adam with 2e-4 and 0.5/0.999.
        The published code cuts queries and targets to equal numbers, its sparsity term has no gradient, and a training
        that fails is not started again.
        """
        train = TrainConfig(epochs=100, batch_size=32, lr=2e-4, beta1=0.5, beta2=0.999, balance=True, restarts=0)
        return cls(
            target=target,
            generator=GeneratorConfig(backbone="lstm", hidden=256, layers=2, dropout=0.4),
            discriminator=DiscriminatorConfig(backbone="lstm", hidden=16, layers=1),
            train=train,
            trains_sparsity=False,
        )

    @classmethod
    def tiny(cls) -> Self:
        """Return settings for tests: seconds on a CPU.

        With few epochs, validity comes first: classification weighs more, sparsity less.
        """
        weights = cls().weights
        return cls(
            weights=replace(weights, classification=10.0, sparsity=min(weights.sparsity, 0.3)),
            generator=GeneratorConfig(hidden=24, layers=1, dropout=0.0),
            discriminator=DiscriminatorConfig(hidden=8),
            train=TrainConfig(epochs=40, batch_size=32, lr=3e-3, check_every=20),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SparceConfig(AdversarialConfig):
    """Settings of :class:`~sparcets.Sparce`: residuals through the sparsity layer, all five terms (section 3).

    Examples
    --------
    >>> SparceConfig.paper(target="ups").generator.hidden
    256
    >>> SparceConfig().override("weights.sparsity=0.5").weights.sparsity
    0.5
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class CounterGanConfig(AdversarialConfig):
    """Settings of :class:`~sparcets.CounterGan`: no sparsity layer, no terms for sparsity and smoothness.

    Examples
    --------
    >>> CounterGanConfig().weights.sparsity
    0.0
    """

    weights: LossWeights = field(default_factory=lambda: LossWeights(sparsity=0.0, smoothness=0.0))


@dataclass(frozen=True, kw_only=True, slots=True)
class GanConfig(AdversarialConfig):
    """Settings of :class:`~sparcets.Gan`: whole series, regularised by their distance to the query (section 4).

    Examples
    --------
    >>> GanConfig(seed=1).weights.smoothness
    0.0
    """

    weights: LossWeights = field(default_factory=lambda: LossWeights(sparsity=0.0, smoothness=0.0))


@dataclass(frozen=True, kw_only=True, slots=True)
class IcsConfig(MethodConfig):
    """Settings of :class:`~sparcets.Ics`, the instance-wise search after Wachter et al. (section 4).

    Examples
    --------
    >>> IcsConfig(steps=50).override("lr=0.1").lr
    0.1
    """

    steps: int = 100  # of Adam, for each value of the trade-off
    lr: float = 0.4
    beta1: float = 0.9
    beta2: float = 0.999
    prediction_weight: float = 1.0  # λ, the weight of the prediction against the distance, at first
    max_lambdas: int = 10  # values of λ tried at most, each for the queries that are not valid yet
    lambda_step: float | None = None  # added to λ from one value to the next; None doubles it

    def problems(self) -> list[str]:
        """Say in words what is wrong with the values."""
        checks = [
            (self.steps >= 1, f"'steps' must be >= 1, got {self.steps}"),
            (self.lr > 0, f"'lr' must be > 0, got {self.lr}"),
            (0 <= self.beta1 < 1, f"'beta1' must be in [0, 1), got {self.beta1}"),
            (0 <= self.beta2 < 1, f"'beta2' must be in [0, 1), got {self.beta2}"),
            (self.prediction_weight > 0, f"'prediction_weight' must be > 0, got {self.prediction_weight}"),
            (self.max_lambdas >= 1, f"'max_lambdas' must be >= 1, got {self.max_lambdas}"),
            (
                self.lambda_step is None or self.lambda_step > 0,
                f"'lambda_step' must be > 0 or None, got {self.lambda_step}",
            ),
        ]
        return MethodConfig.problems(self) + [message for fine, message in checks if not fine]

    @classmethod
    def paper(cls, target: int | str | None = None) -> IcsConfig:
        """Return the paper's settings (section 4), which are the defaults."""
        return cls(target=target, steps=100, lr=0.4, beta1=0.9, beta2=0.999, prediction_weight=1.0, max_lambdas=10)

    @classmethod
    def tiny(cls) -> IcsConfig:
        """Return settings for tests."""
        return cls(steps=30, max_lambdas=5)


PRESETS = ("default", "quick", "paper", "tiny")


def from_preset(config_class: Any, preset: str, target: str | None = None) -> Any:
    """Return the settings of a method, for every class or for one target alone; the paper's need a target.

    Parameters
    ----------
    config_class
        The method's class of settings.
    preset
        ``default``, ``tiny``, for our own method ``quick``, or, for the paper's four, ``paper``.
    target
        Class the method is to be made for alone, by name or index (as digits).

    Examples
    --------
    >>> from sparcets.core.method_config import SparceConfig
    >>> from_preset(SparceConfig, "paper", "1").target
    1
    """
    target_class: Any = int(target) if target is not None and target.isdigit() else target
    known = [p for p in PRESETS if p == "default" or hasattr(config_class, p)]
    if preset not in known:
        raise ConfigError(f"{config_class.__name__} has no preset {quoted(preset)}. Known: {', '.join(known)}.")
    if preset == "paper":
        if target_class is None:
            raise ConfigError("the paper trains for one target class: give it with --target (target= in Python).")
        return config_class.paper(target=target_class)
    config = config_class() if preset == "default" else getattr(config_class, preset)()
    return config if target_class is None else replace(config, target=target_class)
