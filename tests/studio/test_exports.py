"""Files made of answers: no cell is a formula, and figures do not wait behind a search."""

import asyncio
import threading
from dataclasses import replace
from io import BytesIO

import numpy as np
import pandas as pd
import pytest

from sparcets.studio.exports import render
from sparcets.studio.models import ExplainRequest, Limits
from sparcets.studio.service import StudioService
from sparcets.studio.workspace import Workspace
from sparcets.web.errors import ApiError

from .conftest import Sample


@pytest.fixture
def service(sample: Sample) -> StudioService:
    return StudioService(Workspace(sample.folder), Limits(), "cpu")


def test_no_text_of_the_table_is_a_formula(service: StudioService) -> None:
    e = service.answers.explanation(ExplainRequest(explainer="nearest", rows=[0, 1]))
    names = ("=left", "+right", "-top", "@idle")
    e = replace(
        e, ids=np.array(["=1+1", "trial 7"]), info=replace(e.info, feature_names=names, units=("-", "", "m", "V"))
    )
    table = pd.read_csv(BytesIO(render(e, "csv", 0)), keep_default_na=False)
    assert set(table["id"]) == {"'=1+1", "trial 7"} and set(table["feature"]) <= {f"'{name}" for name in names}
    assert {"'-"} <= set(table["units"]) <= {"'-", "", "m", "V"}
    assert table["mean_change"].tolist() == pytest.approx(e.to_frame()["mean_change"].tolist())  # numbers stay numbers
    assert (table["mean_change"] < 0).any()
    service.close()


def test_there_must_be_such_an_answer(service: StudioService) -> None:
    e = service.answers.explanation(ExplainRequest(explainer="nearest", rows=[0]))
    with pytest.raises(ApiError, match="no answer 1: there are 1"):
        render(e, "png", 1)
    service.close()


def test_a_file_does_not_wait_behind_a_search(service: StudioService) -> None:
    released = threading.Event()

    async def run() -> None:
        search = asyncio.create_task(service.run(lambda: released.wait(60)))
        await asyncio.sleep(0)
        assert await service.render(lambda: "file") == "file"
        assert not search.done()
        released.set()
        assert await search

    asyncio.run(run())
    service.close()
