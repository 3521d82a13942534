"""The program exits silently and soon, whatever the allocator is doing."""

import time

import pytest

pytestmark = pytest.mark.whole_end("how a process ends is what is tested")

WITHOUT_A_THREAD = pytest.mark.slow("ends that differ only by having no thread of ours")

SMALL = {"BUDDY_BLOCK_SIZE_MB": "16", "BUDDY_BLOCK_COUNT": "1"}
HEAD = "tensor = pinned(8)\n"

# Ends of what a fork's torch or the released library may end in another order: of objects, handlers, streams and threads.
RELEASE = pytest.mark.release
LATE = """class Late:
    kept = tensor
sys.modules['late'] = Late"""  # Freed during interpreter shutdown.
ENDINGS = [
    "pass",
    LATE,
    "raise SystemExit(0)",
    "os._exit(0)",
    "import atexit; atexit.register(lambda: pinned(9))",
    "import atexit; atexit.register(torch._C._host_emptyCache)",
    "torch.cuda._sleep(300_000_000); tensor.to('cuda', non_blocking=True); del tensor",
]
OF_RELEASE = ("pass", LATE, *ENDINGS[-3:])


@pytest.mark.parametrize("mode, ending", [
    *(pytest.param("background", it, marks=[RELEASE] if it in OF_RELEASE else []) for it in ENDINGS),
    *(pytest.param("sync", it, marks=[] if it in ("pass", LATE) else WITHOUT_A_THREAD) for it in ENDINGS),
])
def test_it_ends(run, mode, ending):
    outcome = run(HEAD + ending, **SMALL, BUDDY_WARMUP=mode)
    assert outcome.returncode == 0
    assert outcome.warnings == [] and "Error" not in outcome.stderr, outcome.stderr


def test_it_ends_with_the_background_thread_on(run):
    program = HEAD + "small = [pinned(0.1) for _ in range(9)]; tensor.to('cuda', non_blocking=True)"
    outcome = run(program, **SMALL, PYTORCH_ALLOC_CONF="pinned_use_background_threads:True")
    (warning,) = outcome.warnings
    assert "pinned_use_background_threads" in warning and "Error" not in outcome.stderr, outcome.stderr


# One second per segment; all of them would take a hundred.
SLOW = {"BUDDY_BLOCK_SIZE_MB": "256", "BUDDY_BLOCK_COUNT": "100", "BUDDY_MAX_MB": "100000", "PINBUDDY_SIM_LOCK": "0",
        "PINBUDDY_SIM_PIN_MS_PER_GB": "4000"}


@pytest.mark.parametrize("ending, status", [
    pytest.param("pass", 0, marks=RELEASE), ("raise SystemExit(3)", 3), ("os._exit(4)", 4), ("raise ValueError('training broke')", 1),
])
def test_it_ends_with_a_warm_up_in_flight(run, ending, status):
    """After the segment that is being pinned, and no later."""
    program = f"""
tensor = pinned(8)
assert warm_up()["phase"] == "running"
print(time.time(), flush=True)
{ending}
"""
    outcome = run(program, check=False, **SLOW)
    ended = time.time() - float(outcome.stdout.split()[-1])
    assert outcome.returncode == status, outcome.stderr
    assert outcome.stderr.rstrip().endswith("ValueError: training broke") == ("ValueError" in ending)
    assert ended < 10, f"it took {ended:.1f} s to end"
    # A warning says that the limit is more than most machines have.
    assert [it for it in outcome.warnings if "BUDDY_MAX_MB is" not in it] == [], outcome.stderr


@RELEASE
def test_it_ends_while_another_thread_waits_for_a_pin(run):
    """A daemon thread that returned from the wait would find the interpreter finalized. (One that returns during
    finalization, before exit handlers run, does so with stock, too.)"""
    # The next segment is pinned as soon as the last one is done, which takes five seconds: longer than a shutdown on a busy machine.
    settings = SLOW | {"PINBUDDY_SIM_PIN_MS_PER_GB": "20000", "BUDDY_BACKING": "cuda"}
    outcome = run("""
torch.cuda.init()
pinbuddy.warm_up()
until(lambda: len(segments()) == 1)
filler = pinned(256)
thread = threading.Thread(target=lambda: pinned(200), daemon=True)
thread.start()
time.sleep(0.1)
print(time.time(), flush=True)
""", check=False, **settings)
    ended = time.time() - float(outcome.stdout.split()[-1])
    assert outcome.returncode == 0, outcome.stderr
    assert ended < 20 and "terminate" not in outcome.stderr
