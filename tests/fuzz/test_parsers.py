import random

import pytest

from tests.fuzz.fuzzing import Parser, fuzz, fuzz_guided
from tests.fuzz.parsers import PARSERS


@pytest.mark.parametrize("parser", PARSERS, ids=[parser.name for parser in PARSERS])
def test_hostile_input_is_read_or_refused_in_one_sentence(parser: Parser) -> None:
    fuzz(parser, random.Random(parser.name))


@pytest.mark.slow
@pytest.mark.parametrize("parser", PARSERS, ids=[parser.name for parser in PARSERS])
def test_input_that_reaches_new_lines_is_read_or_refused_too(parser: Parser) -> None:
    fuzz_guided(parser, random.Random())
