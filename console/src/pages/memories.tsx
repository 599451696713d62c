// The list: filters in the address, several at once, and what was done can be taken back.
import { type Signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { answerOf, api, type Schemas } from "../api";
import { number } from "../format";
import { failureFrom, useLoad } from "../load";
import { mayWrite } from "../session";
import { place, setQuery, to } from "../router";
import {
  Act, ask, Choice, Degraded, Empty, Field, FormEnd, Head, Said, Shown, Success, Tags, tell, TextField, Tier,
  useSending, When,
} from "../ui";
import { fill, language, TIER_NAMES, tierName, valueName, words } from "../words";

type Memory = Schemas["MemoryView"];
type Filters = Record<string, string | undefined>;

const SOURCES = ["user", "assistant", "tool", "document", "system", "datagov", "import"] as const;
// The first page is there at once; what follows comes in longer ones.
const PAGE = 50;
const NEXT_PAGE = 200;
// So many rows are drawn at once; a row is about so high before it was ever drawn.
const BLOCK = 50;
const ROW_HEIGHT = 84;

async function page(filters: Filters, cursor?: string): Promise<Schemas["ItemsAnswer"]> {
  const { tier, state, source, tag, words: text, from, until, order, conversation } = filters;
  return answerOf(
    api.GET("/api/memory/items", {
      params: {
        query: {
          limit: cursor ? NEXT_PAGE : PAGE,
          with_total: !cursor,
          status: state === "archived" ? "archived" : "active",
          sort: order === "score" || order === "updated" ? order : "recent",
          ...(cursor ? { cursor } : {}),
          ...(tier ? { tiers: [tier as Schemas["Tier"]] } : {}),
          ...(source ? { source_types: [source as Schemas["SourceType"]] } : {}),
          ...(tag ? { tags: [tag] } : {}),
          ...(text ? { query: text } : {}),
          ...(conversation ? { conversation_ids: [conversation] } : {}),
          ...(from ? { created_from: `${from}T00:00:00` } : {}),
          ...(until ? { created_to: `${until}T23:59:59` } : {}),
        },
      },
    }),
  );
}

export function archiveOf(ids: readonly string[], done: () => void): void {
  const what = ids.length === 1 ? words.value.thisMemory : fill(words.value.memoriesMany, number(ids.length));
  ask({
    title: fill(words.value.archiveTitle, what),
    body: words.value.archiveBody,
    action: words.value.archive,
    line: words.value.reason,
    act: async (reason) => {
      const answer = await answerOf(
        api.POST("/api/memory/bulk/archive", {
          body: { ids: [...ids], ...(reason ? { archived_reason: reason } : {}) },
        }),
      );
      done();
      tell(fill(words.value.archivedDone, number(answer.modified)), async () => {
        await restoreAll(ids);
        done();
      });
    },
  });
}

export async function restoreAll(ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    await answerOf(
      api.POST("/api/memory/items/{memory_id}/restore", {
        params: { path: { memory_id: id } },
        body: {},
      }),
    );
  }
  tell(fill(words.value.restored, number(ids.length)));
}

export function removeOf(ids: readonly string[], done: () => void): void {
  const what = ids.length === 1 ? words.value.thisMemory : fill(words.value.memoriesMany, number(ids.length));
  ask({
    title: fill(words.value.removeTitle, what),
    body: words.value.removeBody,
    action: words.value.remove,
    danger: true,
    act: async () => {
      const answer = await answerOf(api.POST("/api/memory/bulk/delete", { body: { ids: [...ids] } }));
      done();
      tell(fill(words.value.removed, number(answer.deleted)));
    },
  });
}

