"""A chat model that follows a script, behind an OpenAI-compatible endpoint on loopback.

It stands for the assistant, and for the model that the service's helpers ask. It knows nothing but
what stands in the messages it is sent: an answer about a fact quotes the memory it was given.
It repeats every fact that a user states, also one that is known: to keep each once is the service's
part.

    python -m examples.scripted_model --port 9100
    RAYAPP_MODELS__BASE_URL=http://127.0.0.1:9100/v1 RAYAPP_MODELS__MODEL=scripted rayapp up --wait
"""

import argparse
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

SCRIPT = Path(__file__).with_name("chat_script.yaml")
# A line of the context as the service writes it: `[position] [tier:id] (date, …, who)  text`.
MEMORY = re.compile(r"^(?:• )?\[(\d+)\] \[([a-z_]+):([^\]]+)\] \([^()]*\)  (.*)$", re.MULTILINE)
# A text of the user in the prompt of a helper.
USER_TEXT = re.compile(r"\[DATA user_text (\w+)\]\n(.*?)\n\[END user_text \1\]", re.DOTALL)
# What helpers that this script does not play are told: nothing was found.
NOTHING_FOUND = {
    '"outcome"': {"outcome": "unknown", "confidence": 0.2, "indicators": [], "reason": "scripted"},
    '"items"': {"items": []},
    '"bullets"': {"bullets": []},
}
WEB_SEARCH = "web_search"


@dataclass(frozen=True, slots=True)
class Script:
    """What the model knows by heart: which fact a sentence states, and what a question asks for."""

    facts: Mapping[str, str] = field(default_factory=dict)
    asks: Mapping[str, str] = field(default_factory=dict)


def load_script(path: Path = SCRIPT) -> dict[str, Any]:
    """The conversation as written."""
    loaded: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def script_of(loaded: Mapping[str, Any]) -> Script:
    """The lines of the conversation that the model must know."""
    turns = [turn for one in loaded["conversations"] for turn in one["turns"]]
    return Script(
        facts={turn["say"]: turn["fact"] for turn in turns if "fact" in turn},
        asks={turn["say"]: turn["asks"] for turn in turns if "asks" in turn},
    )


def reply_to(script: Script, body: Mapping[str, Any]) -> dict[str, Any]:
    """The assistant's message for one request."""
    messages = body["messages"]
    system = "\n".join(m["content"] for m in messages if m["role"] == "system")
    said = next((m["content"] for m in reversed(messages) if m["role"] == "user"), "")
    helper = USER_TEXT.search(said)
    if "NOTHING" in system and helper is not None:
        return _text(script.facts.get(helper[2].strip(), "NOTHING"))
    for mark, found in NOTHING_FOUND.items():
        if mark in system:
            return _text(json.dumps(found))
    if messages[-1]["role"] == "tool":
        return _text(f"I looked it up: {messages[-1]['content']}")
    offered = {tool["function"]["name"] for tool in body.get("tools") or ()}
    return _assistant(script, system, said, offered)


def _assistant(script: Script, system: str, said: str, offered: set[str]) -> dict[str, Any]:
    """Quotes the first memory that answers; else asks the web, when that is offered."""
    wanted = script.asks.get(said)
    if wanted is not None:
        for position, _, _, text in MEMORY.findall(system):
            # A turn of an earlier conversation only tells what was said then.
            if wanted in text and not text.startswith("User:"):
                mark = "" if "build" in wanted else f"\n<!-- MEM: {position}👍 -->"
                return _text(f"{_opening(said)} {text}{mark}")
    if said.endswith("?") and WEB_SEARCH in offered:
        arguments = json.dumps({"query": said}, ensure_ascii=False)
        call = {"name": WEB_SEARCH, "arguments": arguments}
        return {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "call_1", "type": "function", "function": call}],
        }
    hebrew = any("א" <= letter <= "ת" for letter in said)
    return _text("תודה, רשמתי את זה לפניי." if hebrew else "Thank you, I have noted that.")


def _opening(said: str) -> str:
    hebrew = any("א" <= letter <= "ת" for letter in said)
    return "לפי מה שסיפרת לי:" if hebrew else "From what you told me:"


def _text(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


class _Handler(BaseHTTPRequestHandler):
    """Answers every POST as a chat completion."""

    protocol_version = "HTTP/1.1"
    script = Script()

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        message = reply_to(self.script, json.loads(self.rfile.read(length)))
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": length // 4, "completion_tokens": len(message["content"]) // 4}
        answer = {"id": "scripted", "object": "chat.completion", "model": "scripted"}
        body = json.dumps(answer | {"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the transcript is what counts."""


@contextmanager
def serving(script: Script, port: int = 0) -> Iterator[str]:
    """The model on a loopback port; the address up to `/v1`."""
    handler = type("Handler", (_Handler,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)


def main() -> None:
    parser = argparse.ArgumentParser(description="A chat model that follows a script.")
    parser.add_argument("--port", type=int, default=9100)
    parser.add_argument("--script", type=Path, default=SCRIPT)
    arguments = parser.parse_args()
    script = script_of(load_script(arguments.script))
    with serving(script, arguments.port) as url:
        print(f"The scripted model answers at {url}; end it with Ctrl-C.", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
