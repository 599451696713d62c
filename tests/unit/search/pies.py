"""Nine memories and a reranker that knows which is best."""

from rayapp.memory.tiers import Tier
from tests.support.harness import FixedReranker, Harness


async def nine_pies() -> Harness:
    """The reranker puts the variant 8 first."""
    service = await Harness.open(reranker={"backend": "http", "url": "http://127.0.0.1:1"})
    for number in range(9):
        await service.store(f"apple pie variant {number}", tier=Tier.HISTORY)
    await service.drain()
    service.reranker.inner = FixedReranker(lambda _q, text: 1.0 if text.endswith("8") else 0.0)
    return service
