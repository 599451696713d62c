"""What is shipped in `configs/` and beside the models, each read once per process."""

from functools import lru_cache

from rayapp.assistant.personality.rules import Template
from rayapp.assistant.prompt.rules import ModelWindow
from rayapp.assistant.tools.rules.table import ToolRow
from rayapp.core.settings.load import CONFIG_DIR
from rayapp.inference.sentence_heads import SentenceHeads, load_heads
from rayapp.search.rules.confidence import Calibration
from rayapp.search.rules.knowledge import KnowledgeRule
from rayapp.storage.files import (
    load_calibration,
    load_importance,
    load_knowledge,
    load_presets,
    load_signals,
    load_tools,
    load_windows,
)
from rayapp.understanding.rules.importance import ImportanceParams
from rayapp.understanding.rules.signals import SignalWords


@lru_cache
def calibration_of(model: str) -> Calibration | None:
    """The shipped one of an embedder; read once per process."""
    return load_calibration(CONFIG_DIR / "calibration", model)


@lru_cache
def knowledge_rule_of(model: str, encoder: str) -> KnowledgeRule | None:
    """The same."""
    return load_knowledge(CONFIG_DIR / "knowledge", model, encoder)


@lru_cache(maxsize=1)
def heads_of(encoder: str, model: str) -> SentenceHeads | None:
    """The heads; None where they were learned over another encoder, or beside another embedder."""
    heads = load_heads()
    return heads if (heads.encoder, heads.static_model) == (encoder, model) else None


@lru_cache(maxsize=1)
def presets() -> dict[str, Template]:
    """The shipped personalities; read once per process."""
    return load_presets(CONFIG_DIR / "personality")


@lru_cache(maxsize=1)
def model_windows() -> tuple[ModelWindow, ...]:
    """The shipped table; read once per process."""
    return load_windows(CONFIG_DIR / "model_windows.yaml")


@lru_cache(maxsize=1)
def signal_words() -> SignalWords:
    """The shipped tables; read once per process."""
    return load_signals(CONFIG_DIR / "understanding" / "signals.yaml")


@lru_cache(maxsize=1)
def importance_params() -> ImportanceParams:
    """The shipped weights; read once per process."""
    return load_importance(CONFIG_DIR / "understanding" / "weights.yaml")


@lru_cache(maxsize=1)
def tool_table() -> dict[str, ToolRow]:
    """The shipped table; read once per process."""
    return load_tools(CONFIG_DIR / "tools.yaml")
