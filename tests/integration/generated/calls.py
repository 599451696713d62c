"""Store, search and outcomes through the client that openapi-python-client writes."""

import json
import sys

from generated_client import Client
from generated_client.api.learning import post_memory_outcomes
from generated_client.api.memories import post_memory_store
from generated_client.api.search import post_memory_search
from generated_client.models import OutcomeBody, SearchBody, StoreBody

client = Client(base_url=sys.argv[1], headers={"X-User-Id": "generated-py"})
stored = post_memory_store.sync(client=client, body=StoreBody(text="Dana moved to Haifa in May"))
found = post_memory_search.sync(client=client, body=SearchBody(query="where does Dana live"))
judged = OutcomeBody.from_dict({"memory_ids": [stored.memory_id], "outcome": "worked"})
scored = post_memory_outcomes.sync(client=client, body=judged)
seen = {
    "memory_id": stored.memory_id,
    "first": found.results[0].memory_id,
    "updated": [one.memory_id for one in scored.updated],
    "skipped": [one.reason for one in scored.skipped],
}
print(json.dumps(seen))
