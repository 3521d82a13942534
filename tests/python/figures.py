"""What tests explored, for `ci/explore.sh`: a line of JSON each, in the file that PINBUDDY_FIGURES names."""

import json
import os


def write(figures: dict[str, int]) -> None:
    """Adds whole numbers by their names; nothing where no file is named. Several processes may do so at once."""
    if name := os.environ.get("PINBUDDY_FIGURES"):
        with open(name, "a") as file:
            file.write(json.dumps(figures) + "\n")
