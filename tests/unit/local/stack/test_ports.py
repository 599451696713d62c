"""Ports: chosen free, remembered, replaced when taken."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rayapp.core.errors import ConfigError
from rayapp.local.stack.paths import FIRST_PORT, LAST_PORT, PortBook, is_free


@contextmanager
def listener(host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((host, port))
        server.listen()
        yield server.getsockname()[1]


def test_a_listener_makes_its_port_busy_for_every_address() -> None:
    with listener() as port:
        assert not is_free(port, "127.0.0.1")
        assert not is_free(port)
    assert is_free(port)


def test_a_closed_connection_does_not_keep_the_port_busy() -> None:
    with listener() as port, socket.create_connection(("127.0.0.1", port)):
        pass
    assert is_free(port)


@pytest.mark.parametrize(
    ("host", "said"),
    [("203.0.113.7", "no address of this machine"), ("no-such-host.invalid", "No host")],
)
def test_an_address_that_nobody_could_bind_is_not_busy(host: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        is_free(8123, host)


def test_ports_are_distinct_in_range_and_remembered(tmp_path: Path) -> None:
    names = [f"server{number}" for number in range(40)]
    book = PortBook(tmp_path / "ports.json", "seed")
    book.take(names)
    assert len(set(book.ports.values())) == len(names)
    assert all(FIRST_PORT <= port < LAST_PORT for port in book.ports.values())
    again = PortBook(tmp_path / "ports.json", "other seed")
    again.take(names)
    assert again.ports == book.ports


def test_a_taken_port_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    book = PortBook(tmp_path / "ports.json", "seed")
    book.take(["mongod", "ray_gcs"])
    old = dict(book.ports)
    with listener(port=old["mongod"]):
        book.take(["mongod", "ray_gcs"])
    assert book.ports["mongod"] != old["mongod"]
    assert book.ports["ray_gcs"] == old["ray_gcs"]


def test_a_range_holds_no_other_port_of_the_stack(tmp_path: Path) -> None:
    book = PortBook(tmp_path / "ports.json", "seed")
    names = [f"server{number}" for number in range(200)]
    book.take(names)
    book.take(["first"], width=50)
    block = range(book.ports["first"], book.ports["first"] + 50)
    assert not any(book.ports[name] in block for name in names)


def test_two_stacks_choose_differently(tmp_path: Path) -> None:
    one, two = PortBook(tmp_path / "1.json", "one"), PortBook(tmp_path / "2.json", "two")
    one.take(["mongod", "ray_gcs"])
    two.take(["mongod", "ray_gcs"])
    assert not set(one.ports.values()) & set(two.ports.values())


def test_of_ports_in_a_row_every_one_is_free(tmp_path: Path) -> None:
    book = PortBook(tmp_path / "ports.json", "seed")
    book.take(["first"], width=3)
    again = PortBook(tmp_path / "others.json", "seed")
    with listener(port=book.ports["first"] + 2):
        again.take(["first"], width=3)
    assert again.ports != book.ports
