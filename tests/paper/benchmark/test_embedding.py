"""Who is next to the counterfactuals: shares by hand, and in maps of groups that are far apart."""

import numpy as np

from sparcets_paper.benchmark.embedding import Points, embed, neighbours

RNG = np.random.default_rng(0)


def test_shares_by_hand() -> None:
    line = np.arange(3.0)[:, None]
    # Each counterfactual has two others and three targets around it, or two others and three queries.
    near = Points(queries=line + 50, targets=line, counterfactuals=line + 0.1)
    assert neighbours(near) == {"queries": 0.0, "targets": 0.6, "counterfactuals": 0.4}
    back = near._replace(queries=line, targets=line + 50)
    assert neighbours(back) == {"queries": 0.6, "targets": 0.0, "counterfactuals": 0.4}


def test_a_group_of_its_own_has_itself_for_neighbours_in_the_map_too() -> None:
    real = RNG.normal(size=(20, 6, 2))
    maps = embed(real, real + 9, {"apart": real - 30, "copies": real + 9 + RNG.normal(0, 0.01, real.shape)})
    assert neighbours(maps["apart"])["counterfactuals"] > 0.9
    assert neighbours(maps["copies"])["targets"] > 0.3 > neighbours(maps["copies"])["queries"]
