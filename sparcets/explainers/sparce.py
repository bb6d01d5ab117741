"""SPARCE: sparse residuals by a generator (Lang, Giese, Ilg, Otte 2022), and our recipe for answers that are true."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sparcets.arrays import FloatArray, IntArray
from sparcets.classifiers.base import Classifier, DifferentiableClassifier
from sparcets.classifiers.student import distill
from sparcets.classifiers.torch_classifier import TorchClassifier
from sparcets.classifiers.witnesses import WITNESSES, train_witnesses
from sparcets.config.explainers import SparceConfig
from sparcets.datasets.splits import stratified_split
from sparcets.errors import CapabilityError
from sparcets.explainers.adversarial import ENOUGH, AdversarialExplainer
from sparcets.explainers.agreement import check_agreement
from sparcets.explainers.answering import answer
from sparcets.explainers.base import BaseExplainer
from sparcets.explainers.express import explain_at_once, fill_in, suits
from sparcets.explainers.queries import Block
from sparcets.explainers.recipe import LOUDER, Recipe, as_history, build_generator, describe, ladder, walk_the_trade_off
from sparcets.explainers.recipe_files import recipe_from_arrays, recipe_to_arrays
from sparcets.explainers.request import Answers, FitJob, Question, Request
from sparcets.explainers.sizing import BATCHES, chosen_sizes
from sparcets.explanation import Explanation, join
from sparcets.networks.critic import Critic
from sparcets.networks.gated import GatedGenerator
from sparcets.progress import Bar
from sparcets.seeding import generator as random_generator
from sparcets.seeding import spawn
from sparcets.series_info import SeriesInfo
from sparcets.trade_off import Place, knee
from sparcets.training.callbacks import Callback, History, TensorBoard
from sparcets.training.checkpoint import forget
from sparcets.training.device import resolve_device, seeded
from sparcets.training.health import Health, TrainingFailure
from sparcets.training.objective import LossTerm, Objective
from sparcets.training.pairing import Pairing
from sparcets.training.projection import Projection
from sparcets.training.recipe_step import RecipeStep, Schedule

log = logging.getLogger(__name__)
LITTLE = 400  # series; with fewer, a real series to follow is tried as well as free residuals
SCARCE = 100  # series; with fewer, nothing else is tried: residuals of one's own take more to learn
HELD_OUT = 0.15  # of the training series, to choose the place on the trade-off
WATCHED = 512  # of them, at most
GUIDES = 200  # real series kept per class
GUIDED = "guided"  # folder of the second generator's checkpoint
GOOD = 0.9  # valid and true on held-out series; below it, advice is given
ADVICE = (
    "To do better: train longer (train.epochs), allow more changes (weights.sparsity), or look at the classifier and "
    "the data: witnesses that disagree with it say that it learnt something else than they did."
)


class Sparce(AdversarialExplainer[SparceConfig]):
    """A generator that emits sparse residuals; one fit for every target class, then an answer is one forward pass.

    By default its answers must convince, besides the classifier, witnesses of other architectures under noise, and a
    critic that decides what looks real; what is left of an answer is cut to what they all need. Where the generator
    does not get a query across, a short descent does, or a real series, or it says why nothing did.
    ``Sparce(clf, SparceConfig.paper(target="ups"))`` is the paper to the letter.

    Attributes
    ----------
    trade_off_
        Places on the trade-off between changed entries and truth, measured on held-out training series.
    """

    config_class = SparceConfig
    head = "sparse"

    needs_gradients = False  # a black box gets a student; the paper's recipe needs gradients, and says so

    def __init__(
        self, classifier: Classifier, config: SparceConfig | None = None, *, terms: Mapping[str, LossTerm] | None = None
    ) -> None:
        super().__init__(classifier, config, terms=terms)
        self.trade_off_: tuple[Place, ...] = ()
        self._recipe: Recipe | None = None

    def _check_classifier(self) -> None:
        super()._check_classifier()
        if self.config.recipe == "paper" and not isinstance(self.classifier, DifferentiableClassifier):
            raise CapabilityError(
                f"the paper's Sparce needs gradients, but {self.classifier.name} is a black box. Wrap an nn.Module, or "
                "use sp.Sparce(clf) without the paper's settings: it learns from a student of the black box."
            )

    def _train(self, job: FitJob, attempt: int) -> None:
        if self.config.recipe == "paper":
            super()._train(job, attempt)
            return
        try:
            self._train_recipe(job, attempt)
        except TrainingFailure:
            if job.checkpoint is not None:
                forget(job.checkpoint / GUIDED)
            raise

    def _train_recipe(self, job: FitJob, attempt: int) -> None:
        seed = spawn(self.config.seed, f"attempt {attempt}")
        learn, watch = _held_out(job.y, spawn(seed, "held out"))
        voices, referee = self._train_voices(job, learn, seed)
        guides = _real_series(job, self.classifier, seed)
        queries, wanted = _watched(job, watch, self.classifier, self._own_target(job.info), seed)
        best: tuple[Recipe, list[Place], History] | None = None
        for guided in self._heads(len(job.X), len(guides[0])):
            generator, history = self._train_generator(job, attempt, learn, voices, guided)
            recipe = Recipe(
                generator=generator,
                voices=voices,
                referee=referee,
                guides=guides[0],
                guide_class=guides[1],
                strengths=ladder(self.config.weakest, self.config.strongest),
                louder=LOUDER[:1] if guided else LOUDER,  # real series are not exaggerated
                level=self.config.agreement,
                scaler=job.info.scaler,
                double=job.X.dtype == np.float64,
            )
            mutable = int(job.constraints.mutable.sum())
            places = walk_the_trade_off(recipe, self.classifier, job.X[queries], wanted, mutable)
            log.info("%s: %s", "guided" if guided else "free", describe(places, knee(places)))
            if best is None or knee(places).worth > knee(best[1]).worth:
                best = recipe, places, history
        assert best is not None
        self._recipe, self.trade_off_ = best[0], tuple(best[1])
        self.history_ = {**best[2].values, **as_history(best[1])}
        self._look_at_the_recipe(job, queries, wanted)

    def _train_voices(
        self, job: FitJob, learn: IntArray, seed: int
    ) -> tuple[list[DifferentiableClassifier], TorchClassifier]:
        """Return the classifier (or its student) with the witnesses, and one more that only looks at the result."""
        config, names = self.config, job.info.class_names
        shared: dict[str, Any] = {"class_names": names, "device": config.device, "progress": job.progress}
        on_gpu = resolve_device(config.device).type == "cuda"
        sizes = chosen_sizes(config, len(learn), job.info.n_features, on_gpu=on_gpu)
        n, steps = sizes.witnesses, sizes.witness_steps
        X, y = job.X[learn], job.y[learn]
        # Noise teaches what is large and lasting; those that learn without it are like the judges that answers will
        # meet, and harder to convince. So every other witness does, and so does the one that chooses: a ResNet, the
        # hardest of all to convince.
        noises = [config.noise * ((i + i // 4) % 2 == 0) for i in range(n)]
        kinds = len(WITNESSES)
        chooses = n // kinds * kinds + kinds + WITNESSES.index("resnet")
        *witnesses, referee = (
            train_witnesses(X, y, n=1, skip=i, noise=noise, seed=seed, steps=steps, **shared)[0]
            for i, noise in [*enumerate(noises), (chooses, 0.0)]
        )
        model = self.classifier
        if not isinstance(model, DifferentiableClassifier):
            model = distill(model, X, seed=spawn(seed, "student"), **shared)
        return [model, *witnesses], referee

    def _heads(self, n_series: int, n_guides: int) -> tuple[bool, ...]:
        """Return whether the generators that are tried follow real series; a wrong classifier may leave none."""
        if self.config.guide == "never" or not n_guides:
            return (False,)
        if self.config.guide == "always":
            return (True,)
        if n_series < SCARCE:
            return (True,)
        return (False, True) if n_series < LITTLE else (False,)

    def _train_generator(
        self, job: FitJob, attempt: int, learn: IntArray, voices: Sequence[DifferentiableClassifier], guided: bool
    ) -> tuple[GatedGenerator, History]:
        config, info, device = self.config, job.info, resolve_device(self.config.device)
        seed = spawn(spawn(config.seed, f"attempt {attempt}"), "guided" if guided else "free")
        sizes = chosen_sizes(config, len(learn), info.n_features, on_gpu=device.type == "cuda")
        pairing = Pairing(
            job.y[learn],
            target=self._own_target(info),
            batch_size=sizes.batch_size,
            balance=False,
            seed=spawn(seed, "pairs"),
            device=device,
            at_least=BATCHES,
        )
        epochs = config.train.epochs or -(-sizes.steps // len(pairing))
        with seeded(spawn(seed, "weights"), device):
            mutable = np.flatnonzero(job.constraints.mutable).tolist()
            generator = build_generator(config, info, mutable, hidden=sizes.hidden, layers=sizes.layers, guided=guided)
            critic = Critic(
                n_features=info.n_features,
                n_targets=info.n_classes,
                hidden=config.discriminator.hidden,
                layers=config.discriminator.layers,
            )
        step = RecipeStep(
            generator.to(device),
            critic.to(device),
            Projection(job.constraints, info.scaler).to(device),
            Objective(
                # A real series that is followed needs nobody to say whether it looks real.
                replace(config.weights, adversarial=0.0) if guided else config.weights,
                n_mutable=int(job.constraints.mutable.sum()),
                trains_sparsity=config.trains_sparsity,
                extra=self.terms,
                hinge=True,
            ),
            [_voice(model, device) for model in voices],
            x=torch.tensor(info.scaler.transform(job.X[learn]), dtype=torch.float32, device=device),
            center=torch.tensor(info.scaler.center.astype(job.X.dtype), device=device),
            scale=torch.tensor(info.scaler.scale.astype(job.X.dtype), device=device),
            config=config.train,
            noise=config.noise,
            strengths=(config.weakest, config.strongest),
            ramp=config.ramp,
            n_steps=epochs * len(pairing),
        )
        history = History()
        callbacks: list[Callback] = [history, Health()]
        start = 0
        if job.checkpoint is not None:
            second = guided and self.config.guide == "auto"  # after a free one, whose checkpoint is kept
            folder = job.checkpoint / GUIDED if second else job.checkpoint
            checkpoint = self._build_checkpoint(job, folder, step, history, attempt)
            start = checkpoint.resume()
            callbacks += [checkpoint, TensorBoard(folder / "tensorboard")]
        callbacks.append(Schedule(step, epochs, start))
        self._run(job, step, pairing, callbacks, epochs=epochs, start=start, seed=spawn(seed, "noise"))
        return step.average, history

    def _look_at_the_recipe(self, job: FitJob, rows: IntArray, wanted: IntArray) -> None:
        """Notice a generator that changes nothing, features it never touches, and one that reaches little."""
        recipe = self._recipe
        assert recipe is not None
        x = torch.as_tensor(job.info.scaler.transform(job.X[rows]).astype(np.float32), device=recipe.device)
        guide = recipe.first_guides(x, wanted)
        delta = recipe.propose(x, torch.as_tensor(wanted, device=recipe.device), recipe.strengths[0], guide)
        moved = (delta != 0).any(0).any(0).cpu().numpy()
        if not moved.any():
            raise TrainingFailure("the generator is dead: it changes nothing at all")
        self.silent_features_ = tuple(np.array(job.info.feature_names)[job.constraints.mutable & ~moved].tolist())
        chosen = knee(self.trade_off_)
        if chosen.valid < ENOUGH:
            log.warning("%s %s", describe(self.trade_off_, chosen), ADVICE)

    def _explain_block(self, block: Block, question: Question, bar: Bar) -> Iterator[Explanation]:
        recipe = self._recipe
        if recipe is None or block.lengths is not None or not suits(question, recipe, self.classifier):
            yield from super()._explain_block(block, question, bar)
            return
        began, info = time.perf_counter(), self._fitted()
        check_agreement(self.classifier, info, f"this {type(self).__name__}")
        explanation = explain_at_once(block, question, recipe, knee(self.trade_off_), info)
        left = np.flatnonzero(explanation.status == "not_found")
        bar.advance(len(explanation) - len(left))
        if len(left):  # the few that one pass does not get across go the long way
            rest = replace(block, X=block.X[left], target=explanation.target[left])
            explanation = fill_in(explanation, left, join(list(super()._explain_block(rest, question, bar))))
        config, seconds = self.config.to_dict(), time.perf_counter() - began
        yield replace(explanation, method=self.method, config=config, seed=self.config.seed, seconds=seconds)

    def _explain(self, request: Request) -> Answers:
        if self.config.recipe == "paper":
            return super()._explain(request)
        assert self._recipe is not None
        return answer(request, self._recipe, self.classifier, knee(self.trade_off_))

    def summary(self) -> str:
        """Say in a few lines what was trained, how good it is, and what to change if it is not."""
        if self.config.recipe == "paper" or self._recipe is None:
            return super().summary()
        recipe, chosen = self._recipe, knee(self.trade_off_)
        kind = "follows real series" if recipe.generator.guided else "makes residuals of its own"
        others = len(recipe.voices) - 1
        lines = [
            BaseExplainer.summary(self),
            f"A generator that {kind}, trained with {others} witness{'es' * (others != 1)} for "
            f"{len(self.history_.get('generator', []))} epochs.",
            describe(self.trade_off_, chosen),
        ]
        if recipe.generator.guided:
            lines.append("That is with the nearest real series; of several, the one that serves a query best is taken.")
        if not isinstance(self.classifier, DifferentiableClassifier):
            lines.append("The classifier is a black box: a student of it was trained with; answers are checked on it.")
        if self.silent_features_:
            lines.append(f"Never changed by the generator: {', '.join(self.silent_features_)}.")
        if min(chosen.valid, chosen.transfer) < GOOD:
            lines.append(ADVICE)
        return "\n".join(lines)

    def _state(self) -> dict[str, Any]:
        if self.config.recipe == "paper":
            return super()._state()
        assert self._recipe is not None
        return recipe_to_arrays(self._recipe, self.classifier, self.trade_off_, self.silent_features_)

    def _restore(self, state: dict[str, Any], info: SeriesInfo) -> None:
        if self.config.recipe == "paper":
            super()._restore(state, info)
            return
        stored = recipe_from_arrays(state, self.classifier, info, self.config)
        self._recipe, self.trade_off_, self.silent_features_ = stored


def _held_out(y: IntArray, seed: int) -> tuple[IntArray, IntArray]:
    """Return rows to learn from, and rows to choose by; where there is too little, the same for both."""
    if len(y) < SCARCE or np.bincount(y).min() < 4:
        rows = np.arange(len(y), dtype=np.int64)
        return rows, rows
    return stratified_split(y, test_size=HELD_OUT, seed=seed)


def _watched(
    job: FitJob, rows: IntArray, classifier: Classifier, target: int | None, seed: int
) -> tuple[IntArray, IntArray]:
    """Return held-out queries and the classes they are sent to: every other class in turn, or the one target."""
    rng = random_generator(seed, "watched")
    rows = rng.permutation(rows)[:WATCHED]
    K = job.info.n_classes
    if target is None:
        wanted = (job.y[rows] + 1 + np.arange(len(rows)) % (K - 1)) % K
    else:
        rows = rows[job.y[rows] != target]
        wanted = np.full(len(rows), target)
    # One that the classifier puts there already would count as an answer that changes nothing.
    there = classifier.predict(job.X[rows]) == wanted
    return (rows, wanted) if there.all() else (rows[~there], wanted[~there])


def _real_series(job: FitJob, classifier: Classifier, seed: int) -> tuple[FloatArray, IntArray]:
    """Return training series, standardised, that are labelled and predicted as their class: some of each."""
    rng = random_generator(seed, "guides")
    right = rng.permutation(np.flatnonzero(classifier.predict(job.X) == job.y))
    rows = np.sort(np.concatenate([right[job.y[right] == k][:GUIDES] for k in range(job.info.n_classes)]))
    return job.info.scaler.transform(job.X[rows]).astype(np.float32), job.y[rows]


def _voice(model: DifferentiableClassifier, device: torch.device) -> Callable[[Tensor], Tensor]:
    return lambda raw: model.log_proba(raw.to(model.device)).to(device)
