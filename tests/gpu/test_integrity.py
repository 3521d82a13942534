"""Data arrives intact: several streams and threads, and blocks that are freed while copies run."""

from conftest import needs_kernels

# Four threads, each with its own stream. A source is freed as soon as its copy is enqueued, and so is an unread
# destination; others are overwritten at once.
COPIES = """
use_gpu()
def traffic(seed, wrong):
    import random
    rng = random.Random(seed)
    stream = torch.cuda.Stream()
    waiting = []
    def check():
        mark, back, event = waiting.pop(0)
        event.synchronize()
        if not bool((back == mark).all()):
            wrong.append(mark)
    for number in range({rounds}):
        mark = 1 + (seed * 59 + number) % 250
        size = int(rng.uniform(1, 12) * MIB)
        with torch.cuda.stream(stream):
            if number % 4 == 0:
                torch.cuda._sleep(5_000_000)
            source = torch.empty(size, dtype=torch.uint8, pin_memory=True).fill_(mark)
            on_device = source.to("cuda", non_blocking=True)
            del source
            torch.empty(size, dtype=torch.uint8, pin_memory=True).fill_(251)
            back = torch.empty(size, dtype=torch.uint8, pin_memory=True)
            back.copy_(on_device, non_blocking=True)
            torch.empty(size, dtype=torch.uint8, pin_memory=True).copy_(on_device, non_blocking=True)
            waiting.append((mark, back, torch.cuda.current_stream().record_event()))
        while len(waiting) > 6:
            check()
    while waiting:
        check()
wrong = []
together(*[lambda seed=seed: traffic(seed, wrong) for seed in range(4)])
import pinbuddy
answer([wrong, pinbuddy.stats()["engine"]["hits"]])
"""


def test_copies_of_four_streams_and_threads(ours):
    rounds = 40
    wrong, hits = ours(COPIES.format(rounds=rounds))
    assert wrong == [] and hits > 4 * 4 * rounds * 0.8, "the engine has served them"


# Each stream's kernels write values of their own index and round, so that a read or write out of order shows in the
# sum on the device.
KERNELS = """
use_gpu()
streams = [torch.cuda.Stream() for _ in range(6)]
length = 3 * MIB // 4
index = torch.arange(length, dtype=torch.int32, device="cuda")
errors = torch.zeros(1, dtype=torch.int64, device="cuda")
torch.cuda.synchronize()
late = []
for number in range(60):
    for at, stream in enumerate(streams):
        with torch.cuda.stream(stream):
            mark = 1000 * number + at
            made = index * 3 + mark
            down = torch.empty(length, dtype=torch.int32, pin_memory=True)
            down.copy_(made, non_blocking=True)
            up = down.to("cuda", non_blocking=True)
            late.append((stream.record_event(), mark, down))
            matches = (up == index * 3 + mark).all()
            errors.add_((~matches).long())
    while len(late) > 20:
        event, mark, down = late.pop(0)
        event.synchronize()
        expected = torch.arange(length, dtype=torch.int32) * 3 + mark
        if not torch.equal(down, expected):
            answer(["the host reads something else", mark])
            raise SystemExit
        # Reused, overwritten and copied while other streams still work.
        del down
        torch.empty(length, dtype=torch.int32, pin_memory=True).fill_(-1).to("cuda", non_blocking=True)
torch.cuda.synchronize()
answer([int(errors), of_engine(late[0][2])])
"""


@needs_kernels
def test_what_kernels_of_six_streams_make_arrives(ours):
    assert ours(KERNELS) == [0, True]


@needs_kernels
def test_a_training_step_with_offloaded_activations_is_what_it_is_without(ours):
    """The same gradients, except for the order of sums, since restored tensors have another layout."""
    same = ours("""
        import contextlib
        def gradients(offload):
            torch.manual_seed(3)
            layers = [torch.nn.Linear(1024, 1024) for _ in range(6)]
            model = torch.nn.Sequential(*layers).cuda()
            data = torch.randn(1024, 1024, device="cuda")
            for _ in range(3):
                model.zero_grad()
                with torch.autograd.graph.save_on_cpu(pin_memory=True) if offload else contextlib.nullcontext():
                    loss = model(data).tanh().square().mean()
                loss.backward()
            return [it.grad for it in model.parameters()]
        pairs = list(zip(gradients(False), gradients(True)))
        moved = all(float(one.abs().max()) > 1e-8 for one, _ in pairs)
        answer(moved and all(torch.allclose(one, other, rtol=1e-3, atol=1e-7) for one, other in pairs))
        """.replace("\n        ", "\n"))
    assert same
