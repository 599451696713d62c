// Two nodes that are one, or one that is two: first what it would do, then done, and back again.
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { answerOf, api, type Schemas } from "../api";
import { number, percent } from "../format";
import { useLoad } from "../load";
import { go, to } from "../router";
import { mayWrite } from "../session";
import { memories } from "../texts";
import { Act, Choice, Facts, FormEnd, Said, Shown, Tags, tell, useSending, When } from "../ui";
import { fill, valueName, words } from "../words";

type Node = Schemas["KnowledgeNodeView"];
type Merged = Schemas["MergedAnswer"];
type Row = Schemas["MergeView"];

export const MOST = 200;
/** Counts what was merged, split or taken back: pages that show nodes ask again. */
export const changes = signal(0);

export async function nodesOf(type: string): Promise<Node[]> {
  const query = { limit: MOST, ...(type ? { type } : {}) };
  return (await answerOf(api.GET("/api/knowledge/nodes", { params: { query } }))).nodes;
}

async function show(merged: Merged): Promise<void> {
  changes.value += 1;
  go(to(["people", merged.node.id]));
}

async function decide(id: string, decision: "accept" | "decline" | "undo"): Promise<void> {
  const params = { path: { merge_id: id } };
  const done = answerOf(api.POST("/api/knowledge/merges/{merge_id}", { params, body: { decision } }));
  await show(await done);
  tell(words.value[`did_${decision}`], decision === "undo" ? undefined : () => decide(id, "undo"));
}

/** Sent twice: what it would do is told first, and the same again does it. `chosen`: of what. */
function Trial({
  chosen,
  send,
  action,
  close,
  children,
}: {
  chosen: string;
  send: (dry_run: boolean) => Promise<Merged>;
  action: string;
  close: () => void;
  children: ComponentChildren;
}): JSX.Element {
  const [tried, setTried] = useState<{ of: string; would: Merged }>();
  const would = tried?.of === chosen ? tried.would : undefined;
  const sending = useSending(async () => {
    const answer = await send(!would);
    if (!would) return setTried({ of: chosen, would: answer });
    close();
    await show(answer);
    tell(words.value.saved, () => decide(answer.merge.id, "undo"));
  });
  return (
    <form class="card" aria-label={action} onSubmit={sending.submit}>
      {children}
      <div role="status">
        {would && (
          <>
            <p>{words.value.wouldMerge}</p>
            <Facts
              of={[
                [words.value.name, <Said text={would.node.name} most={200} />],
                [words.value.otherNames, <Tags of={[...would.node.names, ...would.node.synonyms]} />],
                [words.value.readsAnew, number(would.moved)],
                [words.value.wouldEnd, number(would.ended.length)],
              ]}
            />
          </>
        )}
      </div>
      <FormEnd of={sending} action={would ? action : words.value.tryFirst} off={!chosen} />
    </form>
  );
}

export function Merging({ node, close }: { node: Node; close: () => void }): JSX.Element {
  const [other, setOther] = useState("");
  const [kept, setKept] = useState(node.id);
  const nodes = useLoad(() => nodesOf(node.type), []);
  const others = (nodes.data ?? []).filter((one) => one.id !== node.id);
  const pair = [node, ...others.filter((one) => one.id === other)];
  const send = (dry_run: boolean): Promise<Merged> => {
    const gone_id = kept === node.id ? other : node.id;
    return answerOf(api.POST("/api/knowledge/merges", { body: { kept_id: kept, gone_id, dry_run } }));
  };
  const named = (one: Node) => [one.id, one.name.slice(0, 60)] as const;
  return (
    <Trial chosen={other && `${kept} ${other}`} send={send} action={words.value.mergeNow} close={close}>
      <div class="filters">
        <Choice
          label={words.value.sameAs}
          value={other}
          options={[["", words.value.choose], ...others.map(named)]}
          set={(value) => {
            setOther(value);
            setKept(node.id);
          }}
        />
        <Choice label={words.value.stays} value={kept} options={pair.map(named)} set={setKept} />
      </div>
    </Trial>
  );
}

export function Splitting({ node, ids, close }: { node: Node; ids: string[]; close: () => void }): JSX.Element {
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const send = (dry_run: boolean): Promise<Merged> =>
    answerOf(api.POST("/api/knowledge/splits", { body: { node_id: node.id, memory_ids: [...chosen], dry_run } }));
  return (
    <Trial chosen={chosen.join()} send={send} action={words.value.splitNow} close={close}>
      <p class="quiet">{words.value.splitLead}</p>
      <ul class="lines">
        {ids.map((id) => (
          <li key={id}>
            <label class="check">
              <input
                type="checkbox"
                checked={chosen.includes(id)}
                onChange={(event) =>
                  setChosen(event.currentTarget.checked ? [...chosen, id] : chosen.filter((one) => one !== id))
                }
              />
              <Said text={memories.value.get(id)?.text ?? id} most={200} />
            </label>
          </li>
        ))}
      </ul>
    </Trial>
  );
}

export const ledger = (node_id?: string): Promise<Schemas["MergesAnswer"]> => {
  const query = { limit: MOST, ...(node_id ? { node_id } : {}) };
  return answerOf(api.GET("/api/knowledge/merges", { params: { query } }));
};

/** What was merged and split of a node, and what waits: each can be taken back. */
export function Ledger({ id }: { id: string }): JSX.Element {
  const loaded = useLoad(() => ledger(id), [id, changes.value]);
  return (
    <Shown of={loaded}>
      {({ merges }) =>
        merges.length > 0 && (
          <section class="card">
            <h2>{words.value.mergesAndSplits}</h2>
            <ul class="list">
              {merges.map((one) => (
                <Decided key={one.id} of={one} />
              ))}
            </ul>
          </section>
        )
      }
    </Shown>
  );
}

/** Both of them, each with its page. */
export function Pair({ of }: { of: Row }): JSX.Element {
  const [gone, kept] = [of.gone, of.kept].map((one) => (
    <a href={to(["people", one.id])}>
      <Said text={one.name} most={100} />
    </a>
  ));
  return (
    <p>
      {gone} {of.kind === "merge" ? "=" : "≠"} {kept}
    </p>
  );
}

function Decided({ of }: { of: Row }): JSX.Element {
  return (
    <li>
      <div class="grow">
        <Pair of={of} />
        <div class="meta">
          <span class="chip">{valueName(of.kind)}</span>
          <span>{valueName(of.state)}</span>
          {of.score !== null && <span>{fill(words.value.sureOf, percent(of.score))}</span>}
          {of.decided_by && <Said text={valueName(of.decided_by)} most={60} />}
          <When at={of.decided_at ?? of.created_at} />
        </div>
      </div>
      {mayWrite.value && (
        <div class="row">
          {of.state === "pending" && <Act run={() => decide(of.id, "accept")}>{words.value.accept}</Act>}
          {of.state === "pending" && <Act run={() => decide(of.id, "decline")}>{words.value.decline}</Act>}
          {of.can_undo && <Act run={() => decide(of.id, "undo")}>{words.value.undo}</Act>}
        </div>
      )}
    </li>
  );
}
