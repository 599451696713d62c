"""Stores the material, waits for the index, asks the questions and prints the table."""

import shlex
from collections import Counter

from rich.console import Console

from jobs.ending import BAD_ARGUMENTS, DEPENDENCY_AWAY, DONE, WITH_FAILURES
from rayapp.client import MemoryClient
from rayapp.client.calls import explained
from rayapp.client.discovery import key_advice
from rayapp.client.progress import Progress, wait_indexed
from rayapp.core.errors import RayappError, Unauthorized
from rayapp.local.demo.material import Material
from rayapp.local.demo.table import LEGEND, DemoAnswer, answer_table, closing_line

BATCH_ITEMS = 50  # small enough for the bar to move, large enough to be one quick call
# It acts for a user of its own, and looks at the backlog of the index.
DEMO_KEY = "demo --user demo --scope admin"
RESULTS = 10  # hits asked per question


async def run(
    url: str,
    material: Material,
    console: Console,
    *,
    api_key: str | None = None,
    program: str = "rayapp",
    options: str = "",
) -> int:
    """Run the demo against the service at `url`; safe to repeat.

    Args:
        api_key: bearer key that may act for the demo's user; None in keyless local mode.
        program, options: of the commands that it ends with, as a shell takes them.

    Returns:
        Exit code: 0 done, 2 refused, 3 memories were rejected, 4 the service is away.
    """
    try:
        async with MemoryClient(url, user_id=material.user_id, api_key=api_key) as client:
            exit_code = await _show(client, material, console)
    except RayappError as error:
        keyless = isinstance(error, Unauthorized) and api_key is None
        message = key_advice(DEMO_KEY) if keyless else error.message
        console.print(message, style="red", markup=False, highlight=False, soft_wrap=True)
        return DEPENDENCY_AWAY if error.retryable else BAD_ARGUMENTS
    console.print("\nGo on with:")
    for command in next_commands(material, program, options):
        console.print(f"  {command}", markup=False, highlight=False, soft_wrap=True)
    return exit_code


def next_commands(material: Material, program: str, options: str) -> list[str]:
    """Three commands for the demo's user, to be typed as they are."""
    question = shlex.quote(material.next_question)
    user = " ".join(part for part in (f"--user {material.user_id}", options) if part)
    return [
        f"{program} search {question} {user}",
        f"{program} add 'Dana moved to Haifa in May' {user}",
        f"{program} recent {user}",
    ]


async def _show(client: MemoryClient, material: Material, console: Console) -> int:
    await client.backlog()  # an absent service is said before anything is shown
    console.print(material.title, style="bold", markup=False)
    with Progress(console) as progress:
        states = await _store(client, material, progress)
        await wait_indexed(client, progress, "waiting until indexed")
        answers = await _ask(client, material, progress)
    console.print(answer_table(answers, material.translations))
    console.print(LEGEND, style="dim", markup=False)
    console.print(
        f"{states['stored']} memories stored, {states['duplicate']} were there already, "
        f"{states['rejected']} rejected."
    )
    console.print(closing_line(answers), markup=False)
    for line in explained(name for answer in answers for name in answer.reply.degraded):
        console.print(line, style="yellow", markup=False, soft_wrap=True)
    return WITH_FAILURES if states["rejected"] else DONE


async def _store(client: MemoryClient, material: Material, progress: Progress) -> Counter[str]:
    """How many were stored, were duplicates, or were rejected."""
    states: Counter[str] = Counter()
    memories = material.memories
    with progress.step("store", len(memories)) as bar:
        for start in range(0, len(memories), BATCH_ITEMS):
            replies = await client.store_batch(memories[start : start + BATCH_ITEMS])
            states.update(reply.status for reply in replies)
            bar.advance(len(replies))
    return states


async def _ask(client: MemoryClient, material: Material, progress: Progress) -> list[DemoAnswer]:
    answers = []
    with progress.step("ask", len(material.questions)) as bar:
        for question in material.questions:
            reply = await client.search(question.text, limit=RESULTS)
            answers.append(DemoAnswer(question, reply))
            bar.advance()
    return answers
