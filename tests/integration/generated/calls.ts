// Store, search and outcomes through the client that openapi-typescript types: what has a default
// may be left out, or this does not compile.
import createClient from "openapi-fetch";
import type { components, paths } from "./api";

declare const process: { argv: string[]; exitCode?: number };

const api = createClient<paths>({
  baseUrl: process.argv[2],
  headers: { "X-User-Id": "generated-ts" },
});

async function main(): Promise<void> {
  const memory: components["schemas"]["StoreBody"] = { text: "Dana moved to Haifa in May" };
  const stored = await api.POST("/api/memory/store", { body: memory });
  const found = await api.POST("/api/memory/search", { body: { query: "where does Dana live" } });
  const memoryIds = stored.data ? [stored.data.memory_id] : [];
  const scored = await api.POST("/api/memory/outcomes", {
    body: { memory_ids: memoryIds, outcome: "worked" },
  });
  const seen = {
    memory_id: stored.data?.memory_id,
    first: found.data?.results[0]?.memory_id,
    updated: scored.data?.updated.map((one) => one.memory_id),
    skipped: scored.data?.skipped.map((one) => one.reason),
  };
  console.log(JSON.stringify(seen));
}

void main();