export function Memories(): JSX.Element {
  const filters: Filters = Object.fromEntries(place.value.query);
  const more = useSignal<{ pages: Memory[][]; cursor: string | null } | null>(null);
  const chosen = useSignal<ReadonlySet<string>>(new Set());
  const adding = useSignal(false);
  const loaded = useLoad(async () => {
    const found = await page(filters);
    more.value = null;
    chosen.value = new Set();
    return found;
  }, [place.value.query.toString()]);
  const cursor = more.value ? more.value.cursor : (loaded.data?.next_cursor ?? null);
  const pages = [loaded.data?.items ?? [], ...(more.value?.pages ?? [])];
  const items = pages.flat();
  const next = async (): Promise<void> => {
    if (!cursor) return;
    const found = await page(filters, cursor);
    more.value = { pages: [...(more.value?.pages ?? []), found.items], cursor: found.next_cursor };
  };
  const filtered = Object.keys(filters).some((name) => name !== "order");
  return (
    <>
      <Head title={words.value.memories} lead={words.value.memoriesLead}>
        {mayWrite.value && (
          <button class="main" onClick={() => (adding.value = !adding.value)} aria-expanded={adding.value}>
            {words.value.remember}
          </button>
        )}
      </Head>
      {adding.value && (
        <Remember
          done={() => {
            adding.value = false;
            loaded.again();
          }}
        />
      )}
      <FilterBar filters={filters} />
      <Shown of={loaded}>
        {(data) => (
          <>
            <Degraded of={data.degraded} />
            {items.length ? (
              <>
                <ChosenBar
                  items={items}
                  chosen={chosen.value}
                  set={(ids) => (chosen.value = ids)}
                  total={data.total ?? items.length}
                  archived={filters.state === "archived"}
                  done={loaded.again}
                />
                <div class="list">
                  <Blocks pages={pages} chosen={chosen} />
                </div>
                {cursor && <More next={next} key={cursor} />}
              </>
            ) : (
              <Empty text={filtered ? words.value.noneMatch : words.value.noMemories} />
            )}
          </>
        )}
      </Shown>
    </>
  );
}

/** The next page: by itself when the end comes into view, and by a button. */
export function More({ next }: { next: () => Promise<void> }): JSX.Element {
  const end = useRef<HTMLDivElement>(null);
  useEffect(() => {
    let asked = false;
    const watcher = new IntersectionObserver(
      (seen) => {
        if (asked || !seen.some((one) => one.isIntersecting)) return;
        asked = true;
        next().catch((error: unknown) => tell(failureFrom(error).message));
      },
      { rootMargin: "600px" },
    );
    if (end.current) watcher.observe(end.current);
    return () => watcher.disconnect();
  }, []);
  return (
    <div class="row center" ref={end}>
      <Act run={next}>{words.value.more}</Act>
    </div>
  );
}

function FilterBar({ filters }: { filters: Filters }): JSX.Element {
  const tiers = TIER_NAMES.map((name) => [name, tierName(name)] as const);
  const sources = SOURCES.map((name) => [name, valueName(name)] as const);
  const any = ["", words.value.all] as const;
  const change = (name: string) => (event: { currentTarget: HTMLInputElement }) =>
    setQuery({ [name]: event.currentTarget.value.trim() || undefined });
  const line = (name: string, label: string): JSX.Element => (
    <Field label={label}>
      {(id) => (
        <input
          id={id}
          type="search"
          dir="auto"
          // Not set again by what arrives while somebody types.
          key={filters[name] ?? ""}
          defaultValue={filters[name] ?? ""}
          maxLength={500}
          onChange={change(name)}
        />
      )}
    </Field>
  );
  const day = (name: string, label: string): JSX.Element => (
    <Field label={label}>
      {(id) => (
        <input
          id={id}
          type="date"
          key={filters[name] ?? ""}
          defaultValue={filters[name] ?? ""}
          onChange={change(name)}
        />
      )}
    </Field>
  );
  const choice = (
    name: string,
    label: string,
    options: readonly (readonly [string, string])[],
  ): JSX.Element => (
    <Choice
      label={label}
      value={filters[name] ?? ""}
      options={options}
      set={(value) => setQuery({ [name]: value || undefined })}
    />
  );
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      {line("words", words.value.wordsIn)}
      {choice("tier", words.value.tier, [any, ...tiers])}
      {choice("state", words.value.state, [
        ["", words.value.active],
        ["archived", words.value.archived],
      ])}
      {choice("source", words.value.source, [any, ...sources])}
      {line("tag", words.value.tag)}
      {day("from", words.value.from)}
      {day("until", words.value.until)}
      {choice("order", words.value.order, [
        ["", words.value.newest],
        ["updated", words.value.lately],
        ["score", words.value.best],
      ])}
      {Object.keys(filters).length > 0 && (
        <a class="button plain" href={to(["memories"])}>
          {words.value.clearFilters}
        </a>
      )}
    </form>
  );
}

