"""`python -m pinbuddy doctor` with a library, of a fork or of the plug-in."""

import functools
import json
import sys
from pathlib import Path

import pytest
from conftest import REAL, command_line, report
from pinbuddy import _doctor
from plugin import IS_PLUGIN, PACKAGE

doctor = functools.partial(command_line, "doctor")


@pytest.mark.release
def test_it_serves_where_there_is_a_gpu():
    done = doctor()
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\n\npinbuddy serves pinned memory.\n") and "Note: " not in done.stdout
    assert "children      read and write pinned blocks" in done.stdout
    assert "\nMemory\n" in done.stdout and "\nGPU\n" in f"\n{done.stdout}", done.stdout


def test_what_is_there_is_in_the_report():
    said = report()
    assert said["served"] and said["gpus"] == 1 and said["state"] == "on" and said["children"] == "share"
    machine = said["machine"]
    assert machine["ready"] and machine["machine"]["memory"]["total"] > 0
    (driver,) = [it for it in machine["subjects"][0]["findings"] if it["name"] == "driver"]
    assert driver["value"] and (REAL or "simulated" in driver["value"])
    assert machine["machine"]["needed_cuda"] == said["cuda"]
    if IS_PLUGIN:
        libraries = json.loads((PACKAGE / "plugin.json").read_text())["libraries"]
        assert said["form"] == "plug-in" and said["entry_point"] and said["fits"] == [it["torch"] for it in libraries]
        assert said["library"] == str(PACKAGE / libraries[0]["file"])


def test_no_gpu_is_named_and_one_that_is_hidden(monkeypatch):
    done = doctor(PINBUDDY_SIM_DEVICES="0")
    assert done.returncode == 1 and done.stderr == ""
    verdict, to_do = done.stdout.splitlines()[-2:]
    assert verdict == "pinbuddy is installed, but there is no GPU: nobody can pin memory here."
    assert to_do == "To do: run it on a machine with a GPU"
    said = report(PINBUDDY_SIM_DEVICES="0")
    assert said["served"] is False and said["gpus"] == 0 and said["why"] == "there is no GPU"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert _doctor._no_gpu() == ("CUDA_VISIBLE_DEVICES='' leaves no GPU", "unset CUDA_VISIBLE_DEVICES")


def test_disabled_is_the_reason_even_where_there_is_no_gpu():
    done = doctor(BUDDY_DISABLE="1", PINBUDDY_SIM_DEVICES="0")
    assert done.returncode == 1 and "BUDDY_DISABLE=1 leaves it in place" in done.stdout
    assert done.stdout.endswith("To do: unset BUDDY_DISABLE\n")


def test_children_that_have_no_pinned_memory_are_named_and_a_setting_of_stocks_that_does_not_hold_for_blocks_is_a_note():
    done = doctor(BUDDY_FORK="hide", PYTORCH_CUDA_ALLOC_CONF="pinned_use_background_threads:True")
    assert "children      crash where they read" in done.stdout
    (note,) = [line for line in done.stdout.splitlines() if line.startswith("Note: ")]
    assert note.startswith("Note: BUDDY_THRESHOLD_MB: pinned_use_background_threads holds for requests below 4 MiB")
    assert done.returncode == 0


@pytest.mark.fork_wheel
def test_a_fork_with_the_plug_in_beside_it_says_how_to_mend_it(tmp_path):
    """As pip leaves it: the plug-in's own record, whoever's files the package has."""
    plugin = tmp_path / "pinbuddy-0.1.0.dist-info"
    plugin.mkdir()
    (plugin / "METADATA").write_text("Metadata-Version: 2.4\nName: pinbuddy\nVersion: 0.1.0\n")
    done = doctor(PYTHONPATH=str(tmp_path))
    (note,) = [line for line in done.stdout.splitlines() if line.startswith("Note: ")]
    assert "the plug-in is installed beside the fork" in note
    assert f"{sys.executable} -m pip uninstall --yes pinbuddy && " in note
    assert "--force-reinstall --no-deps torch-*.whl" in note
    assert done.returncode == 0 and done.stdout.endswith("pinbuddy serves pinned memory.\n")


@pytest.mark.parametrize("torch, state, named", [
    ("2.13.0+cu130", None, True),
    ("2.13.0+cu130", "off", True),
    ("2.13.1", None, True),
    ("2.13.0+cu130", "on", False),
    ("2.14.0+cu130", None, False),
    ("2.12.1+cu130", None, False),
])
def test_stocks_overflow_is_named_where_stock_serves(torch, state, named):
    shown = _doctor.Report(torch=torch, state=state, served=state == "on")
    shown.notes = _doctor._notes(shown)
    assert ("pytorch/pytorch#192722, in torch 2.13" in shown.table()) == named


@pytest.mark.checkout("reads the library's sources")
def test_the_library_and_the_package_mean_the_same_releases():
    (minor,) = [int(it.removeprefix("2.")) for it in _doctor._OVERFLOWING]
    header = (Path(__file__).parents[2] / "cxx-bridge/cpp/upstream.h").read_text()
    since = f"PINBUDDY_TORCH_FROM({minor}) && !PINBUDDY_TORCH_FROM({minor + 1})"
    assert f"#define PINBUDDY_IGNORES_SIZES ({since})\n" in header
