"""Settings of the classifiers, the networks and the explainers, one class each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from sparcets.core.config import Config
from sparcets.core.errors import ConfigError, quoted

if TYPE_CHECKING:
    from typing_extensions import Self

Rule = Literal["refuse", "forward", "mean"]
MANY_SERIES = 4096  # number of series from which `sized` keeps the batch size; with fewer series it is smaller


SIZES = {"hidden": ">= 1", "layers": ">= 1"}  # limits of networks
TERMS = ("adversarial", "classification", "similarity", "sparsity", "smoothness")  # of the generator's loss
FAMILIES = ("neural", "convolutions", "quantiles", "intervals")  # of models, see :mod:`~sparcets.methods.own`
PRESETS = ("default", "quick", "paper", "tiny")


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifierConfig(Config):
    """How a :class:`~sparcets.TorchClassifier` is built and trained.

    The defaults are those of the SPARCE authors' classifier (two layers, 32 hidden, dropout 0.2, Adam 1e-3, batch 32),
    with early stopping on a validation part instead of a fixed number of epochs.

    Examples
    --------
    >>> ClassifierConfig(epochs=20).override("hidden=64", "dropout=0.1").hidden
    64
    """

    limits: ClassVar[dict[str, str]] = {
        **SIZES,
        **dict.fromkeys(("epochs", "patience", "batch_size"), ">= 1"),
        **dict.fromkeys(("dropout", "label_smoothing"), "in [0, 1)"),
        "noise": ">= 0",
        "validation": "between 0 and 1",
        "lr": "> 0",
    }

    hidden: int = 32  # width; convolutional networks use multiples of it
    layers: int = 2  # recurrent layers, or blocks of the other networks
    dropout: float = 0.2
    noise: float = 0.0  # added to the series of each training step, in standard deviations of each series
    label_smoothing: float = 0.0  # share of each label that the training loss spreads over all classes
    epochs: int = 100  # at most; early stopping usually ends before
    patience: int = 12  # epochs without a better validation error (or loss, among equals) before it stops
    validation: float = 0.15  # share of the training series (of the subjects, where known) that early stopping watches
    batch_size: int = 32
    lr: float = 1e-3
    missing: Rule = "refuse"  # what the network gets for missing values (NaN)
    output: Literal["softmax", "sigmoid"] = "softmax"  # sigmoid: one output, for two classes, as in the SPARCE paper
    seed: int = 0
    device: str = "auto"

    @classmethod
    def tiny(cls) -> ClassifierConfig:
        """Return settings for tests: seconds on a CPU."""
        return cls(hidden=8, layers=1, dropout=0.0, epochs=30, patience=5, lr=1e-2)

    def sized(self, n_series: int, *, steps: int = 1500) -> ClassifierConfig:
        """Return these settings for a number of series, such that training takes about as long for many as for few.

        With fewer than ``MANY_SERIES`` series, batches are a quarter as large. There are at most ``epochs`` epochs,
        fewer if they would take more than ``steps`` steps of optimisation, but at least 10; patience is a fifth of
        them, or the set value if that is larger.

        Examples
        --------
        >>> config = ClassifierConfig(batch_size=128, epochs=60, patience=4)
        >>> [(c.batch_size, c.epochs, c.patience) for c in map(config.sized, (200, 1_580, 14_080))]
        [(32, 60, 12), (32, 35, 7), (128, 15, 4)]
        """
        batch_size = self.batch_size if n_series >= MANY_SERIES else max(self.batch_size // 4, 1)
        rounds = math.ceil(n_series * (1 - self.validation) / batch_size)  # steps of one epoch
        epochs = min(max(steps // rounds, 10), self.epochs)
        return replace(self, batch_size=batch_size, epochs=epochs, patience=max(epochs // 5, self.patience))


@dataclass(frozen=True, kw_only=True, slots=True)
class GeneratorConfig(Config):
    """The paper's generator: a bidirectional backbone and a dense layer per step (section 2)."""

    limits: ClassVar[dict[str, str]] = SIZES | {"dropout": "in [0, 1)"}

    backbone: Literal["lstm", "gru", "tcn"] = "lstm"
    hidden: int = 64  # the paper's 256 are for a GPU
    layers: int = 2
    dropout: float = 0.1  # between the layers


