"""A failed pin leaves no error that the next kernel, copy or wait would report (vllm#51081)."""

import pytest
from conftest import SIMULATED

# The request fails, but later launches, copies and waits work, and memory can be pinned again.
AFTER = """
def goes_on():
    on_device += 1
    torch.cuda.synchronize()
    arrived = pinned(4).fill_(7).to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    return bool((arrived.cpu() == 7).all()) and torch.cuda.current_stream().query()
""".replace("def goes_on():\n", "def goes_on():\n    global on_device\n")

HEAD = """
import pinbuddy, resource
on_device = torch.zeros(1000, device="cuda")
def refused(mib):
    try:
        return [None, pinned(mib).numel()]
    except Exception as error:
        return [type(error).__name__, str(error)]
"""


@pytest.mark.parametrize("backing", ["pages", "cuda"])
def test_an_enormous_request(ours, backing):
    """256 TiB: more than the address space, so that nothing tries to fill it."""
    kind, text, going = ours(
        HEAD + AFTER + "answer([*refused(1 << 28), goes_on()])", BUDDY_BACKING=backing, BUDDY_WARMUP="sync"
    )
    assert kind is not None and going, text


@pytest.mark.parametrize("backing", ["pages", "cuda"])
def test_no_address_space_is_left(ours, backing):
    """mmap finds no addresses, nor does the driver, unless it has reserved some; later there are some again."""
    program = """
# The first launch loads kernels, which needs addresses, too.
goes_on()
pinbuddy.warm_up(wait=True)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
_, most = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + 64 * MIB, most))
outcome = refused(2048)
first = goes_on()
resource.setrlimit(resource.RLIMIT_AS, (most, most))
answer([outcome[0], first, refused(256)[0], goes_on()])
"""
    kind, first, later, going = ours(HEAD + AFTER + program, BUDDY_BACKING=backing, BUDDY_MAX_MB="8192")
    assert kind is not None or not SIMULATED, "2 GiB were pinned within 64 MiB of address space"
    assert (first, later, going) == (True, None, True)


def test_beyond_the_budget_the_driver_serves(ours):
    program = """
large = [pinned(40).fill_(at) for at in range(4)]
whole = all(bool((it.to("cuda").cpu() == at).all()) for at, it in enumerate(large))
answer([whole, sum(of_engine(it) for it in large), goes_on()])
"""
    whole, engines, going = ours(HEAD + AFTER + program, BUDDY_MAX_MB="64")
    assert whole and going and engines < 4
