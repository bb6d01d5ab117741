"""Peers: methods of other packages as explainers, so that they can be evaluated in the same way as ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from sparcets.core.registry import Registry

Output: TypeAlias = Literal["log_proba", "lifted_log_proba", "proba"]


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """One function of the package cfts, ``module:function`` inside it; ``about`` is one line."""

    function: str
    about: str
    needs_gradients: bool = False  # through the classifier; the others also work with black boxes
    output: Output = "log_proba"  # that it expects of the classifier: log-probabilities, also above 0, or probabilities
    # Training series as ``dataset=[(x, y), …]`` or as ``X_train=, y_train=``.
    references: Literal["pairs", "arrays"] = "pairs"
    guesses_time: bool = True  # whether it takes the longer axis of a series as the time axis
    takes_seed: bool = False  # as ``seed=``; the others use the global random generators


ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {
        "ab_cf": Algorithm(
            function="cf_ab_cf.ab_cf:ab_cf_generate",
            about="copies windows on which the classifier is least certain from the nearest target series (AB-CF)",
            output="proba",  # it computes their entropy
            references="arrays",
            guesses_time=False,
        ),
        "cels": Algorithm(
            function="cf_cels.cels:m_cels_generate",
            about="blends the query with the nearest target series by a learnt saliency map (M-CELS)",
            needs_gradients=True,
            output="proba",  # its loss is 1 - output
            references="arrays",
            guesses_time=False,
        ),
        "comte": Algorithm(
            function="cf_comte.comte:comte_cf",
            about="replaces whole features, one by one, by those of a near target series (CoMTE)",
        ),
        "confetti": Algorithm(
            function="cf_confetti.confetti:confetti_nsga_cf",
            about="genetic search for the steps of a window to copy from the nearest target series (CONFETTI)",
            takes_seed=True,
        ),
        "fastpace": Algorithm(
            function="cf_fastpace.fastpace:fastpace_cf",
            about="starts at the nearest target series and restores blocks of the query, coarse to fine (FastPACE)",
            takes_seed=True,
        ),
        "glacier": Algorithm(
            function="cf_glacier.glacier:glacier_cf",
            about="gradient descent from the nearest target series towards the query (Glacier)",
            needs_gradients=True,
        ),
        "multispace": Algorithm(
            function="cf_multispace.multispace:multispace_cf",
            about="genetic search over masks for few, contiguous, plausible changes (Multi-SpaCE)",
        ),
        "native_guide": Algorithm(
            function="cf_native_guide.native_guide:native_guide_uni_cf",
            about="copies a growing window, placed by attribution, from the nearest target series (Native Guide)",
            needs_gradients=True,
        ),
        "sparce": Algorithm(
            function="cf_sparce.sparce:sparce_gan_cf",
            about="SPARCE as implemented in cfts: a generator trained on every single query",
            needs_gradients=True,
            output="lifted_log_proba",  # it keeps an attempt only if its output is above 0
        ),
        "topgrad": Algorithm(
            function="cf_topgrad.topgrad_cf:topgrad_cf",
            about="gradient descent on the few entries of largest gradient in a growing segment (TopGrad-CF)",
            needs_gradients=True,
        ),
        "ts_tweaking": Algorithm(
            function="cf_ts_tweaking.ts_tweaking:ts_tweaking_knn_cf",
            about="moves the query on a straight line towards centres of the target class (time series tweaking, k-NN)",
        ),
        "tsevo": Algorithm(
            function="cf_tsevo.tsevo:tsevo_cf",
            about="evolutionary search for validity, proximity and sparsity (TSEvo)",
            guesses_time=False,
        ),
        "wachter": Algorithm(
            function="cf_wachter.wachter:wachter_gradient_cf",
            about="gradient descent from a random training series (Wachter et al.)",
            needs_gradients=True,
        ),
    }
)

PEERS = Registry(
    "peer",
    {f"cfts:{name}": f"sparcets_paper.peers.cfts:{name}" for name in ALGORITHMS},
    about={f"cfts:{name}": algorithm.about for name, algorithm in ALGORITHMS.items()},
)
