"""Builds what lets helpers ask a language model; off without an endpoint."""

from __future__ import annotations

from rayapp.core.breaker import Breaker, BreakerPolicy
from rayapp.core.runtime import Runtime
from rayapp.inference.backends.chat_model import HttpChatModel
from rayapp.inference.chat.service import ModelCalls
from rayapp.inference.ports import UsageStore
from rayapp.inference.prompts.loader import load_prompts


def build_models(runtime: Runtime, usage: UsageStore) -> ModelCalls:
    """The calls of this process. One per process: it counts what is in flight."""
    settings, rules = runtime.settings.models, runtime.settings.breaker
    chat = None
    if settings.on:
        chat = HttpChatModel(settings.base_url, model=settings.model, api_key=settings.api_key)
    policy = BreakerPolicy(failures=rules.failures, open_s=rules.open_s, successes=rules.successes)
    return ModelCalls(
        chat, usage, load_prompts(), breaker=Breaker("models", policy), runtime=runtime
    )
