"""The BUDDY_ variables, bad ones included, the settings that files have, the site's and the wheel's, and the program's life around the
allocator."""

import os

import pytest
from conftest import ALLOC_CONF, command_line, needs, report
from plugin import IS_PLUGIN, copy
from table import answers

SMALL = {"BUDDY_BLOCK_SIZE_MB": "16", "BUDDY_BLOCK_COUNT": "1"}

ONLY_IMPORTED = "import torch; print('[]')"


@pytest.mark.release
@pytest.mark.real_start("what an import says is what is tested")
def test_settings_are_reported_when_torch_is_imported(run):
    bad, unknown = sorted(run(ONLY_IMPORTED, BUDDY_THRESHOLD_MB="much", BUDDY_TYPO="1", PINBUDDY_SIM_DEVICES="0").warnings)
    assert "BUDDY_THRESHOLD_MB" in bad and "BUDDY_TYPO is no setting" in unknown
    # The first one says where messages are explained.
    assert (bad + unknown).count("(see: pinbuddy explain MESSAGE)") == 1


@pytest.mark.parametrize("quiet", [{"BUDDY_DISABLE": "1"}, {"BUDDY_LOG": "off"}])
def test_nothing_is_reported_where_nobody_wants_to_know(run, quiet):
    assert run(ONLY_IMPORTED, BUDDY_TYPO="1", BUDDY_THRESHOLD_MB="much", **quiet).warnings == []


DECISIONS = """
    rng = random.Random(7)
    live, addresses, seen = [], {}, []
    for step in range(300):
        if live and rng.random() < 0.5:
            live.pop(rng.randrange(len(live)))
        else:
            size = rng.choice([100, 70_000, 3 << 20, 5 << 20, (9 << 20) + 1])
            tensor = torch.empty(size, dtype=torch.uint8, pin_memory=True)
            if rng.random() < 0.3:
                tensor.to("cuda", non_blocking=True)
                torch.cuda.synchronize()
            live.append(tensor)
            # Blocks are numbered by first appearance, since addresses differ from run to run.
            seen.append(addresses.setdefault(tensor.data_ptr(), len(addresses)))
    torch._C._host_emptyCache()
    stats = torch.cuda.host_memory_stats()
    # All counts, except times and what this release does not count.
    left_out = ("time",) if COUNTS_WHAT_IS_ACTIVE else ("time", "active")
    stats = {name: it for name, it in stats.items() if not any(part in name for part in left_out)}
    print(json.dumps([seen, stats]))
"""


@pytest.mark.release
def test_disabled_and_below_the_threshold_every_decision_is_stocks(run):
    """I7: the same blocks are handed out, and the same counts come of it."""
    stock = run(DECISIONS, "stock").value
    assert run(DECISIONS, "fork", BUDDY_DISABLE=1).value == stock
    assert run(DECISIONS, "fork", BUDDY_THRESHOLD_MB=1000).value == stock
    # Control: the engine decides otherwise.
    assert run(DECISIONS, "fork", **SMALL).value != stock


@pytest.mark.parametrize("settings", [
    "pinned_use_cuda_host_register:True,pinned_num_register_threads:4",
    "pinned_use_background_threads:True",
    pytest.param("pinned_reserve_segment_size_mb:64", marks=needs(10, "this setting")),
    pytest.param("pinned_max_cached_size_mb:2", marks=needs(13, "this setting")),
    pytest.param("pinned_max_round_threshold_mb:1", marks=needs(13, "this setting")),
])
def test_stocks_own_settings_are_honoured(run, settings):
    stock = run(DECISIONS, "stock", PYTORCH_ALLOC_CONF=settings).value
    fork = run(DECISIONS, "fork", PYTORCH_ALLOC_CONF=settings, BUDDY_THRESHOLD_MB=1000).value
    if "background" in settings:
        # The moment at which an event is noticed depends on the thread's timing.
        assert len(fork[0]) == len(stock[0])
    elif "cached_size" in settings:
        # Memory that is unpinned at once returns at another address.
        assert fork[1] == stock[1]
    else:
        assert fork == stock
    run(DECISIONS, "fork", PYTORCH_ALLOC_CONF=settings, **SMALL)


