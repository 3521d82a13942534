"""How programs start with PyTorch's own allocator and with ours: interpreter, variables, libraries.

Ours is the plug-in of a pack beside one torch, or a fork wheel in an environment of its own beside one with
the official wheel. Knows nothing of what is run.
"""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

# The caller's settings that would change the measurement.
CLEARED = ("BUDDY_", "PYTORCH_", "PYTHON", "PYTEST_", "TORCH_")


@dataclass(frozen=True)
class Way:
    """An allocator: `stock` or `ours`."""

    name: str
    python: str
    # Folders for PYTHONPATH.
    packages: list[str] = field(default_factory=list)
    # Variables of each process.
    variables: dict[str, str] = field(default_factory=dict)
    # Whether C++ programs need our library preloaded, since libtorch.so does not load it.
    preloads: bool = False

    def environment(self, **settings) -> dict[str, str]:
        """The environment of a Python program, with no settings but these."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(CLEARED)}
        kept |= {"PYTHONDONTWRITEBYTECODE": "1", "PINBUDDY_SIM_QUIET": "1"} | self.variables
        if self.packages:
            kept["PYTHONPATH"] = os.pathsep.join(self.packages)
        return kept | {name: str(value) for name, value in settings.items()}

    def for_cpp(self, **settings) -> dict[str, str]:
        """The environment of a C++ program linked with libtorch, which finds torch's libraries and ours."""
        environment = self.environment(**settings)
        folders = [str(self.torch() / "lib"), *self._cuda_folders(), os.environ.get("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(it for it in folders if it)
        if self.preloads:
            preloaded = [os.environ.get("LD_PRELOAD", ""), self._answer("-m", "pinbuddy", "library")]
            environment["LD_PRELOAD"] = os.pathsep.join(it for it in preloaded if it)
        return environment

    def torch(self) -> Path:
        """The package's folder; torch is not imported."""
        program = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
        return Path(self._answer("-c", program))

    def _cuda_folders(self) -> list[str]:
        """Where NVIDIA's packages have the CUDA runtime."""
        return sorted(str(it.parent) for it in self.torch().parent.glob("nvidia/*/lib/libcudart.so.*"))

    def _answer(self, *arguments: str) -> str:
        command = [self.python, *arguments]
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} exited with {done.returncode}:\n{done.stderr}")
        return done.stdout.splitlines()[-1]


def of_pack(root: Path, python: str) -> dict[str, Way]:
    """One torch, with and without a pack's plug-in."""
    packages = str(root / "packages")
    # An installed plug-in must not serve stock.
    off = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}
    return {"stock": Way("stock", python, [packages], off), "ours": Way("ours", python, [str(root / "plugin"), packages], preloads=True)}


def of_environments(stock: str, fork: str) -> dict[str, Way]:
    """The interpreters of two environments, with the official wheel and with the fork."""
    return {"stock": Way("stock", stock), "ours": Way("ours", fork)}
