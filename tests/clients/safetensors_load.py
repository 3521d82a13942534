"""safetensors: a file loaded to pinned memory and to the GPU, tensor by tensor and in slices, and saved again."""

import tempfile

import client
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file


def program() -> dict:
    names = [f"layer {at}" for at in range(6)]
    tensors = {name: torch.rand(900 + 50 * at, 1024) for at, name in enumerate(names)}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/weights.safetensors"
        save_file(tensors, path)
        pinned = {name: it.pin_memory() for name, it in load_file(path).items()}
        there = {name: it.to("cuda", non_blocking=True) for name, it in pinned.items()}
        direct = load_file(path, device="cuda")
        slices = []
        with safe_open(path, framework="pt", device="cpu") as file:
            for name in sorted(file.keys()):
                part = file.get_slice(name)[100:200].contiguous().pin_memory()
                slices.append(part.to("cuda", non_blocking=True))
        again = f"{folder}/again.safetensors"
        save_file(pinned, again)
        saved = load_file(again)
    names = sorted(pinned)
    results = {"pinned": pinned, "there": there, "direct": direct, "saved": saved}
    in_order = {kind: [all_of_it[name] for name in names] for kind, all_of_it in results.items()}
    return in_order | {"slices": slices, "all pinned": all(it.is_pinned() for it in pinned.values())}


if __name__ == "__main__":
    client.run(program)
