// What waits for a person: accept, edit or decline it with one key, and take that back.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { answerOf, api, type Schemas } from "../api";
import { number, percent } from "../format";
import { failureFrom, useLoad } from "../load";
import { place, setQuery } from "../router";
import { mayWrite } from "../session";
import { SaidBy } from "../texts";
import { Act, Choice, Empty, FormEnd, Head, Said, Shown, tell, TextField, useSending, When } from "../ui";
import { fill, valueName, words } from "../words";
import { ledger, Pair } from "./merges";

type Item = Schemas["ReviewItemView"];
type Decision = "accept" | "edit" | "decline" | "undo";

const STATES = ["pending", "accepted", "declined", "in_doubt"] as const;
/** Those that are made of what memories say, and have words of their own; others are a yes or a no. */
const WORDED = ["thought", "episode"];

async function decide(item: Item, decision: Decision, said?: { title: string; text: string }): Promise<void> {
  await answerOf(
    api.POST("/api/review/{kind}/{derived_id}", {
      params: { path: { kind: item.kind, derived_id: item.id } },
      body: { decision, ...said } as Schemas["DecisionBody"],
    }),
  );
}

export function Review(): JSX.Element {
  const state = place.value.query.get("state") ?? "pending";
  const kind = place.value.query.get("kind") ?? "";
  const at = useSignal(0);
  const editing = useSignal("");
  const lately = useRef<Item | undefined>(undefined);
  const loaded = useLoad(
    () =>
      answerOf(
        api.GET("/api/review", {
          params: { query: { state: state as (typeof STATES)[number], limit: 50, ...(kind ? { kind } : {}) } },
        }),
      ),
    [state, kind],
  );
  // Decided, and still in the answer before: a key that is pressed twice means the next one.
  const decided = useSignal("");
  useEffect(() => void (decided.value = ""), [loaded.data]);
  const items = (loaded.data?.items ?? []).filter((one) => one.id !== decided.value);
  const asks = items.some((one) => one.kind === "merge");
  const merges = useLoad(async () => (asks ? (await ledger()).merges : []), [asks, loaded.data]);
  const now = items[Math.min(at.value, items.length - 1)];
  const act = async (item: Item, decision: Decision): Promise<void> => {
    decided.value = item.id;
    await decide(item, decision).catch((error: unknown) => {
      decided.value = "";
      throw error;
    });
    lately.current = decision === "undo" ? undefined : item;
    tell(
      words.value[`did_${decision === "edit" ? "accept" : decision}`],
      decision === "undo" ? undefined : () => act(item, "undo"),
    );
    loaded.again();
  };
  const pressed = useRef<(key: string) => boolean>(() => false);
  pressed.current = (key) => {
    if (key === "j") at.value = Math.min(at.value + 1, items.length - 1);
    else if (key === "k") at.value = Math.max(at.value - 1, 0);
    else if (!mayWrite.value) return false;
    else if (key === "u" && lately.current) run(act(lately.current, "undo"));
    else if (!now) return false;
    else if (key === "a") run(act(now, "accept"));
    else if (key === "d") run(act(now, "decline"));
    else if (key === "e" && WORDED.includes(now.kind)) editing.value = now.id;
    else return false;
    return true;
  };
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      const target = event.target as Element;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (target.closest("input, textarea, select, dialog")) return;
      // By the place of the key: a Hebrew keyboard has other letters there.
      const key = event.code.replace("Key", "").toLowerCase();
      if (pressed.current(key)) event.preventDefault();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
  return (
    <>
      <Head title={words.value.review} lead={words.value.reviewLead} />
      <div class="filters">
        <Choice
          label={words.value.state}
          value={state}
          options={STATES.map((name) => [name, valueName(name)] as const)}
          set={(value) => setQuery({ state: value === "pending" ? undefined : value })}
        />
        <Choice
          label={words.value.type}
          value={kind}
          options={[
            ["", words.value.all],
            ...Object.entries(loaded.data?.waiting ?? {}).map(
              ([name, count]) => [name, count ? `${valueName(name)} (${number(count)})` : valueName(name)] as const,
            ),
          ]}
          set={(value) => setQuery({ kind: value || undefined })}
        />
      </div>
      <p class="quiet keys">{words.value.reviewKeys}</p>
      <Shown of={loaded}>
        {() =>
          items.length ? (
            <ol class="list">
              {items.map((item) => (
                <Waiting
                  key={item.id}
                  item={item}
                  pair={merges.data?.find((one) => one.id === item.id)}
                  chosen={item.id === now?.id}
                  editing={editing.value === item.id}
                  edit={(on) => (editing.value = on ? item.id : "")}
                  act={(decision) => act(item, decision)}
                  again={() => {
                    lately.current = item;
                    editing.value = "";
                    loaded.again();
                  }}
                />
              ))}
            </ol>
          ) : (
            <Empty text={state === "pending" ? words.value.nothingWaits : words.value.nothingDecided} />
          )
        }
      </Shown>
    </>
  );
}

