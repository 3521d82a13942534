"""`python -m pinbuddy`, and its messages where the package does not work."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pinbuddy
import pytest
from conftest import command_line, forking
from measure import environment
from pinbuddy import _match, _tools, _try
from pinbuddy.__main__ import main, settings_table

NO_GPU = {"PINBUDDY_SIM_DEVICES": "0"}


@pytest.mark.release
def test_the_command_prints_version_settings_and_summary():
    done = command_line(BUDDY_BLOCK_COUNT="2", BUDDY_THRESHOLD_MB="much", BUDDY_MAX_MB="1073741824")
    assert done.returncode == 0 and done.stderr.count("BUDDY_THRESHOLD_MB") == 1
    title, settings, summary = done.stdout.rstrip("\n").split("\n\n")
    assert title == f"torch {pinbuddy.version()}"
    assert summary.startswith("|==") and "nothing pinned" in summary
    rows = [line.split(maxsplit=2) for line in settings.splitlines()]
    assert rows[0] == ["variable", "value", "origin"]
    assert ["BUDDY_BLOCK_COUNT", "2", "environment"] in rows
    assert ["BUDDY_THRESHOLD_MB", "4", 'rejected: "much" is not a whole number, such as 8'] in rows
    assert ["BUDDY_DISABLE", "0", "built-in"] in rows
    assert len(rows) == 1 + len(pinbuddy.config())
    # A limit above what the machine has is shown.
    (row,) = [line for line in settings.splitlines() if line.startswith("BUDDY_MAX_MB")]
    assert re.fullmatch(r"BUDDY_MAX_MB +1073741824 +environment: more than the \d+ MiB that .+", row)
    assert done.stderr.count("BUDDY_MAX_MB") == 1 and "pinbuddy: warning: " in done.stderr


def test_the_command_speaks_to_machines():
    done = command_line("--json", BUDDY_BLOCK_COUNT="2")
    assert done.returncode == 0 and done.stdout.count("\n") == 1
    report = json.loads(done.stdout)
    assert list(report) == ["version", "enabled", "config", "stats"]
    assert report["version"] == pinbuddy.version() and report["enabled"] is True
    assert report["config"]["BUDDY_BLOCK_COUNT"] == {"value": 2, "origin": "environment", "file": None, "remark": None}
    assert report["config"]["BUDDY_THRESHOLD_MB"] == {"value": 4, "origin": "built-in", "file": None, "remark": None}
    assert report["stats"]["warm_up"]["owed"] == 2


@pytest.mark.parametrize("variables", [NO_GPU, {"BUDDY_DISABLE": "1"}])
def test_the_command_works_where_there_is_nothing_to_do(variables):
    done = command_line(**variables)
    assert done.returncode == 0 and done.stderr == ""
    reason = "there is no GPU here" if variables is NO_GPU else "BUDDY_DISABLE=1 leaves"
    assert done.stdout.splitlines()[-1].startswith(f"pinbuddy is off: {reason}")


def test_columns_are_as_wide_as_what_is_in_them():
    settings = {
        "BUDDY_MAX_MB": {"value": None, "origin": "built-in", "file": None, "remark": None},
        "BUDDY_DISABLE": {"value": True, "origin": "environment", "file": None, "remark": None},
        "BUDDY_LIVE": {"value": True, "origin": "site", "file": "/etc/site.toml", "remark": None},
        "BUDDY_X": {"value": "word", "origin": "rejected", "file": None, "remark": '"x" is no word'},
    }
    assert settings_table(settings) == (
        "variable       value      origin\n"
        "BUDDY_MAX_MB   automatic  built-in\n"
        "BUDDY_DISABLE  1          environment\n"
        "BUDDY_LIVE     1          site /etc/site.toml\n"
        'BUDDY_X        word       rejected: "x" is no word'
    )


@pytest.fixture
def package_alone(tmp_path):
    """A folder with our package, without what makes it a plug-in, and no torch."""
    ignore = shutil.ignore_patterns("__pycache__", "plugin.json", "lib")
    shutil.copytree(Path(pinbuddy.__file__).parent, tmp_path / "pinbuddy", ignore=ignore)
    return tmp_path


IMPORT = """
    import json, pinbuddy
    try:
        pinbuddy.version()
    except ImportError as error:
        print(json.dumps(str(error)))