function ChosenBar({
  items,
  chosen,
  set,
  total,
  archived,
  done,
}: {
  items: readonly Memory[];
  chosen: ReadonlySet<string>;
  set: (ids: ReadonlySet<string>) => void;
  total: number;
  archived: boolean;
  done: () => void;
}): JSX.Element {
  const ids = [...chosen];
  return (
    <div class="chosen row">
      {mayWrite.value && (
        <label class="check">
          <input
            type="checkbox"
            checked={ids.length > 0 && ids.length === items.length}
            onChange={(event) =>
              set(new Set(event.currentTarget.checked ? items.map((one) => one.memory_id) : []))
            }
          />
          <span class="unseen">{words.value.selectAll}</span>
        </label>
      )}
      <span class="count">
        {ids.length
          ? fill(words.value.chosen, number(ids.length))
          : fill(words.value.found, number(total))}
      </span>
      {ids.length > 0 && (
        <>
          {archived ? (
            <Act run={() => restoreAll(ids).then(done)}>{words.value.restore}</Act>
          ) : (
            <button class="plain" onClick={() => archiveOf(ids, done)}>
              {words.value.archive}
            </button>
          )}
          <button class="danger" onClick={() => removeOf(ids, done)}>
            {words.value.remove}
          </button>
        </>
      )}
    </div>
  );
}

/** The pages in blocks. A block whose rows and choices are the same is the same element: the ones
 * before cost nothing when another page comes. */
function Blocks({ pages, chosen }: { pages: readonly Memory[][]; chosen: Signal<ReadonlySet<string>> }): JSX.Element {
  const made = useRef(new Map<string, { of: Memory; picked: string; shown: JSX.Element }>());
  const choose = (id: string, on: boolean): void => {
    const ids = new Set(chosen.value);
    if (on) ids.add(id);
    else ids.delete(id);
    chosen.value = ids;
  };
  const shown: JSX.Element[] = [];
  for (const page of pages) {
    for (let start = 0; start < page.length; start += BLOCK) {
      const of = page[start] as Memory;
      const old = made.current.get(of.memory_id);
      if (old?.of === of && !chosen.value.size && !old.picked) {
        shown.push(old.shown);
        continue;
      }
      const items = page.slice(start, start + BLOCK);
      const ids = items.filter((item) => chosen.value.has(item.memory_id));
      const picked = ids.map((item) => item.memory_id).join();
      const next =
        old?.of === of && old.picked === picked
          ? old.shown
          : <Block key={of.memory_id} items={items} picked={picked} choose={choose} drawn={!start} />;
      made.current.set(of.memory_id, { of, picked, shown: next });
      shown.push(next);
    }
  }
  return <>{shown}</>;
}

