"""What constraints promise, written down anew from the documentation and not with the library's own code."""

import numpy as np

from sparcets.core.series import Series


def index_of(feature, names):
    """Return the index of a feature that is named, or given by index."""
    return feature if isinstance(feature, int) else list(names).index(feature)


def groups_of(given, names):
    """Return the groups by index."""
    return [[index_of(f, names) for f in members] for one in given for members in one.groups.values() if members]


def frozen_entries(given, names, n_steps):
    """Return the entries (time, features) that no answer may change."""
    F = len(names)
    fixed = np.zeros((n_steps, F), dtype=bool)
    for one in given:
        fixed[:, [index_of(f, names) for f in one.immutable]] = True
        of_features = one.frozen if isinstance(one.frozen, dict) else dict.fromkeys(range(F), one.frozen)
        for feature, windows in of_features.items():
            for start, stop in windows:
                fixed[start:stop, index_of(feature, names)] = True
    for _ in range(F):  # a group with an immutable member is immutable, and so are groups that share members with it
        for members in groups_of(given, names):
            fixed[:, members] |= fixed[:, members].all(0).any()
    return fixed


def broken_constraints(given, query, made, *, names, span, lengths=None):
    """Return what does not hold, by answer (answers,)."""
    q, x, changed = query.astype(np.float64), made.astype(np.float64), made != query
    inside = Series(q, lengths).inside
    broken = {
        "an entry that may not change did": (changed & frozen_entries(given, names, q.shape[1])).any((1, 2)),
        "padding changed": (changed & ~inside[..., None]).any((1, 2)),
    }
    for one in given:
        for feature, (low, high) in one.ranges.items():
            f = index_of(feature, names)
            beyond = (x[..., f] < low) | (x[..., f] > high)
            broken[f"feature {f} left its range {low}, {high}"] = (changed[..., f] & beyond).any(1)
        for feature, limit in one.max_step.items():
            f = index_of(feature, names)
            steps, own = np.abs(np.diff(x[..., f], axis=1)), np.abs(np.diff(q[..., f], axis=1))
            larger = (steps > np.maximum(limit, own)) & inside[:, 1:]
            broken[f"feature {f} has a step larger than {limit}"] = larger.any(1)
        for feature, direction in one.direction.items():
            f, sign = index_of(feature, names), 1 if direction == "up" else -1
            broken[f"feature {f} went against {direction}"] = (sign * (x[..., f] - q[..., f]) < 0).any(1)
        if one.max_features is not None:
            broken[f"more than {one.max_features} features changed"] = changed.any(1).sum(1) > one.max_features
        for feature in one.integer:
            f = index_of(feature, names)
            broken[f"feature {f} is not whole"] = (changed[..., f] & (x[..., f] != np.rint(x[..., f]))).any(1)
        for feature, direction in one.monotone.items():
            f, sign = index_of(feature, names), 1 if direction == "up" else -1
            both = changed[:, 1:, f] & changed[:, :-1, f]
            broken[f"feature {f} is not monotone"] = (both & (sign * np.diff(x[..., f], axis=1) < 0)).any(1)
        for features in one.fixed_sum:
            members = [index_of(f, names) for f in features]
            off = np.abs(x[..., members].sum(-1) - q[..., members].sum(-1))
            size = np.maximum(np.abs(q), np.abs(x))[..., members].max(-1)
            rounding = 4 * len(members) * np.finfo(query.dtype).eps * size
            broken[f"the sum of {members} moved"] = (off > np.maximum(1e-6 * span[members].min(), rounding)).any(1)
    for members in groups_of(given, names):
        torn = changed[..., members].any(-1) & ~changed[..., members].all(-1)
        broken[f"the group {members} did not change together"] = torn.any(1)
    return broken
