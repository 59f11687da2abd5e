"""One browser for the tests of a file."""

import pytest

from browser.devtools import Browser


@pytest.fixture(scope="module")
def browser():
    one = Browser()
    yield one
    one.close()