@dataclass(frozen=True, kw_only=True, slots=True)
class DiscriminatorConfig(Config):
    """The paper's discriminator: a bidirectional backbone read at the last step (section 2)."""

    limits: ClassVar[dict[str, str]] = SIZES

    backbone: Literal["lstm", "gru", "tcn"] = "lstm"
    hidden: int = 32
    layers: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainConfig(Config):
    """How the paper's methods are trained."""

    limits: ClassVar[dict[str, str]] = {
        "lr": "> 0",
        **dict.fromkeys(("epochs", "batch_size", "check_every"), ">= 1"),
        **dict.fromkeys(("beta1", "beta2"), "in [0, 1)"),
        **dict.fromkeys(("patience", "restarts"), ">= 0"),
    }

    epochs: int = 40  # one epoch sees every query once
    batch_size: int = 64
    lr: float = 1e-3
    beta1: float = 0.5  # of Adam; the usual choice for GANs
    beta2: float = 0.999
    balance: bool = False  # cut queries and targets to equal numbers, as the published code does
    patience: int = 0  # epochs without a better generator loss before it stops; 0: never, as in the paper
    check_every: int = 100  # steps between checks for divergence
    restarts: int = 1  # restarts of a failed training from other weights; 0: it continues, as in the paper


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodConfig(Config):
    """Settings of every method.

    ``neutral`` names the fields (nested ones with a dot) that change neither the fitted state nor the answers, except
    for rounding; every other field does, and a test over the registry shows it.
    """

    limits: ClassVar[dict[str, str]] = {"batch_size": ">= 1"}

    neutral: ClassVar[frozenset[str]] = frozenset({"batch_size", "device"})

    seed: int = 0
    target: int | str | None = None  # the one target class it is fitted for; None: every class
    batch_size: int = 256  # queries explained at a time; bounds the memory
    device: str = "auto"

    def deciding_values(self) -> dict[str, Any]:
        """Return the plain values of all fields that are not neutral, which determine the state and the answers."""
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

    limits: ClassVar[dict[str, str]] = MethodConfig.limits | {"candidates": ">= 1"}

    neutral: ClassVar[frozenset[str]] = MethodConfig.neutral | {"seed"}  # nothing is random

    candidates: int = 100  # neighbours tried per query, nearest first, before it gives up

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

    limits: ClassVar[dict[str, str]] = dict.fromkeys(TERMS, ">= 0")

    adversarial: float = 1.0
    classification: float = 1.0
    similarity: float = 1.0
    sparsity: float = 1.0
    smoothness: float = 1.0

    def problems(self) -> list[str]:
        """Return descriptions of what is wrong with the values."""
        return Config.problems(self) or ([] if any(self.to_dict().values()) else ["at least one weight must be > 0"])


