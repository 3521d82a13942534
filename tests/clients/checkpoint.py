"""torch.distributed.checkpoint.async_save, staged in pinned memory: by a thread, shared or not, or by a process, shared.

usage: checkpoint.py thread|process
"""

import sys
import tempfile

import client
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType


def program() -> dict:
    kind, results = AsyncCheckpointerType(sys.argv[1]), {}
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("cpu:gloo", rank=0, world_size=1, init_method=f"file://{folder}/store")
        for shared in (True,) if sys.argv[1] == "process" else (False, True):
            stager = DefaultStager(StagingOptions(use_shared_memory=shared))
            for step in range(2):
                state = {
                    "step": step,
                    "weights": [torch.rand(700, 1000 + at).to("cuda") for at in range(6)],
                }
                path = f"{folder}/{shared}-{step}"
                saving = dcp.async_save(
                    state, checkpoint_id=path, async_checkpointer_type=kind, async_stager=stager
                )
                saving.staging_completion.result()
                saving.upload_completion.result()
                loaded = {"step": -1, "weights": [torch.zeros(it.shape) for it in state["weights"]]}
                dcp.load(loaded, checkpoint_id=path)
                results[f"shared {shared}, step {step}"] = [state, loaded]
            stager.close()
        dist.destroy_process_group()
    return {name: client.checksum(value) for name, value in results.items()}


if __name__ == "__main__":
    client.run(program)
