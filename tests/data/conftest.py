"""Files of text, written into the folder of a test."""

import pytest


@pytest.fixture
def write(tmp_path):
    def write_text(text, name="mine.csv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write_text
