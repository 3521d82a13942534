"""Examples that run themselves with stock and with pinbuddy, and end with a status of 0 only where what they show is so."""

import pytest
from conftest import needs


def test_idle_memory_goes_back_and_comes_again(example):
    assert [line.rsplit(maxsplit=2)[0] for line in example("idle")] == ["MiB pinned", "works", "rests", "works again"]


@needs(11, "the calls of its device allocator that plans stand in front of")
def test_a_server_finds_as_much_with_a_plan(example):
    stock, first, second = example("looks_first", PINBUDDY_SIM_DEVICE_MB="1024")[1:]
    assert first.split()[2:] == stock.split()[1:]
    host, device = second.split()[4], second.split()[6]
    assert int(host) > 40 and int(device) > 400, second


@pytest.mark.simulated("a driver may have reserved the addresses that a limit refuses")
def test_a_refused_request_says_how_much_and_what_to_do(example):
    text = "\n".join(example("refused"))
    assert "4 GiB were asked for" in text and "If none is reached" in text


def test_nodes_of_this_machine(example):
    assert example("nodes")[1].split()[0] == "0"