@dataclass(frozen=True, kw_only=True, slots=True)
class ExplainerConfig(MethodConfig):
    """Settings of :class:`~sparcets.Explainer`, our own method.

    Examples
    --------
    >>> ExplainerConfig.quick().override("seed=3", "believed_by=model").believed_by
    'model'
    """

    limits: ClassVar[dict[str, str]] = MethodConfig.limits | {
        "max_series": ">= 10",
        "discriminator_queries": ">= 0",
        "noise": ">= 0",
        "edit_price": ">= 0",
        "change_price": ">= 0",
    }

    families: tuple[str, ...] = FAMILIES  # kinds of models that an answer must convince too
    max_series: int = 2000  # training series that each of these models learns from, at most
    believed_by: Literal["families", "model"] = "families"  # "model": the explained model alone must be convinced
    proposals: Literal["auto", "generator", "search"] = "auto"  # auto: a generator proposes where there are many series
    discriminator_queries: int = 40  # training series whose answers discriminators learn to tell from recordings
    edit_price: float = 0.03  # price of each edit of an answer; the search looks for the cheapest answer
    change_price: float = 1.0  # price of a visible change of all entries
    groups: tuple[tuple[str, ...], ...] = ()  # features that are edited together; others are grouped by the data
    store_courses: bool = True  # False: answers name the training series that an edit follows, without its values
    without_laws: tuple[str, ...] = ()  # names of laws of the data (ex.laws_) that answers need not keep
    noise: float = 0.5  # on the inputs of the ensemble, in standard deviations of a series

    def problems(self) -> list[str]:
        """Return descriptions of what is wrong with the values."""
        if len(set(self.families)) == len(self.families) and set(self.families) <= set(FAMILIES):
            return Config.problems(self)
        wrong = f"'families' must be different ones of {', '.join(FAMILIES)}, got {', '.join(self.families)}"
        return [*Config.problems(self), wrong]

    @classmethod
    def quick(cls) -> ExplainerConfig:
        """Return settings that take a third of the time: fewer kinds of models and training series."""
        return cls(
            families=("convolutions", "quantiles", "intervals"),
            max_series=600,
            discriminator_queries=16,
            proposals="search",
        )

    @classmethod
    def tiny(cls) -> ExplainerConfig:
        """Return settings for tests: seconds on a CPU."""
        return cls(
            families=("convolutions", "quantiles", "intervals"),
            max_series=100,
            discriminator_queries=6,
            proposals="search",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class AdversarialConfig(MethodConfig):
    """Settings shared by the paper's three methods with a generator and a discriminator."""

    neutral: ClassVar[frozenset[str]] = MethodConfig.neutral | {"train.check_every", "train.restarts"}

    generator: GeneratorConfig = field(default_factory=GeneratorConfig)
    discriminator: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    weights: LossWeights = field(default_factory=LossWeights)
    trains_sparsity: bool = True  # False: the sparsity term is reported only, as in the published code
    standardise: bool = True  # False: trained and measured in the data's own units; the paper does not state which

    def problems(self) -> list[str]:
        """Return descriptions of what is wrong with the values."""
        training = [k for k, v in self.weights.to_dict().items() if v > 0 and (k != "sparsity" or self.trains_sparsity)]
        found = Config.problems(self)
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

    limits: ClassVar[dict[str, str]] = MethodConfig.limits | {
        **dict.fromkeys(("steps", "max_lambdas"), ">= 1"),
        **dict.fromkeys(("lr", "prediction_weight"), "> 0"),
        **dict.fromkeys(("beta1", "beta2"), "in [0, 1)"),
        "lambda_step": "> 0 or None",
    }

    steps: int = 100  # of Adam, for each value of the trade-off
    lr: float = 0.4
    beta1: float = 0.9
    beta2: float = 0.999
    prediction_weight: float = 1.0  # λ, the weight of the prediction against the distance, at first
    max_lambdas: int = 10  # values of λ tried at most, each for the queries that are not valid yet
    lambda_step: float | None = None  # added to λ from one value to the next; None doubles it

    @classmethod
    def paper(cls, target: int | str | None = None) -> IcsConfig:
        """Return the paper's settings (section 4), which are the defaults."""
        return cls(target=target, steps=100, lr=0.4, beta1=0.9, beta2=0.999, prediction_weight=1.0, max_lambdas=10)

    @classmethod
    def tiny(cls) -> IcsConfig:
        """Return settings for tests."""
        return cls(steps=30, max_lambdas=5)


def from_preset(config_class: Any, preset: str, target: str | None = None) -> Any:
    """Return the settings of a method, for every class or for one target alone; the paper's need a target.

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