@needs(10, "this setting")
def test_a_plan_is_made_of_what_is_not_reserved(run, plan):
    program = """
    use_gpu()
    for _ in range(12):
        live = [pinned(size) for size in (40, 2, 100, 16)]
        beside = [of_engine(it) for it in live]
        del live
    plan = pinbuddy.stats()["plan"]
    answer(beside, plan and plan["misses"], sim()["pinned_peak_bytes"] >> 20)
    """
    reserve = {"PYTORCH_ALLOC_CONF": "pinned_reserve_segment_size_mb:128", "PINBUDDY_SIM_LOCK": "0"}
    _, (beside, misses, peak) = (run(program, BUDDY_PLAN=str(plan), **reserve).value for _ in range(2))
    # 64 + 2 + 16 MiB are reserved; 100 are the plan's.
    assert (beside, misses) == ([False, False, True, False], 0) and 228 <= peak < 232


test_stocks_own_settings_beside_blocks = answers({
    # Once 128 + 64 + 4 + 256 MiB of 512 are in use, blocks serve what does not fit.
    "what is reserved serves first": pytest.param(("""
    use_gpu()
    MB = lambda: sim()["pinned_bytes"] >> 20
    beside = lambda: [of_engine(it) for it in kept]
    kept = [pinned(size) for size in (3, 40, 100, 130)]
    seen = [MB(), beside()]
    # 60 MiB are left of it, and 100 are rounded to 128.
    kept.append(pinned(100).fill_(5))
    seen.append(beside())
    place = kept[2].data_ptr()
    del kept[2]
    seen += [pinned(110).data_ptr() == place for _ in range(3)]
    # While a stream uses it, it cannot serve; later it can.
    used = pinned(110)
    torch.cuda._sleep(2 * 10**8)
    used.to("cuda", non_blocking=True)
    del used
    seen.append(of_engine(pinned(110)))
    torch.cuda.synchronize()
    again = pinned(110)
    seen += [again.data_ptr() == place, bool((kept[-1] == 5).all())]
    answer(*seen)
    """, [512, 4 * [False], 4 * [False] + [True], *6 * [True]], {
        ALLOC_CONF: "pinned_reserve_segment_size_mb:512", "PINBUDDY_SIM_LOCK": 0
    }), marks=needs(10, "this setting")),
    # #192722: below the threshold and above what is rounded, blocks of different sizes share a list of stock's.
    "a longer request never gets a shorter block": pytest.param(("""
    address = pinned(3).data_ptr()
    assert pinned(3).data_ptr() == address, "what fits is had again"
    longer = pinned(4).fill_(7)
    answer(longer.data_ptr() == address, bool((longer == 7).all()))
    """, [False, True], {
        ALLOC_CONF: "pinned_max_round_threshold_mb:1,pinned_max_cached_size_mb:1024", "BUDDY_THRESHOLD_MB": 1000
    }), marks=needs(13, "this setting")),
}, quiet=True)


def test_the_log_says_as_much_as_it_is_asked_for(run):
    outcome = run("tensor = pinned(8)", **SMALL, BUDDY_LOG="info", BUDDY_WARMUP="sync", BUDDY_TYPO=1, PINBUDDY_SIM_QUIET=1)
    lines = outcome.stderr.splitlines()
    assert all(line.startswith("pinbuddy: ") for line in lines), outcome.stderr
    counts = [sum(it.startswith(f"pinbuddy: {what}") for it in lines) for what in ("warning: ", "the warm-up has pinned ", "debug: pinned ")]
    assert counts == [1, 1, 0], outcome.stderr


@pytest.mark.release
def test_a_defect_of_the_engine_leaves_training_to_pytorch(run):
    """I9. Only a debug build can be made to break down; a released one has no such entry. The library that is tested has to be the one
    that was meant: `cargo xtask test` runs some of these tests twice, as released and with the library's assertions."""
    outcome = run("""
        library = tested_library()
        kept = [pinned(8).fill_(i) for i in range(3)]
        if not library.pinbuddy_debug_build():
            answer(hasattr(library, "pinbuddy_break_down"))
            sys.exit()
        library.pinbuddy_break_down()
        # Training continues, with old and new blocks.
        on_device = [it.to("cuda", non_blocking=True) for it in kept]
        kept += [pinned(8).fill_(i) for i in range(3, 6)]
        torch.cuda.synchronize()
        whole = all(bool((it == i).all()) for i, it in enumerate(kept))
        arrived = all(bool((it.cpu() == i).all()) for i, it in enumerate(on_device))
        del kept[1], on_device
        torch._C._host_emptyCache()
        state = pinbuddy.stats()["state"], pinbuddy.enabled(), "retired" in pinbuddy.memory_summary()
        answer(whole, arrived, *state, bool((kept[0] == 0).all()))
        """, **SMALL | {"BUDDY_BLOCK_SIZE_MB": "64", "BUDDY_WARMUP": "sync"})
    if os.environ.get("PINBUDDY_EXPECT_DEBUG") != "1":
        assert outcome.value == [False]
        return
    assert outcome.value == [True, True, "retired", False, True, True]
    assert len(outcome.warnings) == 1 and "retired" in outcome.warnings[0], outcome.stderr


