"""Tests that are rows of a table: a program, and what it answers."""

import pytest


def answers(cases: dict[str, tuple], how: str = "run", quiet: bool = False, **settings):
    """A test for each case: a program for the fixture ``how``, what it answers, once or in each of several runs, and, where it has any,
    settings of its own and words of each warning. Where all is ``quiet``, a case without words has no warning either."""

    @pytest.mark.parametrize("case", cases.values(), ids=list(cases))
    def test(request, case):
        program, expected, *more = case
        own, said = ([it for it in more if isinstance(it, kind)] for kind in (dict, str))
        outcome = request.getfixturevalue(how)(program, **settings | dict(*own))
        runs = outcome if isinstance(outcome, list) else [outcome]
        assert [it.value for it in runs] == (expected if runs is outcome else [expected])
        if said or quiet:
            heard = [line for it in runs for line in it.warnings]
            assert len(heard) == len(said) and all(words in line for words, line in zip(said, heard)), [it.stderr for it in runs]

    return test
