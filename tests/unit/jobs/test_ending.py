"""How commands end: one sentence and the documented code for what a user can mend."""

import asyncio

import pytest

from jobs.ending import BAD_ARGUMENTS, DEPENDENCY_AWAY, exit_code_of
from rayapp.core.errors import ConfigError, DependencyDown, Overloaded, RayappError

AWAY, WRONG = DependencyDown("It is away."), ConfigError("It is wrong.")


async def failing(*errors: Exception) -> int:
    """Tasks that all fail, in this order, in a group within a group."""

    async def one(error: Exception) -> None:
        raise error

    async with asyncio.TaskGroup(), asyncio.TaskGroup() as group:
        for error in errors:
            group.create_task(one(error))
    return 0


def raising(error: BaseException) -> int:
    raise error


def test_work_that_ends_well_keeps_its_code() -> None:
    assert exit_code_of(lambda: 3) == 3


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (AWAY, DEPENDENCY_AWAY),
        (Overloaded("It is full."), DEPENDENCY_AWAY),
        (WRONG, BAD_ARGUMENTS),
        (ExceptionGroup("tasks", [AWAY]), DEPENDENCY_AWAY),
        (ExceptionGroup("tasks", [ExceptionGroup("inner", [WRONG]), AWAY]), BAD_ARGUMENTS),
    ],
)
def test_an_error_is_told_in_one_sentence(
    error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(lambda: raising(error)) == code
    assert capsys.readouterr().err.startswith("It is ")


@pytest.mark.parametrize("errors", [[AWAY], [AWAY, WRONG], [AWAY, AWAY, AWAY]])
def test_the_first_of_tasks_that_fail_together_is_told(
    errors: list[RayappError], capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code_of(lambda: asyncio.run(failing(*errors))) == DEPENDENCY_AWAY
    assert capsys.readouterr().err == "It is away.\n"


def test_a_bug_leaves_with_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError):
        exit_code_of(lambda: raising(ZeroDivisionError()))
    with pytest.raises(ExceptionGroup) as caught:
        exit_code_of(lambda: raising(ExceptionGroup("tasks", [AWAY, ZeroDivisionError()])))
    assert caught.group_contains(ZeroDivisionError)
