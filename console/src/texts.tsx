// Memories that something else names by their id: fetched once, shown as a line.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { answerOf, api, type Schemas } from "./api";
import { number } from "./format";
import { to } from "./router";
import { Said } from "./ui";
import { fill, words } from "./words";

type Memory = Schemas["MemoryView"];

// So many stay: more than any page names.
const MOST = 1000;
/** Null: it is there no longer, or belongs to another user. */
export const memories = signal<ReadonlyMap<string, Memory | null>>(new Map());
const busy = new Set<string>();

export async function fetchMemory(id: string, again = false): Promise<void> {
  if (busy.has(id) || (memories.value.has(id) && !again)) return;
  busy.add(id);
  let found: Memory | null = null;
  try {
    const params = { path: { memory_id: id } };
    found = (await answerOf(api.GET("/api/memory/items/{memory_id}", { params }))).memory;
  } catch {
    // Its id alone is shown.
  }
  busy.delete(id);
  const kept = [...memories.value].filter(([other]) => other !== id).slice(-MOST);
  memories.value = new Map([...kept, [id, found]]);
}

/** A link to the memory, in its own words. */
export function MemoryLine({ id, most = 200 }: { id: string; most?: number }): JSX.Element {
  useEffect(() => void fetchMemory(id), [id]);
  const found = memories.value.get(id);
  return (
    <a class="text" href={to(["memories", id])}>
      {found === null ? (
        <span class="quiet">
          <bdi dir="ltr">{id}</bdi> · {words.value.gone}
        </span>
      ) : (
        <Said text={found?.text ?? "…"} most={most} />
      )}
    </a>
  );
}

/** The memories that say it, folded. */
export function SaidBy({ ids }: { ids: readonly string[] }): JSX.Element | null {
  if (ids.length === 0) return null;
  return (
    <details>
      <summary>{fill(words.value.saidBy, number(ids.length))}</summary>
      <ul class="lines">
        {ids.map((id) => (
          <li key={id}>
            <MemoryLine id={id} />
          </li>
        ))}
      </ul>
    </details>
  );
}
