"""The plan: every cell that the tables and figures need, once."""

import pytest

from sparcets.core.errors import ConfigError, UnknownNameError
from sparcets_paper.benchmark.published import DATASETS, TARGETS
from sparcets_paper.reproduce.plans import KEPT, PARTS, SCALES, plan


def cells(what: str, scale: str = "full", repetitions: int | None = None, **other):
    return plan(what, scale, repetitions, **other).cells


def test_table1_is_four_methods_by_three_sets() -> None:
    found = [(c.dataset, c.method, c.target) for c in cells("table1", repetitions=1)]
    assert found == [
        (name, method, target)
        for name, target in (("catching", "Control"), ("motionsense", "ups"), ("moving_box", "1"))
        for method in ("ics", "gan", "countergan", "sparce")
    ]


def test_full_is_the_paper_to_the_letter() -> None:
    for cell in cells("table1"):
        assert (cell.preset, cell.settings, cell.options, cell.classifier_config) == ("paper", (), {}, {})
        assert (cell.classifier, cell.queries) == ("bilstm", None)
    assert {c.seed for c in cells("table1")} == {0, 1, 2, 3, 4}


def test_targets_are_all_classes_but_those_left_out() -> None:
    found = {name: [c.target for c in cells("targets", repetitions=1, datasets=[name])] for name in DATASETS}
    assert found == {name: list(TARGETS[name]) for name in DATASETS}


def test_ablation_switches_terms() -> None:
    found = {c.label: c.settings for c in cells("ablation", repetitions=1, datasets=["catching"])}
    assert found == {
        "SPARCE, λ4,5 = 0": ("weights.sparsity=0", "weights.smoothness=0"),
        "SPARCE, λ5 = 0": ("weights.smoothness=0",),
        "SPARCE, λ4 = 0": ("weights.sparsity=0",),
        "SPARCE": (),
        "SPARCE, λ4 trains, λ5 = 0": ("trains_sparsity=true", "weights.smoothness=0"),
        "SPARCE, λ4 trains": ("trains_sparsity=true",),
    }


def test_the_roc_curves_have_both_targets_and_every_method() -> None:
    found = {(c.label, c.target) for c in cells("figures", datasets=["moving_box"]) if c.curve}
    labels = ("ICS", "GAN", "CounteRGAN", "SPARCE", "SPARCE, λ4,5 = 0")
    assert found == {(label, target) for label in labels for target in ("0", "1")}


@pytest.mark.parametrize("scale", SCALES)
def test_all_is_the_union_and_each_cell_stands_once(scale: str) -> None:
    whole = [c.key for c in cells("all", scale)]
    assert len(set(whole)) == len(whole)
    parts = [what for what in PARTS if what != "probes" or SCALES[scale].probes]
    assert set(whole) == {c.key for what in parts for c in cells(what, scale)}
    # 4 methods + other targets + 3 terms + 2 with a gradient; Moving Box also 4 more for the curves towards 0
    n = (4 + 2 + 3 + 2) + (4 + 3 + 3 + 2) + (4 + 1 + 3 + 2 + 4)
    # The search of ICS on three sets, own units, a sigmoid; two repetitions of three longer trainings
    probes = 5 * SCALES[scale].repetitions + 2 * 3 if SCALES[scale].probes else 0
    assert len(whole) == n * SCALES[scale].repetitions + probes


def test_the_order_is_long_runs_then_the_paper_s_by_repetition_then_the_rest() -> None:
    whole = cells("all")
    labels = [c.label for c in whole]
    assert labels[:3] == ["GAN, 300 epochs", "CounteRGAN, 300 epochs", "SPARCE, 300 epochs"]
    main = [c for c in whole[3:] if c.label in ("ICS", "GAN", "CounteRGAN", "SPARCE", "SPARCE, λ4,5 = 0")]
    assert main == list(whole[3 : 3 + len(main)]) and [c.seed for c in main] == sorted(c.seed for c in main)
    # A run that loads the training of another comes after all of those.
    assert labels.index("SPARCE, λ5 = 0") > 3 + len(main) - 1 < labels.index("SPARCE, λ4 = 0")
    assert {c.seed for c in whole[-3:]} == {1} and {c.label for c in whole[-3:]} == set(labels[:3])


def test_probes_need_the_paper_s_settings() -> None:
    assert {c.label: (c.settings, c.classifier_config) for c in cells("probes", datasets=["moving_box"])} == {
        "ICS, published search": (("steps=10", "max_lambdas=5", "lambda_step=0.001"), {}),
        "SPARCE, sigmoid classifier": ((), {"output": "sigmoid"}),
        **{f"{name}, 300 epochs": (("train.epochs=300",), {}) for name in ("GAN", "CounteRGAN", "SPARCE")},
    }
    with pytest.raises(ConfigError, match="add --scale full"):
        plan("probes", "small")


def test_answers_of_the_first_repetition_are_kept() -> None:
    assert {(c.seed, c.keep) for c in cells("table1", repetitions=2, seed=7)} == {(7, KEPT), (8, 0)}
    assert {c.keep for c in cells("targets", repetitions=1) if c.target != DATASETS[c.dataset].target} == {0}


def test_settings_of_the_small_scale_are_settings() -> None:
    from sparcets.core.settings import ClassifierConfig, from_preset
    from sparcets.methods import EXPLAINERS

    for cell in cells("all", "small", 1):
        config = from_preset(EXPLAINERS.load(cell.method).config_class, "paper", cell.target)
        config.override(*cell.settings)
        ClassifierConfig.from_dict(cell.classifier_config)


def test_a_source_replaces_name_and_options() -> None:
    found = cells("table1", "small", 1, datasets=["moving_box", "catching"], sources={"moving_box": "box.npz"})
    assert {(c.dataset, c.source, bool(c.options)) for c in found} == {
        ("moving_box", "box.npz", False),
        ("catching", None, False),
    }


def test_mistakes() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'table1'"):
        plan("table", "small")
    with pytest.raises(UnknownNameError, match="no scale 'huge'"):
        plan("all", "huge")
    with pytest.raises(ConfigError, match="repetitions must be >= 1, got 0"):
        plan("all", "small", 0)


def test_a_folder_is_given_to_the_loader_of_the_set(tmp_path) -> None:
    found = cells("table1", "small", 1, datasets=["catching"], sources={"catching": str(tmp_path)})
    assert {(c.source, str(c.options)) for c in found} == {(None, str({"path": str(tmp_path)}))}