"""


def test_a_torch_that_is_no_fork_is_named_with_what_to_do(run, package_alone):
    message = run(IMPORT, "stock", PYTHONPATH=package_alone).value
    what, found, expected, to_do, see = message.splitlines()
    assert re.fullmatch(r"torch 2\S+ is not a pinbuddy fork", what)
    assert found.startswith("  found     no libtorch_pinbuddy.so in ") and found.endswith("/torch/lib")
    assert expected.startswith("  expected  ")
    assert "pip install --force-reinstall --no-deps pinbuddy-*.whl" in to_do
    assert see == "  see       pinbuddy explain 'is not a pinbuddy fork'"
    done = command_line(python=os.environ["PINBUDDY_STOCK_PYTHON"], PYTHONPATH=str(package_alone))
    assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr


@pytest.mark.real_start("torch is another")
def test_a_library_of_another_version_is_named_with_what_to_do(run, package_alone):
    import torch

    fake = package_alone / "torch"
    (fake / "lib").mkdir(parents=True)
    (fake / "__init__.py").write_text("__version__ = '2.15.0'\nclass version:\n    cuda = '13.2'\n")
    another = Path(torch.__file__).parent / "lib" / "libc10.so"
    (fake / "lib" / "libtorch_pinbuddy.so").symlink_to(another)
    message = run(IMPORT, PYTHONPATH=package_alone).value
    assert "do not belong together" in message
    assert "no function pinbuddy_" in message and "torch-*pinbuddy*.whl" in message


def test_plans_and_advice_come_from_a_program_beside_the_package_without_torch(tmp_path):
    program = "import sys, pinbuddy.__main__; raise SystemExit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=300).returncode == 0
    table, trace = tmp_path / "blocks.csv", tmp_path / "trace.jsonl"
    table.write_text("id,lower,upper,size\na,0,3,4\nb,1,2,4\n")
    trace.write_text('{"t":0,"op":"alloc","id":1,"bytes":8388608}\n')
    # Options may stand before a command.
    for typed in (["plan", "--instance", str(table), "--json"], ["--json", "plan", "--instance", str(table)]):
        done = command_line(*typed)
        assert done.returncode == 0 and json.loads(done.stdout)["peak"] == 8, done.stderr
    assert json.loads(command_line("--json", "doctor").stdout)["served"] is True
    done = command_line("advise", str(trace))
    assert done.returncode == 0 and "Recommended: " in done.stdout, done.stderr
    done = command_line("plan", str(tmp_path / "none"))
    assert done.returncode == 1 and "none that can be read" in done.stderr
    assert "plan" in command_line("--help").stdout


@pytest.mark.checkout("pip installs the command")
def test_help_is_of_the_name_that_was_typed():
    script = Path(sys.executable).with_name("pinbuddy")
    for arguments in (["--help"], ["plan", "--help"], ["try", "--help"]):
        done = subprocess.run([script, *arguments], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0 and ("--instance" in done.stdout) == ("plan" in arguments), done.stderr
        assert re.search(r"^[Uu]sage: pinbuddy ", done.stdout, re.MULTILINE), done.stdout
        said = command_line(*arguments).stdout
        assert re.search(r"^[Uu]sage: python -m pinbuddy ", said, re.MULTILINE), said


@pytest.mark.parametrize("command", ["doctor", "library"])
def test_help_of_a_command_says_what_it_is_and_what_each_option_does(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    usage, about, options = capsys.readouterr().out.split("\n\n")
    assert about[0].isupper() and about.endswith(".")
    assert not re.search(r"^ *--\w+( [A-Z]+)?$(?!\n {10})", options, re.MULTILINE), options


SLOW = pytest.mark.slow("a way of printing that others have, too")
PRINTING = [
    [], ["--help"], ["doctor"],
    *(pytest.param(it, marks=SLOW) for it in (["--json"], ["--version"], ["doctor", "--json"], ["library"], ["try", "--help"])),
]


@pytest.mark.parametrize("arguments", PRINTING, ids=" ".join)
def test_a_full_disk_is_said_and_a_reader_may_leave(arguments):
    typed = [forking(), "-m", "pinbuddy", *arguments]

    def onto(stdout):
        return subprocess.run(typed, env=environment(), stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=300)

    with open("/dev/full", "w") as full:
        done = onto(full)
    assert done.returncode == 1
    assert done.stderr == "error: standard output takes no more: No space left on device\n"
    read, write = os.pipe()
    os.close(read)
    try:
        done = onto(write)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(("typed", "said"), [
    (["reprot", "run.jsonl"], "there is no command 'reprot'; did you mean 'report'?"),
    (["--json", "docter"], "there is no command 'docter'; did you mean 'doctor'?"),
    (["advice"], "there is no command 'advice'; did you mean 'advise'?"),
    ([__file__], f"to look at a trace or a snapshot: report {__file__}"),
    (["xyz"], "there is no command 'xyz'; there are doctor, try, verify-wheel, library, plan, "),
    (["help"], "advise"),
])
def test_a_command_that_is_none_is_answered_with_the_one_that_was_meant(typed, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main(typed)
    shown = capsys.readouterr()
    assert (ended.value.code, said in shown.out) == (0, True) if typed == ["help"] else (ended.value.code, said in shown.err) == (2, True)


def test_a_package_without_the_program_says_so(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(_tools, "PROGRAM", tmp_path / "pinbuddy-tools")
    assert _tools.machine("13.2") is None, "the doctor says nothing of the machine"
    assert main(["plan", "x"]) == 1
    message = capsys.readouterr().err
    assert "this build of pinbuddy has no pinbuddy-tools" in message and "pip install pinbuddy-*.whl" in message
    _tools.PROGRAM.write_text("not a program")
    monkeypatch.setattr("sys.stdout", None)  # as with >&-
    assert main(["advise", "x"]) == 1
    assert "cannot be started: Permission denied; to do: chmod +x" in capsys.readouterr().err


def test_plans_are_told_the_library_whose_folder_may_have_settings_and_the_version_of_torch():
    command = ["--json", "--", "python", "train.py"]
    plans, option, library, why, torch, version, *rest = _tools._with_torch(["plans", "why", *command])
    assert [plans, option, why, torch, rest] == ["plans", "--library", "why", "--torch", command]
    assert Path(library).name == "libtorch_pinbuddy.so" and Path(library).is_file()
    assert version == importlib.metadata.version("torch")
    assert _tools._with_torch(["plans", "ls"]) == ["plans", "--library", library, "ls"]
    assert _tools._with_torch(["plan", "x"]) == ["plan", "x"]


def test_without_torch_a_command_says_where_to_look_and_a_plug_in_its_own_version(monkeypatch, capsys):
    def without_torch():
        raise ModuleNotFoundError("No module named 'torch'")

    monkeypatch.setattr(pinbuddy, "config", without_torch)
    assert main([]) == 1
    assert capsys.readouterr().err == "No module named 'torch'. What is in place, and what to do: python -m pinbuddy doctor\n"
    assert main(["--version"]) == 0 and capsys.readouterr().out == f"{pinbuddy.version()}\n"
    monkeypatch.setattr(pinbuddy, "version", without_torch)
    # An error of a torch that is there is no reason to say less.
    monkeypatch.setattr(_match, "manifest", lambda: {"version": "0.1.0+torch2.15.0"})
    assert main(["--version"]) == 1 and "No module named" in capsys.readouterr().err
    monkeypatch.setattr(_try.importlib.util, "find_spec", lambda name: None)
    assert main(["--version"]) == 0 and capsys.readouterr().out == "0.1.0+torch2.15.0\n"
    monkeypatch.setattr(_match, "manifest", lambda: None)
    assert main(["--version"]) == 1 and "python -m pinbuddy doctor" in capsys.readouterr().err


def test_the_example_says_what_is_not_there(monkeypatch, capsys, tmp_path):
    done = command_line("try", **NO_GPU)
    assert done.returncode == 1 and done.stderr.startswith("there is no GPU here. Run it on a machine with one") and done.stderr.count("\n") == 1
    assert "argument --steps: expected a number of 1 or more, found 0" in command_line("try", "--steps", "0").stderr
    assert str(_try.PROGRAM) in command_line("try", "--help", COLUMNS="400").stdout
    with monkeypatch.context() as no_torch:
        no_torch.setattr(_try.importlib.util, "find_spec", lambda name: None)
        assert main(["try"]) == 1
    assert "the example needs torch, which is not here: install torch" in capsys.readouterr().err
    monkeypatch.setattr(_try, "PROGRAM", tmp_path / "offload.py")
    assert main(["try"]) == 1
    assert "has no offload.py: the plug-in's wheel has it" in capsys.readouterr().err
