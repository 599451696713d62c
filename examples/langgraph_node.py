"""LangGraph: a node that puts what the user told before into the state of the graph."""

from typing import TypedDict

from langgraph.graph import START, StateGraph

from rayapp.client import MemoryClient


class State(TypedDict, total=False):
    question: str
    memories: list[str]


def recalling(memory: MemoryClient):
    async def recall(state: State) -> State:
        found = await memory.search(state["question"], limit=5)
        return {"memories": [hit.content for hit in found.results]}

    return StateGraph(State).add_node("recall", recall).add_edge(START, "recall").compile()