PROBE = """
import json, torch, pinbuddy
from pinbuddy import _early
late = [it[0] for it in torch.cuda._queued_calls]
print(json.dumps([pinbuddy.config(), _early._cuda_is_up in late]))
"""


@pytest.fixture
def site(tmp_path):
    """``site(text)``: writes a site's file; returns its path as the variable has it."""

    def write(text: str) -> dict[str, str]:
        (path := tmp_path / "site.toml").write_text(text)
        path.chmod(0o644)
        return {"PINBUDDY_SITE": str(path)}

    return write


def test_the_environment_counts_before_the_sites_file_and_each_bad_line_is_one_warning(run, site, tmp_path):
    plan = tmp_path / "site.plan"
    variables = site(
        f'# for all jobs\nBUDDY_THRESHOLD_MB = 2\nBUDDY_MAX_MB = 64\nBUDDY_PLAN = "{plan}"\n'
        'BUDDY_GROWTH = "double"\nBUDDY_NUMA = near\nBUDDY_TRESHOLD_MB = 1\n'
    )
    file = variables["PINBUDDY_SITE"]
    outcome = run(PROBE, BUDDY_MAX_MB=128, **variables)
    config, is_early = outcome.value
    assert config["BUDDY_THRESHOLD_MB"] == {"value": 2, "origin": "site", "file": file, "remark": None}
    assert config["BUDDY_MAX_MB"] == {"value": 128, "origin": "environment", "file": None, "remark": None}
    assert config["BUDDY_LOG"] == {"value": "warn", "origin": "built-in", "file": None, "remark": None}
    assert (config["BUDDY_GROWTH"]["value"], config["BUDDY_GROWTH"]["origin"]) == ("segment", "rejected")
    # A plan that a file names is pinned as early as one that the environment names.
    assert is_early and config["BUDDY_PLAN"]["value"] == str(plan)
    said = [f"{file}, line 6, is not used: expected", f"{file}, line 7, is not used: BUDDY_TRESHOLD_MB is no", f'"double" in {file}, line 5, is neither']
    assert len(outcome.warnings) == len(said), outcome.stderr
    for part, warning in zip(said, outcome.warnings):
        assert part in warning


def test_the_settings_and_the_doctor_name_the_sites_file_also_where_it_turns_pinbuddy_off(site):
    variables = site('BUDDY_MAX_MB = 64\nBUDDY_LIVE = "0"\n')
    file = variables["PINBUDDY_SITE"]
    settings = command_line(check=True, **variables).stdout
    assert [line.split() for line in settings.splitlines() if line.startswith("BUDDY_MAX_MB")] == [["BUDDY_MAX_MB", "64", "site", file]]
    assert f"site file     {file}, sets BUDDY_MAX_MB, BUDDY_LIVE" in command_line("doctor", **variables).stdout.splitlines()
    said = report(**variables)
    assert (said["site"], said["set_by"]) == (file, {"site": ["BUDDY_MAX_MB", "BUDDY_LIVE"]})
    done = command_line("doctor", **site("BUDDY_DISABLE = true\n"))
    assert done.returncode == 1 and "BUDDY_DISABLE=1 in " in done.stdout
    assert done.stdout.endswith("To do: set BUDDY_DISABLE=0\n")


@pytest.mark.skipif(not IS_PLUGIN, reason="its package can be copied, a fork's torch cannot")
def test_a_wheels_defaults_count_after_the_sites(run, site, tmp_path):
    package = copy(tmp_path)
    (library,) = package.glob("lib/*/libtorch_pinbuddy.so")
    library.with_name("libtorch_pinbuddy.toml").write_text('BUDDY_LOG = "info"\nBUDDY_MAX_MB = "64"\n')
    config, _ = run(PROBE, PYTHONPATH=tmp_path, **site("BUDDY_MAX_MB = 32\n")).value
    assert (config["BUDDY_MAX_MB"]["value"], config["BUDDY_MAX_MB"]["origin"]) == (32, "site")
    assert config["BUDDY_LOG"] | {"file": None} == {"value": "info", "origin": "wheel", "file": None, "remark": None}
    assert config["BUDDY_LOG"]["file"].endswith("libtorch_pinbuddy.toml")
