"""Side inputs as features that are constant over time, and back; and what is refused."""

import json

import numpy as np
import pandas as pd
import pytest
import torch

from sparcets.core.errors import DataError, FeatureMismatchError, NonFiniteError, ShapeError
from sparcets.core.side_inputs import SideInputs, check_no_side, one_side

SIDE = {"age": np.array([63, 41]), "dose": np.array([[0.1, 1.0], [0.0, 2.0]]), "smoker": [True, False]}
KNOWN = SideInputs.of(SIDE)
X = np.arange(16, dtype=np.float32).reshape(2, 4, 2)


def test_there_and_back_they_keep_values_types_and_shapes():
    table = KNOWN.table(SIDE, 2)
    assert table.tolist() == [[63, 0.1, 1.0, 1], [41, 0.0, 2.0, 0]] and KNOWN.n_columns == 4
    assert KNOWN.column_names == ("side.age", "side.dose[0]", "side.dose[1]", "side.smoker")
    whole = KNOWN.attach(X, table)
    assert whole.shape == (2, 4, 6) and (whole[:, :, 2:] == table[:, None]).all()
    series, side = KNOWN.split(whole)
    assert np.array_equal(series, X)
    for name, array in KNOWN.typed(side).items():
        assert np.array_equal(array, SIDE[name]) and array.dtype == np.asarray(SIDE[name]).dtype
    tensors, parts = KNOWN.split(torch.from_numpy(whole))
    assert tensors.shape == (2, 4, 2) and parts["dose"].tolist() == SIDE["dose"].tolist()


def test_types_are_as_narrow_as_the_values_and_padding_is_zero():
    for value, dtype in ((0.5, np.float32), (2**24, np.float32), (2**24 + 1, np.float64), (0.1, np.float64)):
        known = SideInputs.of({"v": [value, value]})
        whole = known.attach(X, known.table({"v": [value, value]}, 2))
        assert whole.dtype == dtype and known.typed(known.split(whole)[1])["v"].tolist() == [value, value]
    whole = KNOWN.attach(X, KNOWN.table(SIDE, 2), np.array([1, 3]))
    assert (whole[0, 1:] == 0).all() and (whole[1, 3:] == 0).all() and (whole[1, :3, 2] == 41).all()
    assert KNOWN.split(whole)[1]["age"].tolist() == [63, 41]


def test_they_are_stored_as_json_and_taken_as_frames_and_tensors():
    assert SideInputs.from_dict(json.loads(json.dumps(KNOWN.to_dict()))) == KNOWN
    for wrong in ({"names": ["age"]}, {"shapes": [[], [0], []]}, {"dtypes": ["int64", "<U3", "bool"]}):
        with pytest.raises(ValueError, match="do not fit together"):
            SideInputs.from_dict(KNOWN.to_dict() | wrong)
    frame = pd.DataFrame({"age": [63, 41], "dose": [0.5, 1.0]}, index=[7, 3])
    assert SideInputs.of(frame).names == ("age", "dose")
    found = SideInputs.of(frame).table({"dose": torch.tensor([0.5, 1.0]), "age": [63, 41]}, 2)
    assert found.tolist() == [[63, 0.5], [41, 1]]


@pytest.mark.parametrize(
    ("side", "error", "message"),
    [
        (None, DataError, r"Ex was fitted with side inputs: pass side=\{'age': …, 'dose': …, 'smoker': …\}"),
        ([1, 2], DataError, r"side must map the names .* side=\{'age': ages\}, got list"),
        ({**SIDE, "aeg": [1, 2]}, DataError, "no side input 'aeg'. Did you mean 'age'"),
        ({"age": [1, 2], "dose": SIDE["dose"]}, DataError, "the side input 'smoker' is missing. Ex was fitted with"),
        ({**SIDE, 3: [1, 2]}, DataError, "named by the arguments of the model, so by text, got 3"),
        ({**SIDE, "age": [1, 2, 3]}, ShapeError, r"side\['age'\] must have 2 rows, one per series, got 3"),
        ({**SIDE, "age": 63}, ShapeError, r"side\['age'\] must have a row per series, got shape \(\)"),
        ({**SIDE, "age": [[1], [2]]}, FeatureMismatchError, r"with side\['age'\] of shape \('batch',\), got \(2, 1\)"),
        ({**SIDE, "age": [63.5, 41]}, FeatureMismatchError, r"whole numbers as side\['age'\], got 63.5"),
        ({**SIDE, "dose": [[0.1, 1], [np.nan, 2]]}, NonFiniteError, r"side\['dose'\] holds NaN or infinity in row 1"),
        ({**SIDE, "smoker": ["yes", "no"]}, DataError, r"side\['smoker'\] must hold numbers, got <U3. Encode it as"),
        ({**SIDE, "age": [2**60, 1]}, DataError, r"whole numbers beyond 2\*\*53"),
        ({**SIDE, "dose": [[0.1, 1], [2]]}, ShapeError, r"side\['dose'\] is a nested list with rows of unequal length"),
    ],
)
def test_what_is_wrong_is_said(side, error, message):
    with pytest.raises(error, match=message):
        KNOWN.table(side, 2, owner="Ex")


def test_side_inputs_are_given_once_and_only_where_they_belong():
    check_no_side(None, "Ex")
    with pytest.raises(DataError, match="Ex was fitted without side inputs: leave side= out"):
        check_no_side(SIDE, "Ex")
    assert one_side(None, None) is None and one_side(SIDE, None) is SIDE and one_side(None, SIDE) is SIDE
    with pytest.raises(DataError, match="the data set has side inputs of its own"):
        one_side(SIDE, SIDE)
