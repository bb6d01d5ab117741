"""The peers as data: which function of which package, and what it wants to be given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

Output: TypeAlias = Literal["log_proba", "lifted_log_proba", "proba"]


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """One function of the package cfts.

    Attributes
    ----------
    function
        ``module:function`` inside cfts.
    about
        What it does, in one line.
    needs_gradients
        Whether it differentiates through the classifier; the others take black boxes as well.
    output
        What the classifier has to return: log-probabilities, which its softmax or cross-entropy turns back into the
        probabilities they are; the same lifted above 0, where it compares them with 0; or probabilities, where it uses
        the output as it comes.
    references
        How it takes training series: as pairs ``dataset=[(x, y), …]`` or as arrays ``X_train=, y_train=``.
    guesses_time
        Whether it takes the longer axis of a series for time, whatever we say.
    takes_seed
        Whether it draws from a generator of its own, made from ``seed=``; the others draw from the global ones.
    """

    function: str
    about: str
    needs_gradients: bool = False
    output: Output = "log_proba"
    references: Literal["pairs", "arrays"] = "pairs"
    guesses_time: bool = True
    takes_seed: bool = False


ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {
        "ab_cf": Algorithm(
            function="cf_ab_cf.ab_cf:ab_cf_generate",
            about="windows on which the classifier is least certain are taken from the nearest target series (AB-CF)",
            output="proba",  # it takes their entropy
            references="arrays",
            guesses_time=False,
        ),
        "cels": Algorithm(
            function="cf_cels.cels:m_cels_generate",
            about="a learnt saliency map blends the query with the nearest target series (M-CELS)",
            needs_gradients=True,
            output="proba",  # its loss is 1 - output
            references="arrays",
            guesses_time=False,
        ),
        "comte": Algorithm(
            function="cf_comte.comte:comte_cf",
            about="whole features are swapped, one by one, with those of a near target series (CoMTE)",
        ),
        "confetti": Algorithm(
            function="cf_confetti.confetti:confetti_nsga_cf",
            about="a genetic search decides which steps of a window come from the nearest target series (CONFETTI)",
            takes_seed=True,
        ),
        "fastpace": Algorithm(
            function="cf_fastpace.fastpace:fastpace_cf",
            about="starts at the nearest target series and gives blocks back to the query, coarse to fine (FastPACE)",
            takes_seed=True,
        ),
        "glacier": Algorithm(
            function="cf_glacier.glacier:glacier_cf",
            about="gradient descent from the nearest target series towards the query (Glacier)",
            needs_gradients=True,
        ),
        "multispace": Algorithm(
            function="cf_multispace.multispace:multispace_cf",
            about="a genetic search over masks: few, contiguous, plausible changes from a target series (Multi-SpaCE)",
        ),
        "native_guide": Algorithm(
            function="cf_native_guide.native_guide:native_guide_uni_cf",
            about="a growing window, placed by attribution, is copied from the nearest target series (Native Guide)",
            needs_gradients=True,
        ),
        "sparce": Algorithm(
            function="cf_sparce.sparce:sparce_gan_cf",
            about="cfts' own SPARCE: a generator trained anew on every single query",
            needs_gradients=True,
            output="lifted_log_proba",  # it keeps an attempt only if its output is above 0
        ),
        "topgrad": Algorithm(
            function="cf_topgrad.topgrad_cf:topgrad_cf",
            about="descent on the few entries of largest gradient in a growing segment (TopGrad-CF)",
            needs_gradients=True,
        ),
        "ts_tweaking": Algorithm(
            function="cf_ts_tweaking.ts_tweaking:ts_tweaking_knn_cf",
            about="moves in a straight line towards centres of the target class (time series tweaking, k-NN)",
        ),
        "tsevo": Algorithm(
            function="cf_tsevo.tsevo:tsevo_cf",
            about="an evolutionary search for validity, proximity and sparsity at once (TSEvo)",
            guesses_time=False,
        ),
        "wachter": Algorithm(
            function="cf_wachter.wachter:wachter_gradient_cf",
            about="gradient descent from a random training series (Wachter et al.)",
            needs_gradients=True,
        ),
    }
)
