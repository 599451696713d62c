"""Client calls about texts that are kept if they matter."""

from collections.abc import Sequence
from typing import Any, Unpack

from rayapp.client.calls import Reader, Talk, Writer, at, call
from rayapp.client.core import Core
from rayapp.wire import raw_data as wire

RAW_DATA = "/api/memory/raw-data"


def json_of(text: wire.RawDataItem) -> dict[str, Any]:
    """Its JSON; the fields that are not set are left to the server."""
    return text.model_dump(mode="json", exclude_defaults=True)


class RawDataCalls(Core):
    """The calls."""

    @call
    def add_raw_data(
        self, text: wire.RawDataItem, **who: Unpack[Writer]
    ) -> Talk[wire.RawDataAnswer]:
        """Keep a text if it matters; the answer says why. Raises Conflict, code
        `understanding_off`: the service derives nothing of this user."""
        return self.writing(wire.RawDataAnswer, RAW_DATA, json_of(text), **who)

    @call
    def add_raw_data_batch(
        self, texts: Sequence[wire.RawDataItem], **who: Unpack[Writer]
    ) -> Talk[wire.RawDataBatchAnswer]:
        """The same of many, each decided by itself."""
        body = {"items": [json_of(text) for text in texts]}
        return self.writing(wire.RawDataBatchAnswer, f"{RAW_DATA}/batch", body, **who)

    @call
    def raw_data(self, memory_id: str, **who: Unpack[Reader]) -> Talk[wire.RawDataAnswer]:
        """What was decided of a memory, and why. Raises NotFound: no such memory of the user."""
        return self.reading(wire.RawDataAnswer, at(RAW_DATA, memory_id), **who)

    @call
    def reprocess_raw_data(
        self, memory_id: str, *, force: bool = False, **who: Unpack[Writer]
    ) -> Talk[wire.RawDataAnswer]:
        """Decide on it anew; `force`: derive from it whatever its score is. Raises NotFound."""
        path = f"{at(RAW_DATA, memory_id)}/reprocess"
        return self.writing(wire.RawDataAnswer, path, {"force": force}, **who)
