"""Tests that are rows of a table: a program, and what it answers."""

import pytest


def answers(cases: dict[str, tuple], how: str = "run", quiet: bool = False, **settings):
    """A test for each case: a program for the fixture ``how``, what it answers, once or in each of several runs, and, where it has any,
    settings of its own and what each warning has: a text, or several. Where all is ``quiet``, a case without has no warning either."""

    @pytest.mark.parametrize("case", cases.values(), ids=list(cases))
    def test(request, case):
        program, expected, *more = case
        own = [it for it in more if isinstance(it, dict)]
        said = [[it] if isinstance(it, str) else it for it in more if it not in own]
        outcome = request.getfixturevalue(how)(program, **settings | dict(*own))
        runs = outcome if isinstance(outcome, list) else [outcome]
        found = [it.value for it in runs]
        assert found == (expected if runs is outcome else [expected]), (found, [it.stderr for it in runs])
        if said or quiet:
            heard = [line for it in runs for line in it.warnings]
            fit = [text in line for texts, line in zip(said, heard) for text in texts]
            assert len(heard) == len(said) and all(fit), [it.stderr for it in runs]

    return test
