"""Whether what a person asked of every answer stands before the questions that it is about.

    python -m tests.serve --port 8100
    python -m tests.bench.standing --data DIR --url http://127.0.0.1:8100

Stores the chats of BEAM with who said what, and asks for the context of every question. Prints, for
the chats that the rules were made on and for those left out, how often the evidence is in the block
(any message of it), and in its section of instructions. `--lines` prints what stands, to judge how
much of it was asked for. Exit codes: 0 done, 2 bad arguments, 4 the service is away.
"""

import argparse
import asyncio
import secrets
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from jobs.ending import DONE, command_parser, run_command
from jobs.suites.beam import FILE, LONGEST, NAME, PERSON
from jobs.suites.suite import read_json, rows_of
from rayapp.assistant.context.rules.prompt_block import TITLES
from rayapp.client import Memory, MemoryClient
from rayapp.client.progress import Progress, wait_indexed
from rayapp.local.cli.output import number_table
from rayapp.memory.item import SourceType
from rayapp.memory.tiers import Tier
from rayapp.wire.memories import SourceBody
from tests.support.blocks import parse_lines

STANDING = ("instruction_following", "preference_following")
MADE_ON = 4  # the rules were made on the first chats; the others were not looked at
BATCH = 100
# Per half and ability: questions, in the block, in the section.
Counts = dict[tuple[str, str], list[int]]


def parser() -> argparse.ArgumentParser:
    made = command_parser("tests.bench.standing", __doc__, out=False)
    made.add_argument("--data", type=Path, required=True, help="folder that holds the sets")
    made.add_argument("--url", required=True, help="service")
    made.add_argument("--lines", action="store_true", help="print what stands of each chat")
    return made


def memory_of(row: Sequence[Any]) -> Memory:
    number, role, _, text = row
    kind = SourceType.USER if role == PERSON else SourceType.ASSISTANT
    return Memory(
        text=str(text)[:LONGEST],
        tier=Tier.HISTORY,
        memory_id=str(number),
        source=SourceBody(type=kind),
    )


def section_of(block: str) -> str:
    """The lines of the instructions."""
    return block.partition(TITLES["instruction"])[2].partition("\n\n")[0]


async def store(client: MemoryClient, chats: Sequence[Mapping[str, Any]], run: str) -> None:
    for chat in chats:
        memories = [memory_of(row) for row in chat["messages"] if str(row[3]).strip()]
        for start in range(0, len(memories), BATCH):
            batch = memories[start : start + BATCH]
            await client.store_batch(batch, user_id=f"{run}-{chat['id']}")
    with Progress(Console(stderr=True)) as progress:
        await wait_indexed(client, progress, "index")


async def measured(arguments: argparse.Namespace, console: Console) -> Counts:
    path = arguments.data / FILE
    chats = read_json(path, NAME)
    run, counts = f"standing-{secrets.token_hex(3)}", defaultdict[Any, list[int]](lambda: [0, 0, 0])
    async with MemoryClient(arguments.url) as client:
        with rows_of(path, NAME):
            await store(client, chats, run)
            for place, chat in enumerate(chats):
                half = "made on" if place < MADE_ON else "left out"
                for number, asked in enumerate(q for q in chat["questions"] if q["gold"]):
                    user = f"{run}-{chat['id']}"
                    found = (await client.context(asked["question"], user_id=user)).text or ""
                    if arguments.lines and not number:
                        console.print(f"chat {chat['id']}{section_of(found)}", markup=False)
                    gold = {str(one) for one in asked["gold"]}
                    shown = [
                        gold & {one.memory_id for one in parse_lines(part)}
                        for part in (found, section_of(found))
                    ]
                    ability = asked["ability"] if asked["ability"] in STANDING else "others"
                    row = counts[half, ability]
                    row[:] = (row[0] + 1, row[1] + bool(shown[0]), row[2] + bool(shown[1]))
    return counts


def table(counts: Counts) -> Table:
    heads = ("chats", "ability", "questions", "in block", "among instructions")
    made = number_table("Evidence in the context block, BEAM", heads, words=2)
    for (half, ability), (asked, block, section) in sorted(counts.items()):
        shares = (f"{block / asked:.3f}", f"{section / asked:.3f}")
        made.add_row(half, ability, str(asked), *shares)
    return made


def _run(arguments: argparse.Namespace) -> int:
    console = Console()
    console.print(table(asyncio.run(measured(arguments, console))))
    return DONE


main = partial(run_command, parser, _run)

if __name__ == "__main__":
    sys.exit(main())
