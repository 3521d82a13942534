"""Settings that files have: the site's, and the wheel's beside the library."""

import pytest
from conftest import command_line, report
from plugin import IS_PLUGIN, copy

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


def test_the_settings_and_the_doctor_name_the_sites_file(site):
    variables = site('BUDDY_MAX_MB = 64\nBUDDY_LIVE = "0"\n')
    file = variables["PINBUDDY_SITE"]
    settings = command_line(check=True, **variables).stdout
    assert [line.split() for line in settings.splitlines() if line.startswith("BUDDY_MAX_MB")] == [["BUDDY_MAX_MB", "64", "site", file]]
    assert f"site file     {file}, sets BUDDY_MAX_MB, BUDDY_LIVE" in command_line("doctor", **variables).stdout.splitlines()
    said = report(**variables)
    assert (said["site"], said["set_by"]) == (file, {"site": ["BUDDY_MAX_MB", "BUDDY_LIVE"]})


def test_a_site_that_turns_pinbuddy_off_is_named_by_the_doctor(site):
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
