import random

import pytest

from tests.examples import at_length
from tests.fuzz.fuzzing import Parser, fuzz, fuzz_guided
from tests.fuzz.parsers import PARSERS


@pytest.mark.parametrize("share", [0.2, *at_length(1.0)])
@pytest.mark.parametrize("parser", PARSERS, ids=[parser.name for parser in PARSERS])
def test_hostile_input_is_read_or_refused_in_one_sentence(parser: Parser, share: float) -> None:
    fuzz(parser, random.Random(parser.name), share)


@pytest.mark.slow
@pytest.mark.parametrize("parser", PARSERS, ids=[parser.name for parser in PARSERS])
def test_input_that_reaches_new_lines_is_read_or_refused_too(parser: Parser) -> None:
    fuzz_guided(parser, random.Random())
