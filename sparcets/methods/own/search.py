"""The search: from real series of the target, whatever is not needed to convince is taken back.

A search starts with the whole course of a real series: every group of features follows it at all steps. Then, round by
round, the group or the part of a window is given up that saves most, as long as the explained model and the ensemble
stay as convinced as by a real series. What is left is a short list of edits; the selector says whether it is believed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from sparcets.core.edits import KINDS, NEEDS, Edit, EditLists, apply_edits
from sparcets.core.evidence import MAJORITY, compare_shape, other_kinds
from sparcets.core.progress import yield_to_urgent_work
from sparcets.core.seeding import generator
from sparcets.core.series import BoolArray, FloatArray, Series, differs
from sparcets.core.words import percent
from sparcets.methods.own.discriminator import ORDINARY, TYPICAL
from sparcets.methods.own.ensemble import Belief, Ensemble, standardised
from sparcets.methods.own.model import FittedModel
from sparcets.methods.own.projection import Projection
from sparcets.methods.own.proposals import propose
from sparcets.methods.own.space import EditSpace, Group
from sparcets.methods.own.states import ALL, Candidate, Course, Move, State, Windows
from sparcets.methods.request import Answers, Request
from sparcets.training.device import threads_for

NARROWEST = 2  # parts that a window has at least, unless a cap asks for fewer
ROUNDS = 24
NEAREST = 24  # real series of the target, from which those are chosen that need the least change
DONORS = (6, 6)  # real series that a search starts from, one batch after the other until one is believed
# Courses made of the query itself: other levels, in standard deviations, other sizes, times and smoother ones.
LEVELS, SIZES, SHIFTS, REACHES = (1.0, 2.0), (0.5, 1.5), (-1 / 8, -1 / 16, 1 / 16, 1 / 8), (1, 3)
OTHERS = 3  # real series from which further answers start
ENOUGH = 0.95  # of what the whole course convinces, that is kept
AMOUNTS = (1.25, 1.5, 2.0, 3.0)  # tried where the whole way to a real series is not enough
WEAKER = (0.9, 0.75, 0.5)  # shares of an amount, tried where constraints alter what edits make
NARROWER = 1e-5  # price of each part of a window
VISIBLE = 0.1  # standard deviations from which on a change is visible
MOST_DOUBT = 6.0  # beyond which a head's log-probability says nothing of a direction
BATCH = {"cpu": 32, "cuda": 2048}  # candidates per pass
MIXTURES = 8  # of each query that discriminators learn from
MAX_OVERLAP = 0.5  # of the changed entries of different answers
STEPS_BACK = (0, 1, 2, 4, 8)  # from the last state, that the selector is asked about


def answer(request: Request, model: FittedModel) -> Answers:
    """Answer a batch of queries of one length, one by one: an answer does not depend on its company."""
    B, n, families = len(request), request.n, model.ensemble.selector.families
    series = np.repeat(request.X, n, axis=0)
    status, reason = np.full(B * n, "not_found", dtype="<U9"), np.full(B * n, "", dtype=object)
    proba = np.full((B * n, request.info.n_classes), np.nan)
    support = np.full((B * n, len(families)), np.nan)
    lists: list[tuple[Edit, ...]] = [()] * (B * n)
    with threads_for(BATCH["cpu"] * request.X[0].size):
        for i in range(B):
            search, found = _search(request.select(np.array([i])), model)
            for k in range(n):
                row = i * n + k
                if k >= len(found) or (k and not found[k].valid):
                    reason[row] = search.why_fewer(sum(one.valid for one in found))
                    continue
                best = found[k]
                if not best.valid:
                    reason[row] = search.why_none(best)
                    best = search.attempt(best)
                series[row], lists[row] = best.series, tuple(search.edits(best))
                assert best.proba is not None
                proba[row] = best.proba
                if best.valid:
                    status[row] = "neighbour" if search.is_whole(best) else "refined"
                    support[row], reason[row] = best.support, search.against(best)
    return Answers(
        counterfactual=series,
        status=status,
        reason=reason.astype(str),
        proba=proba,
        families=families,
        support=support,
        edit_lists=EditLists(tuple(lists)),
    )


def candidates(request: Request, model: FittedModel, seed: int) -> Iterator[tuple[int, FloatArray]]:
    """Yield the target of each query, and all answers to it that reach the target (answers, time, features).

    With them come mixtures of the query and real series at random, in which any part of the query may be left: what
    the discriminators have not seen, they do not know.
    """
    rng = generator(seed, "mixtures")
    with threads_for(BATCH["cpu"] * request.X[0].size):
        for i in range(len(request)):
            yield_to_urgent_work()
            search = QuerySearch(request.select(np.array([i])), model)
            search.run()
            made = [one.series[None] for one in search.offered if one.valid]
            yield search.target, np.concatenate([*made, search.mixtures(rng)])


def _search(request: Request, model: FittedModel) -> tuple[QuerySearch, list[Candidate]]:
    """Return the search for one query and what it found; one that breaks laws only if none that keeps them is valid."""
    search = QuerySearch(request, model)
    found = search.run()
    if not found[0].valid and search.projection.yields:
        unlawful = QuerySearch(request, model, lawful=False)
        others = unlawful.run()
        if others[0].valid:
            return unlawful, others
    return search, found


class QuerySearch:
    """The search for one query.

    Parameters
    ----------
    request
        One query, without padding.
    model
        What was fitted, for series of its length.
    lawful
        Whether no law of the data may be broken; else constraints break laws.
    """

    def __init__(self, request: Request, model: FittedModel, *, lawful: bool = True) -> None:
        self.request, self.model = request, model
        self.query: FloatArray = request.X[0]
        self.target = int(request.target[0])
        long = model.long
        self.ensemble: Ensemble = model.ensemble if long is None else long.judging(model.ensemble)
        self.prototypes = model.prototypes if long is None else long.prototypes.at_length(len(self.query))
        bound = request.constraints
        self.allowed: BoolArray = (request.series.measured & bound.allowed)[0]
        self.projection = Projection(request, model.space, lawful=lawful)
        self.space: EditSpace = self.projection.space
        self.windows = Windows(len(self.query), self.projection.borders)
        self.own = self.space.coordinates.to_coordinates(self.query)
        self.most = None if request.at_most is None else int(request.at_most[0])
        self.enough: Candidate | None = None  # the first that would do without the caps
        self.offered: list[Candidate] = []  # what was found by every course

    @property
    def groups(self) -> tuple[Group, ...]:
        """Groups that may change."""
        return self.space.groups

    # Candidates.

    @cached_property
    def donors(self) -> list[Course]:
        """The nearest real series of the target."""
        own = standardised(self.request.series, self.prototypes.scaler, gaps=True).values
        found = self.prototypes.nearest(torch.as_tensor(own), np.array([self.target]), NEAREST)[0]
        found = found[found >= 0]
        values = self.space.coordinates.to_coordinates(self.prototypes.series.values[found])
        rows = self.prototypes.rows[found].tolist()
        courses = [Course("follow", 1.0, course, row) for course, row in zip(values, rows, strict=True)]
        asked = self.ask([self.whole] * len(courses), courses)
        asked.sort(key=lambda one: (one.margin <= 0, not one.real, one.price))
        return [one.course for one in asked[: sum(DONORS)]]

    @property
    def whole(self) -> State:
        """The state in which every group follows at all steps."""
        return State(np.array([[0, self.windows.n_parts]] * len(self.groups)))

    def mixtures(self, rng: np.random.Generator) -> FloatArray:
        """Return series (mixtures, time, features) in which each group follows a real series in any window, or not."""
        n, n_groups = MIXTURES * bool(self.donors), len(self.groups)
        ends = np.sort(rng.integers(0, self.windows.n_parts + 1, (n, n_groups, 2)), axis=2)
        ends[rng.random((n, n_groups)) < 1 / 3] = 0, self.windows.n_parts
        ends[rng.random((n, n_groups)) < 1 / 2] = 0
        courses = [self.donors[int(k)] for k in rng.integers(0, max(1, len(self.donors)), n)]
        return self.projection(self.make([State(windows) for windows in ends], courses)) if n else self.query[None][:0]

    def made_of_query(self) -> list[Course]:
        """Return the courses that are made of the query itself."""
        n = len(self.own)
        spread = self.model.space.spread * np.where(self._direction() < 0, -1.0, 1.0)
        edits = [("level", amount) for amount in LEVELS] + [("size", amount) for amount in SIZES]
        edits += [("shift", float(round(share * n))) for share in SHIFTS if round(share * n)]
        edits += [("smooth", float(reach)) for reach in REACHES if 2 * reach < n]
        courses = []
        for kind, amount in edits:
            unit = spread if kind == "level" else None
            whole = self._edit(kind, amount, tuple(range(self.own.shape[1])), 0, n, course=unit)
            courses.append(Course(kind, amount, KINDS[kind](self.own, whole), unit=unit))
        return courses

    def proposed(self) -> list[Course]:
        """Return what the generator makes of the query, with many changes and with few; nothing without a generator."""
        if self.model.generator is None:
            return []
        x = self.ensemble.filled(self.ensemble.standardise(self.query[None]))[0]
        residuals = propose(self.model.generator, x, self.target).double().cpu().numpy()
        made = self.query.astype(np.float64) + residuals * self.request.info.scaler.scale
        courses = self.space.coordinates.to_coordinates(np.where(self.allowed, made, self.query))
        return [Course("follow", 1.0, course) for course in courses]

    def _direction(self) -> FloatArray:
        """Return the gradient of how convinced the ensemble is, summed over time (features,)."""
        ensemble = self.ensemble
        x = ensemble.standardise(self.query[None]).clone().requires_grad_()
        log_proba = ensemble.log_proba(ensemble.filled(x))[:, 0, self.target].clamp(min=-MOST_DOUBT).mean()
        (gradient,) = torch.autograd.grad(log_proba, x)
        return np.asarray(gradient[0].sum(0).double().cpu().numpy())

    def make(self, states: Sequence[State], courses: Sequence[Course]) -> FloatArray:
        """Return the series (states, time, features) of states that follow some courses, before any constraint."""
        weights = np.zeros((len(states), *self.own.shape))
        for weight, state in zip(weights, states, strict=True):
            for group, (first, last) in zip(self.groups, state.windows.tolist(), strict=True):
                if last > first:
                    weight[:, group.columns] = state.amount * self.windows.weights(first, last)[:, None]
        changed = self.own + weights * np.nan_to_num(np.stack([course.values for course in courses]) - self.own)
        return self.space.coordinates.to_series(changed, np.broadcast_to(self.query, changed.shape))

    def ask(self, states: Sequence[State], courses: Sequence[Course]) -> list[Candidate]:
        """Return candidates with what the ensemble says of them."""
        if not states:
            return []
        proposed = self.make(states, courses)
        made = self.projection(proposed)
        score, margin = self._convinced(made)
        scale = self.request.info.scaler.scale
        visible = (np.abs(np.nan_to_num(made - self.query)) > VISIBLE * scale)[:, self.allowed].mean(1)
        per_edit, per_change = self.model.prices
        n_edits = np.array([state.n_edits for state in states]) + self.projection.altered(proposed, made)
        price = per_change * visible + per_edit * n_edits
        price += NARROWER * np.array([np.diff(state.windows).sum() for state in states])  # of equal ones, the narrowest
        real = self._are_real(made)
        said = [values.tolist() for values in (score, margin, price, real, n_edits)]
        return [Candidate(*one) for one in zip(states, courses, made, *said, strict=True)]

    @cached_property
    def realism(self) -> Tensor:
        """How real an answer has to look (kinds,): as a typical recording, or as the query if that looks less real."""
        x = self.ensemble.standardise(self.query[None])
        classes = torch.arange(self.ensemble.levels.shape[1], device=x.device)
        own = self.ensemble.realism(x.expand(len(classes), -1, -1), classes).amax(1)
        return own.clamp(ORDINARY, TYPICAL)

    @torch.no_grad()
    def _convinced(self, made: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return how convinced the least convinced head or discriminator is, and the lead of the target (series,)."""
        ensemble, target = self.ensemble, self.target
        x, size = ensemble.standardise(made), BATCH[ensemble.device.type]
        proba = torch.cat([ensemble.log_proba(part) for part in torch.split(x, size)], 1).exp().double()
        own = proba[:, :, target]
        others = proba.clone()
        others[:, :, target] = -1.0
        lead = own[0] - others[0].amax(1)
        if self.request.confidence is not None:
            lead = torch.minimum(lead, own[0] - self.request.confidence)
        score = (own / ensemble.levels[:, target, None]).clamp(max=1.0).amin(0)
        realism = ensemble.realism(x, torch.full((len(x),), target, device=x.device)) / self.realism[:, None]
        score = torch.minimum(score, realism.clamp(max=1.0).amin(0))
        return score.cpu().numpy(), lead.cpu().numpy()

    def n_changed(self, made: FloatArray) -> int:
        """Return how many entries differ from the query."""
        return int(differs(made, self.query).sum())

    # The search.

    def run(self) -> list[Candidate]:
        """Return different answers, the best first; the first may be no more than the best attempt."""
        if not self.groups:
            return [self._nothing()]
        whole = self.whole
        offered = self.offered = self._offered(self._between_frozen()) if self.projection.borders else []
        if not any(one.good for one in offered):
            offered += self._offered(whole)
        if not offered:
            return [self._nothing()]
        answers = [self._essential(max(offered, key=lambda one: one.rank))]
        if self.request.n > 1 and answers[0].valid:
            offered += self._others(whole, answers[0])
        while len(answers) < self.request.n:
            left = [one for one in offered if one.valid and all(self._differ(one, known) for known in answers)]
            if not left:
                break
            best = max(left, key=lambda one: one.rank)
            offered.remove(best)
            best = self._essential(best)
            answers += [best] if all(self._differ(best, known) for known in answers) else []
        return answers

    def _between_frozen(self) -> State:
        """Return the state in which each group follows in its longest window without a frozen step."""
        free = [np.logical_and.reduce(self.projection.free[:, group.columns], axis=1) for group in self.groups]
        return State(np.array([self.windows.longest(steps) for steps in free]))

    def _offered(self, start: State) -> list[Candidate]:
        """Return what is found from a state by all courses; of the real series, more only if the first do not do."""
        courses = self._working(start, [*self.proposed(), *self.made_of_query()]) + self.donors[: DONORS[0]]
        offered = self._from(start, courses)
        if not any(one.good for one in offered):
            offered += self._from(start, self.donors[DONORS[0] :])
        return offered

    def is_whole(self, one: Candidate) -> bool:
        """Return whether an answer is the whole course of a real series."""
        everywhere = (one.state.windows == [0, self.windows.n_parts]).all()
        return bool(one.course.row is not None and one.state.amount == 1 and everywhere)

    def _working(self, whole: State, courses: Sequence[Course]) -> list[Course]:
        """Return the courses that convince the explained model where all groups follow them."""
        return [one.course for one in self.ask([whole] * len(courses), courses) if one.margin > 0]

    def _others(self, whole: State, best: Candidate) -> list[Candidate]:
        """Return what is found without one of the groups of an answer."""
        found: list[Candidate] = []
        for group in best.state.followers:
            found += self._from(whole.moved(Move(group, 0, 0)), self.donors[:OTHERS])
        return found

    def _differ(self, one: Candidate, other: Candidate) -> bool:
        mine, others = (differs(found.series, self.query) for found in (one, other))
        return bool((mine & others).sum() <= MAX_OVERLAP * (mine | others).sum())

    def _from(self, start: State, courses: Sequence[Course]) -> list[Candidate]:
        """Return the best candidate that each course leads to."""
        begun = self.ask([start] * len(courses), courses)
        follow = [i for i, one in enumerate(begun) if one.course.kind == "follow"]
        unreal = [i for i in follow if not begun[i].real]
        for amount in WEAKER if unreal else ():  # of the way to a series of somebody else, whose limits are others
            less = self.ask([start._replace(amount=amount)] * len(unreal), [courses[i] for i in unreal])
            for i, one in zip(unreal, less, strict=True):
                begun[i] = one if one.real and one.margin > 0 else begun[i]
            unreal = [i for i in unreal if not begun[i].real]
        weak = [i for i in follow if begun[i].margin <= 0]
        for amount in AMOUNTS if weak else ():
            state = start._replace(amount=amount)
            for i, one in zip(weak, self.ask([state] * len(weak), [courses[i] for i in weak]), strict=True):
                begun[i] = one if one.margin > begun[i].margin else begun[i]
            weak = [i for i in weak if begun[i].margin <= 0]
        if weak and self.projection.active:  # constraints may allow one group what they do not allow all
            for i in weak:
                alone = self.ask(states := start.alone(), [courses[i]] * len(states))
                begun[i] = max([begun[i], *alone], key=lambda one: one.margin)
        return self._last_believed([self._within_caps(trail) for trail in self._give_up([[one] for one in begun])])

    def _give_up(self, trails: list[list[Candidate]]) -> list[list[Candidate]]:
        """Give up what is not needed, round by round; return the states that each start passed."""
        working = [i for i, trail in enumerate(trails) if trail[-1].margin > 0]
        working = [i for i in working if trails[i][0].real] or working
        enough = ENOUGH * min(1.0, max((trails[i][0].score for i in working), default=1.0))
        active = [i for i in working if trails[i][0].score >= enough]
        needed: list[set[Move]] = [set() for _ in trails]  # what could not be given up, and is not tried again soon
        tried_again = set[int]()
        for _ in range(ROUNDS):
            moves = [
                (i, move) for i in active for move in self._moves(trails[i][-1], NARROWEST) if move not in needed[i]
            ]
            states = [trails[i][-1].state.moved(move) for i, move in moves]
            found = self.ask(states, [trails[i][-1].course for i, _ in moves])
            for i in list(active):
                best = None
                for (k, move), one in zip(moves, found, strict=True):
                    if k != i:
                        continue
                    if one.score < enough or one.margin <= 0:
                        needed[i].add(move)
                    elif trails[i][-1].real and not one.real:
                        continue  # no recording moves like that; a wider or a narrower window may
                    elif one.price < trails[i][-1].price - 1e-6 and (
                        best is None or (best.real, -best.price) < (one.real, -one.price)
                    ):
                        best = one
                if best is not None:
                    trails[i].append(best)
                elif i in tried_again:
                    active.remove(i)
                else:  # a whole edit may have become needless since
                    tried_again.add(i)
                    needed[i] = {move for move in needed[i] if move.last}
        return trails

    def _moves(self, one: Candidate, narrowest: int) -> list[Move]:
        """Return what can be given up of a candidate: windows and, where constraints alter it, a part of its amount."""
        moves = one.state.moves(narrowest)
        if one.n_edits > one.state.n_edits and one.course.kind == "follow" and one.state.amount > WEAKER[-1]:
            moves += [Move(ALL, 0, 1, one.state.amount * share) for share in WEAKER]
        return moves

    def _fits(self, one: Candidate) -> bool:
        """Return whether a candidate obeys the caps."""
        most, edits = self.most, self.request.edits
        return (most is None or self.n_changed(one.series) <= most) and (edits is None or one.n_edits <= edits)

    def _within_caps(self, trail: list[Candidate]) -> list[Candidate]:
        """Go on below the caps, convinced or not; then more is done of the little that is left."""
        if self._fits(trail[-1]):
            return [one for one in trail if self._fits(one)]
        now = trail[-1]
        if now.margin > 0 and (self.enough is None or now.price < self.enough.price):
            self.enough = now
        while not self._fits(now) and now.state.n_edits:
            moves = [now.state.moved(move) for move in self._moves(now, 1)]
            found = self.ask(moves, [now.course] * len(moves))
            fitting = [one for one in found if self._fits(one) and one.state.n_edits]
            if fitting:
                now = max(fitting, key=lambda one: (one.margin > 0, one.score, one.margin))
                break
            # Of what saves something, that which convinces most.
            now = max(found, key=lambda one: one.score + one.margin - one.price)
        if now.margin <= 0 and now.state.n_edits and now.course.kind == "follow":
            more = self.ask([now.state._replace(amount=amount) for amount in AMOUNTS], [now.course] * len(AMOUNTS))
            more = [one for one in more if self._fits(one)]
            enough = [one for one in more if one.margin > 0]
            now = enough[0] if enough else max([now, *more], key=lambda one: one.margin)
        return [now]

    def _last_believed(self, trails: Sequence[list[Candidate]]) -> list[Candidate]:
        """Return the last state of each trail that is valid, believed and looks real; else the best of some."""
        tried: list[list[Candidate]] = [[] for _ in trails]
        for back in STEPS_BACK:
            asked = [
                (i, trail[-1 - back])
                for i, trail in enumerate(trails)
                if back < len(trail) and not any(one.good for one in tried[i])
            ]
            self._review([one for _, one in asked])
            for i, one in asked:
                tried[i].append(one)
        return [max(some, key=lambda one: one.rank) for some in tried]

    def _review(self, found: Sequence[Candidate]) -> None:
        """Ask the user's model and the selector about candidates, as their edits give them."""
        if not found:
            return
        edits = [self._all_edits(one) for one in found]
        made = np.stack([apply_edits(self.query, own) for own in edits])
        proba, belief = self.request.classifier.outputs_unchecked(Series(made)), self._believe(made)
        support, believed = (values.cpu().numpy() for values in (belief.support.double(), belief.believed))
        real = self._are_real(made)
        for i, one in enumerate(found):
            one.series, one.n_edits, one.proba, one.support = made[i], len(edits[i]), proba[i], support[i]
            one.valid = self._fits(one) and self._reached(proba[i])
            one.believed, one.real = bool(believed[i]), bool(real[i])

    def _reached(self, proba: FloatArray) -> bool:
        """Return whether probabilities (classes,) of an answer reach the target."""
        return bool(self.request.is_reached(proba[None])[0])

    def _believe(self, made: FloatArray) -> Belief:
        target = torch.full((len(made),), self.target, device=self.ensemble.device)
        return self.ensemble.believe(self.ensemble.standardise(made), target)

    def _are_real(self, made: FloatArray) -> BoolArray:
        """Return whether series keep the limits of recordings (ranges, moves and bends), and the laws (series,)."""
        inside = np.ones(made.shape[:2], dtype=bool)
        looks = compare_shape(np.broadcast_to(self.query, made.shape), made, inside, self.request.info, None)
        return np.asarray((looks["outside"] == 0) & (looks["jumps"] == 0) & self.projection.are_lawful(made))

    # Edits.

    def _edit(
        self,
        kind: str,
        amount: float,
        columns: tuple[int, ...],
        start: int,
        end: int,
        *,
        course: FloatArray | None = None,
        row: int | None = None,
        rise: tuple[int, int] = (0, 0),
    ) -> Edit:
        """Return an edit of some columns in a window."""
        names, coordinates = self.request.info.feature_names, self.space.coordinates
        return Edit(
            features=tuple(names[f] for f in coordinates.moved_by(columns)),
            start=start,
            end=end,
            kind=kind,
            amount=amount,
            columns=columns,
            row=row,
            rise=rise,
            course=course,
            coordinates=coordinates,
            steps=len(self.query),
        )

    def _smooth_edits(self, one: Candidate) -> list[Edit]:
        """Return the edits of a state."""
        course, edits = one.course, []
        for group, (first, last) in zip(self.groups, one.state.windows.tolist(), strict=True):
            if last <= first:
                continue
            start, end = self.windows.knots[first], self.windows.knots[last]
            columns, values = list(group.columns), None
            if course.kind == "follow":
                values = course.values[start:end][:, columns]
            elif course.unit is not None:
                values = course.unit[columns][None]
            edits.append(
                self._edit(
                    course.kind,
                    one.state.amount if course.kind == "follow" else course.amount,
                    group.columns,
                    start,
                    end,
                    course=values,
                    row=course.row,
                    rise=self.windows.rises(first, last),
                )
            )
        return edits

    def _all_edits(self, one: Candidate) -> list[Edit]:
        """Return the edits of a state, and what the constraints alter after them."""
        return self.projection.edits(self._smooth_edits(one))

    def edits(self, one: Candidate) -> list[Edit]:
        """Return the edits of an answer in the order of who needs them: the model, families, or realism."""
        made = self._all_edits(one)
        needs = list(one.needs.values())
        told = [replace(edit, needed_by=need) for edit, need in zip(made, needs, strict=False)]
        told.sort(key=lambda edit: NEEDS.index(edit.needed_by[0]))
        return told + made[len(needs) :]

    def _essential(self, one: Candidate) -> Candidate:
        """Return an answer without the edits that nobody needs, and with who needs the others."""
        while True:
            groups = one.state.followers
            states = [one.state.moved(Move(group, 0, 0)) for group in groups]
            without = self.ask(states, [one.course] * len(states))
            one.needs = dict(zip(groups, self._needs(one, without), strict=True))
            spare = [less for less, group in zip(without, groups, strict=True) if not one.needs[group]]
            if not one.valid or not spare:
                break
            less = max(spare, key=lambda one: one.score)
            self._review([less])
            if less.standing < one.standing:
                break
            one = less
        one.needs = {group: needs or ("realism",) for group, needs in one.needs.items()}
        return one

    def _needs(self, one: Candidate, without: Sequence[Candidate]) -> list[tuple[str, ...]]:
        """Return who needs each edit of an answer, by the same answer without it."""
        if not without or one.support is None:
            return []
        made = np.stack([apply_edits(self.query, self._all_edits(less)) for less in without])
        lost = ~self.request.is_reached(
            self.request.classifier.outputs_unchecked(Series(made)), np.zeros(len(made), int)
        )
        fewer = (one.support > MAJORITY) & (self._believe(made).support.cpu().numpy() <= MAJORITY)
        others = other_kinds(self.ensemble.selector.families)
        unreal = (one.real & ~self._are_real(made)) | fewer[:, ~others].any(1)
        needs = np.stack([lost, fewer[:, others].any(1), unreal], axis=1)
        return [tuple(need for need, row in zip(NEEDS, of_edit, strict=True) if row) for of_edit in needs]

    def against(self, one: Candidate) -> str:
        """Return what speaks against a valid answer: the laws that it breaks; empty if it breaks none."""
        broken = [] if self.projection.are_lawful(one.series[None])[0] else self.projection.broken_laws(one.series)
        if not broken:
            return ""
        one_law = len(broken) == 1
        return f"the constraints break {'a law' if one_law else 'laws'} of the data: {'; '.join(map(str, broken))}"

    # Where nothing is found.

    def attempt(self, best: Candidate) -> Candidate:
        """Return the best attempt; one that reaches the target beyond a cap is none, and nothing is changed then."""
        assert best.proba is not None
        return self._nothing() if self._reached(best.proba) else best

    def _nothing(self) -> Candidate:
        state = State(np.zeros((len(self.groups), 2), dtype=np.int64))
        proba = self.request.classifier.outputs_unchecked(Series(self.query[None]))[0]
        return Candidate(state, Course("follow", 1.0, self.own), self.query.copy(), 0.0, -1.0, 0.0, True, proba=proba)

    def why_none(self, best: Candidate) -> str:
        """Return why the best attempt is no answer."""
        assert best.proba is not None
        failed = f"no change was found that convinces {self.request.attempt_words(0, best.proba)}"
        if self.enough is not None:
            n_free, n = max(int(self.allowed.sum()), 1), self.enough.n_edits
            share = percent(self.n_changed(self.enough.series) / n_free)
            failed += f"; {n} edit{'s' * (n != 1)} that change{'s' * (n == 1)} {share} would do"
        return self.request.why_missed(0, best.proba, failed)

    def why_fewer(self, n: int) -> str:
        """Return why there are not more answers than ``n``."""
        if not n:
            return "not even one answer was found; the first has the best attempt"
        return "only 1 answer was found" if n == 1 else f"only {n} different answers were found"
