"""PyTorch's own tests of device memory, with ours in front of its allocator, in the simulator only.

The official wheel's outcomes are the reference, down to the first line of what a failure says: a test that the simulator fails still
shows how far it came. device.toml has the choice of tests, and every known failure and difference with its reason: what is not
listed fails, and so does what is listed and not so.
"""

import pytest
from conftest import DEVICE
from outcomes import ALL, LOGS, NOT_RUN, PASSED

EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
STOCK = {"stock": {}, "stock, expandable": EXPANDABLE}
# Runs with ours, and which of the official wheel's each is compared with.
OURS = {"recorded": "stock", "planned": "stock", "planned, expandable": "stock, expandable"}
# Which of them are run: with expandable segments only with `cargo xtask test --all`.
STOCK_RUNS, OUR_RUNS = ([title for title in all if ALL or "expandable" not in title] for all in (STOCK, OURS))
# Requests that a plan has to serve, since a plan that serves none shows nothing.
SERVED = 8
FAILS = {test: entry["why"] for entry in DEVICE["fails"] for test in entry["tests"]}
DIFFERS = {(entry["test"], entry["with"]): entry["why"] for entry in DEVICE.get("differs", [])}


def short(test: str) -> str:
    return test.rpartition(".")[2]


@pytest.fixture(scope="module")
def runs(upstream):
    """``runs(title)``: the outcomes of a run, made when they are first asked for."""
    if upstream.real:
        pytest.skip("only the simulator's outcomes are known")
    made = {}

    program = LOGS.parents[2] / "tests/upstream/device_steps.py"

    def plan():
        """A plan that serves what tests ask for, of a recorded program."""
        if "plan" not in made:
            LOGS.mkdir(parents=True, exist_ok=True)
            file, log = LOGS.parent / "device.plan", LOGS / "device, plan.log"
            file.unlink(missing_ok=True)
            how, _ = upstream.bench.call([upstream.fork, str(program)], log, BUDDY_DEVICE_PLAN=str(file))
            assert file.is_file(), f"no plan was made: {how}\n{log.read_text()}"
            made["plan"] = file
        return str(made["plan"])

    def runs(title):
        if title not in made:
            python, settings = upstream.fork, dict(STOCK[OURS.get(title, title)])
            if title in STOCK:
                python = upstream.stock
            elif title == "recorded":
                # With nothing planned: everything goes through ours, and is written down.
                trace, record = LOGS / "device.jsonl", LOGS / "device-recorded.plan"
                for file in (trace, record):
                    file.unlink(missing_ok=True)
                settings |= {"BUDDY_DEVICE_TRACE": str(trace), "BUDDY_DEVICE_PLAN": str(record)}
            else:
                # Before each test the program runs again, since a plan takes its regions when its own requests come.
                settings |= {"BUDDY_DEVICE_PLAN": plan(), "PINBUDDY_BEFORE_EACH": str(program)}
            made[title] = upstream.bench.python(f"device, {title}", python, upstream.device, **settings)
        return made[title]

    return runs


@pytest.mark.parametrize("title", STOCK_RUNS)
def test_stock_does_what_is_listed(upstream, runs, device_test, title):
    outcome, why = runs(title)[device_test], FAILS.get(short(device_test))
    assert outcome != NOT_RUN
    if upstream.named:
        return
    if why:
        assert outcome != PASSED, f"it passes: take it out of tests/upstream/device.toml ({why})"
        pytest.xfail(why)
    assert outcome[0] in ("passed", "skipped"), f"{outcome}, and tests/upstream/device.toml does not say why"


@pytest.mark.parametrize("title", OUR_RUNS)
def test_ours_does_what_stock_does(runs, device_test, title):
    stock, ours, why = runs(OURS[title])[device_test], runs(title)[device_test], DIFFERS.get((short(device_test), title))
    if why:
        assert ours != stock, f"it does not differ: take it out of tests/upstream/device.toml ({why})"
        pytest.xfail(why)
    assert ours == stock


@pytest.mark.parametrize("title", OUR_RUNS)
def test_a_plan_has_served_where_there_is_one(runs, title):
    served = runs(title).planned or 0
    assert (served >= SERVED) == (title != "recorded"), served


@pytest.mark.parametrize("title", STOCK_RUNS)
def test_some_pass_with_stock(runs, title):
    assert PASSED in runs(title).outcomes.values()


def test_everything_listed_is_there_and_has_a_reason(upstream):
    listed = {short(it) for it in upstream.bench.listed(upstream.stock, upstream.device)}
    for test, why in [*FAILS.items(), *((test, why) for (test, _), why in DIFFERS.items())]:
        assert (test in listed or upstream.named) and why.strip(), test
    assert all(title in OURS for _, title in DIFFERS)
    assert DEVICE["left-out"] and all(entry["tests"] and entry["why"].strip() for entry in DEVICE["left-out"])