const run = (call: Promise<void>): void => {
  call.catch((error: unknown) => tell(failureFrom(error).message));
};

/** "name 0.80, company 0.41": how much two nodes are alike, and in what. */
const alikeIn = (text: string): string =>
  text.replace(/(\w+) (\d\.\d+)/g, (_, what: string, much: string) => `${valueName(what)} ${percent(Number(much))}`);

function Waiting({
  item,
  pair,
  chosen,
  editing,
  edit,
  act,
  again,
}: {
  item: Item;
  pair: Schemas["MergeView"] | undefined;
  chosen: boolean;
  editing: boolean;
  edit: (on: boolean) => void;
  act: (decision: Decision) => Promise<void>;
  again: () => void;
}): JSX.Element {
  const row = useRef<HTMLLIElement>(null);
  const worded = WORDED.includes(item.kind);
  useEffect(() => {
    if (chosen) row.current?.scrollIntoView({ block: "nearest" });
  }, [chosen]);
  return (
    <li ref={row} class={chosen ? "picked" : ""} aria-current={chosen ? "true" : undefined}>
      <div class="grow">
        {editing ? (
          <Editing item={item} close={() => edit(false)} done={again} />
        ) : (
          <>
            {pair ? (
              <Pair of={pair} />
            ) : (
              <p>
                <strong>
                  <Said text={item.title} most={200} />
                </strong>
              </p>
            )}
            {item.text && (
              <p>
                <Said text={item.kind === "merge" ? alikeIn(item.text) : item.text} most={1000} />
              </p>
            )}
          </>
        )}
        <div class="meta">
          <span class="chip">{valueName(item.kind)}</span>
          {worded && <span>{valueName(item.level)}</span>}
          {item.confidence > 0 && <span>{fill(words.value.sureOf, percent(item.confidence))}</span>}
          {worded && <span>{fill(words.value.seenIn, number(item.support), number(item.days))}</span>}
          {item.trend && <span>{valueName(item.trend)}</span>}
          <When at={item.last_at} />
        </div>
        <SaidBy ids={item.source_ids} />
      </div>
      {mayWrite.value && !editing && (
        <div class="row">
          {item.state !== "accepted" && (
            <Act kind="main" run={() => act("accept")}>
              {words.value.accept}
            </Act>
          )}
          {worded && (
            <button class="plain" onClick={() => edit(true)}>
              {words.value.edit}
            </button>
          )}
          {item.state !== "declined" && (
            <Act kind="danger" run={() => act("decline")}>
              {words.value.decline}
            </Act>
          )}
          {item.can_undo && <Act run={() => act("undo")}>{words.value.undo}</Act>}
        </div>
      )}
    </li>
  );
}

function Editing({ item, close, done }: { item: Item; close: () => void; done: () => void }): JSX.Element {
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector("input")?.focus(), []);
  const [title, setTitle] = useState(item.title);
  const [text, setText] = useState(item.text);
  const sending = useSending(async () => {
    await decide(item, "edit", { title: title.trim(), text: text.trim() });
    tell(words.value.did_accept, () => decide(item, "undo").then(done));
    done();
  });
  return (
    <form
      ref={form}
      aria-label={words.value.edit}
      onSubmit={sending.submit}
      onKeyDown={(event) => event.key === "Escape" && close()}
    >
      <TextField label={words.value.name} most={200} value={title} set={setTitle} />
      <TextField label={words.value.text} rows={3} value={text} set={setText} />
      <FormEnd of={sending} action={words.value.saveAccept} off={!title.trim() || !text.trim()} cancel={close} />
    </form>
  );
}