/** The rows of a block of the list; far from what is seen they are a space of their height. */
function Block({
  items,
  picked,
  choose,
  drawn,
}: {
  items: Memory[];
  picked: string;
  choose: (id: string, on: boolean) => void;
  drawn: boolean;
}): JSX.Element {
  const list = useRef<HTMLUListElement>(null);
  const height = useRef(items.length * ROW_HEIGHT);
  const [near, setNear] = useState(drawn);
  useEffect(() => {
    const watcher = new IntersectionObserver(
      (seen) => {
        const last = seen[seen.length - 1];
        if (!last) return;
        if (!last.isIntersecting && list.current?.firstChild)
          height.current = last.boundingClientRect.height;
        setNear(last.isIntersecting);
      },
      { rootMargin: "2000px" },
    );
    if (list.current) watcher.observe(list.current);
    return () => watcher.disconnect();
  }, []);
  const act = useRef(choose);
  act.current = choose;
  // The same rows are the same element: what was shown before is not compared again.
  const rows = useMemo(() => {
    const chosen = new Set(picked.split(","));
    return items.map((item) => (
      <Row
        key={item.memory_id}
        item={item}
        chosen={chosen.has(item.memory_id)}
        choose={(on) => act.current(item.memory_id, on)}
      />
    ));
  }, [items, picked, language.value, mayWrite.value]);
  return (
    <ul ref={list} style={near ? {} : { blockSize: `${height.current}px` }}>
      {near && rows}
    </ul>
  );
}

function Row({
  item,
  chosen,
  choose,
}: {
  item: Memory;
  chosen: boolean;
  choose: (on: boolean) => void;
}): JSX.Element {
  const judged = item.stats.worked_count + item.stats.partial_count + item.stats.failed_count > 0;
  return (
    <li class={chosen ? "picked" : ""}>
      {mayWrite.value && (
        <label class="check">
          <input
            type="checkbox"
            checked={chosen}
            onChange={(event) => choose(event.currentTarget.checked)}
          />
          <span class="unseen">
            {words.value.select} <Said text={item.text} most={60} />
          </span>
        </label>
      )}
      <div class="grow">
        <a class="text" href={to(["memories", item.memory_id])}>
          <Said text={item.text} most={400} />
        </a>
        <div class="meta">
          <Tier name={item.tier} />
          {item.always_inject && <span class="chip">{words.value.pinned}</span>}
          <span>{valueName(item.source.type)}</span>
          <When at={item.created_at} />
          {judged && <Success of={item.success_estimate} />}
          {item.index.sync_state === "pending" && (
            <span class="chip">{words.value.waitingIndex}</span>
          )}
          {item.index.sync_state === "failed" && (
            <span class="chip bad">{words.value.failedIndex}</span>
          )}
          <Tags of={item.tags} />
        </div>
      </div>
    </li>
  );
}

export const tagsOf = (line: string): string[] =>
  line
    .split(/[,،;]/)
    .map((tag) => tag.trim())
    .filter(Boolean);

function Remember({ done }: { done: () => void }): JSX.Element {
  const [text, setText] = useState("");
  const [tier, setTier] = useState("memory_bank");
  const [tags, setTags] = useState("");
  const sending = useSending(async () => {
    await answerOf(
      api.POST("/api/memory/store", {
        body: {
          text,
          tier: tier as Schemas["Tier"],
          tags: tagsOf(tags),
          // What a person writes down here is meant to be kept.
          ...(tier === "memory_bank" ? { importance: 0.8, confidence: 0.9 } : {}),
        } as Schemas["StoreBody"],
      }),
    );
    tell(words.value.saved);
    done();
  });
  const tiers = ["memory_bank", "history", "working", "patterns"];
  return (
    <form class="card" onSubmit={sending.submit}>
      <TextField label={words.value.text} rows={3} required value={text} set={setText} />
      <div class="filters">
        <Choice
          label={words.value.tier}
          value={tier}
          options={tiers.map((name) => [name, tierName(name)] as const)}
          set={setTier}
        />
        <TextField
          label={words.value.tags}
          hint={words.value.tagsHint}
          most={2000}
          value={tags}
          set={setTags}
        />
      </div>
      <FormEnd of={sending} action={words.value.save} off={!text.trim()} />
    </form>
  );
}
