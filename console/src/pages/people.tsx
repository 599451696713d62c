// People and things that memories name: what is said of them, since when, and by which memory.
import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { answerOf, api, save, type Schemas } from "../api";
import { moment, number, percent } from "../format";
import known from "../known.json";
import { type Loaded, useLoad } from "../load";
import { go, place, setQuery, to } from "../router";
import { mayWrite } from "../session";
import { fetchMemory, memories, MemoryLine, SaidBy } from "../texts";
import {
  ask, Choice, Empty, Facts, FormEnd, Head, Note, Said, SearchForm, Shown, Tags, tell, TextField, useSending,
  When,
} from "../ui";
import { fill, language, relationName, typeName, valueName, words } from "../words";
import { tagsOf } from "./memories";
import { changes, Ledger, Merging, MOST, nodesOf, Splitting } from "./merges";
import { Picture } from "./picture";

type Node = Schemas["KnowledgeNodeView"];
type Linked = Schemas["LinkedView"];
type Page = Schemas["PageView"];

const TYPES = Object.keys(known.types);
const RELATIONS: Record<string, { source: string[] }> = known.relations;

/** By its names; a name that none of the listed ones has is looked for by meaning among all. */
async function named(nodes: Node[], wanted: string, type: string): Promise<Node[]> {
  const low = wanted.toLowerCase();
  const here = nodes.filter((one) =>
    [one.name, ...one.names, ...one.synonyms].some((name) => name.toLowerCase().includes(low)),
  );
  if (!wanted || here.length) return here;
  const end = { name: wanted, ...(type ? { type } : {}) };
  const body = { source: end, include_past: true, limit: MOST } as Schemas["KnowledgeQueryBody"];
  const { found } = await answerOf(api.POST("/api/knowledge/query", { body }));
  return [...new Map(found.map((one) => [one.source.id, one.source])).values()];
}

export function People(): JSX.Element {
  const { query } = place.value;
  const type = query.get("type") ?? "";
  const wanted = query.get("words") ?? "";
  const adding = useSignal(false);
  const loaded = useLoad(async () => {
    const all = await nodesOf(type);
    return { all, shown: await named(all, wanted, type) };
  }, [type, wanted]);
  const any = ["", words.value.all] as const;
  return (
    <>
      <Head title={words.value.people} lead={words.value.peopleLead}>
        {mayWrite.value && (
          <button class="main" onClick={() => (adding.value = !adding.value)} aria-expanded={adding.value}>
            {words.value.addNode}
          </button>
        )}
      </Head>
      {adding.value && <NewNode />}
      <SearchForm name="words" label={words.value.name}>
        <Choice
          label={words.value.type}
          value={type}
          options={[any, ...TYPES.map((name) => [name, typeName(name)] as const)]}
          set={(value) => setQuery({ type: value || undefined })}
        />
      </SearchForm>
      <Shown of={loaded}>
        {({ all, shown }) =>
          shown.length ? (
            <>
              <ul class="list">
                {shown.map((one) => (
                  <li key={one.id}>
                    <div class="grow">
                      <a class="text" href={to(["people", one.id])}>
                        <Said text={one.name} most={200} />
                      </a>
                      <div class="meta">
                        <span class="chip">{typeName(one.type)}</span>
                        {one.verified && <span class="chip memory_bank">{words.value.verified}</span>}
                        <span>{fill(words.value.found, number(one.mentions))}</span>
                        <When at={one.last_seen_at} />
                        <Tags of={others(one)} />
                      </div>
                    </div>
                  </li>
                ))}
              </ul>
              {all.length === MOST && <p class="quiet">{fill(words.value.mostNamed, number(MOST))}</p>}
            </>
          ) : (
            <Empty text={wanted || type ? words.value.noneNamed : words.value.noNodes} />
          )
        }
      </Shown>
    </>
  );
}

const others = (one: Node): string[] =>
  [...new Set([...one.synonyms, ...one.names])].filter((name) => name !== one.name);

function NewNode(): JSX.Element {
  const [type, setType] = useState("Person");
  const [name, setName] = useState("");
  const [synonyms, setSynonyms] = useState("");
  const sending = useSending(async () => {
    const body = { type, name: name.trim(), synonyms: tagsOf(synonyms) } as Schemas["EntityBody"];
    const { node } = await answerOf(api.POST("/api/knowledge/entity", { body }));
    tell(words.value.saved);
    go(to(["people", node.id]));
  });
  return (
    <form class="card" onSubmit={sending.submit}>
      <div class="filters">
        <TextField label={words.value.newName} most={200} required value={name} set={setName} />
        <Choice
          label={words.value.type}
          value={type}
          options={TYPES.map((one) => [one, typeName(one)] as const)}
          set={setType}
        />
        <TextField
          label={words.value.otherNames}
          hint={words.value.tagsHint}
          most={2000}
          value={synonyms}
          set={setSynonyms}
        />
      </div>
      <FormEnd of={sending} action={words.value.save} off={!name.trim()} />
    </form>
  );
}

export function PersonPage({ id }: { id: string }): JSX.Element {
  const at = place.value.query.get("at") ?? "";
  const params = { path: { node_id: id } };
  const loaded = useLoad(
    () => answerOf(api.GET("/api/knowledge/nodes/{node_id}", { params })),
    [id, changes.value],
  );
  const standing = useLoad(async () => {
    const query = { language: language.value };
    return (await answerOf(api.GET("/api/knowledge/pages/{node_id}", { params: { ...params, query } }))).page;
  }, [id, changes.value]);
  const said = useLoad(
    () =>
      answerOf(
        api.GET("/api/knowledge/nodes/{node_id}/relationships", {
          params: { ...params, query: { limit: MOST, ...(at ? { as_of: `${at}T23:59:59Z` } : {}) } },
        }),
      ),
    [id, at, changes.value],
  );
  const open = useSignal<"link" | "merge" | "split" | undefined>(undefined);
  const close = (): void => void (open.value = undefined);
  const remove = (node: Node): void =>
    ask({
      title: fill(words.value.removeNode, node.name),
      body: words.value.removeNodeBody,
      action: words.value.remove,
      danger: true,
      act: async () => {
        await answerOf(api.DELETE("/api/knowledge/nodes/{node_id}", { params }));
        go(to(["people"]));
        tell(words.value.nodeRemoved);
      },
    });
  return (
    <>
      <a class="back" href={to(["people"])}>
        {words.value.people}
      </a>
      <Shown of={loaded}>
        {({ node, memory_ids }) => (
          <>
            <Head title={<Said text={node.name} most={200} />} lead={typeName(node.type)}>
              <a class="button" href={to(["ask"], { q: node.name })}>
                {words.value.askWith}
              </a>
              {mayWrite.value && (
                <>
                  {(["link", "merge", "split"] as const).map((form) => (
                    <button
                      key={form}
                      class={form === "link" ? "main" : "plain"}
                      aria-expanded={open.value === form}
                      onClick={() => (open.value = open.value === form ? undefined : form)}
                    >
                      {words.value[form]}
                    </button>
                  ))}
                  <button class="danger" onClick={() => remove(node)}>
                    {words.value.remove}
                  </button>
                </>
              )}
            </Head>
            {open.value === "link" && <NewLink node={node} close={close} />}
            {open.value === "merge" && <Merging node={node} close={close} />}
            {open.value === "split" && <Splitting node={node} ids={memory_ids} close={close} />}
            <Facts
              of={[
                [words.value.otherNames, others(node).length > 0 && <Tags of={others(node)} />],
                [words.value.verified, node.verified && words.value.yes],
                [words.value.namedBy, fill(words.value.found, number(node.mentions))],
                [words.value.firstSeen, <When at={node.first_seen_at} />],
                [words.value.lastSeen, <When at={node.last_seen_at} />],
                ...Object.entries(node.attributes).map(
                  ([name, value]) => [name, <Said text={value} />] as const,
                ),
              ]}
            />
            <section class="card">
              <h2>{words.value.relations}</h2>
              <div class="filters">
                <TextField
                  label={words.value.asOf}
                  type="date"
                  value={at}
                  set={(value) => setQuery({ at: value || undefined })}
                />
              </div>
              <Shown of={said}>
                {({ relationships }) =>
                  relationships.length ? (
                    <>
                      <Picture name={node.name} id={id} of={relationships} />
                      <ul class="list">
                        {relationships.map((one) => (
                          <Relation key={one.relationship.id} of={one} node={id} page={at ? undefined : standing.data} />
                        ))}
                      </ul>
                      <SavedPage of={standing} />
                    </>
                  ) : (
                    <p class="quiet">{at ? words.value.noRelationsThen : words.value.noRelations}</p>
                  )
                }
              </Shown>
            </section>
            <Derived id={id} />
            <Ledger id={id} />
            <h2>{words.value.timeline}</h2>
            <Timeline ids={memory_ids} />
          </>
        )}
      </Shown>
    </>
  );
}

/** The standing page, to take along: its lines stand in the list, with when each was said last. */
function SavedPage({ of }: { of: Loaded<Page> }): JSX.Element {
  const page = of.data;
  const keep = (): void =>
    page && save(new Blob([page.markdown], { type: "text/markdown" }), `${page.node.name.slice(0, 60)}.md`);
  return (
    <button class="plain" disabled={!page?.facets.length} onClick={keep}>
      {words.value.savePage}
    </button>
  );
}

/** What is said, as a sentence, with the memories that say it; `page`: how it stands there now. */
function Relation({ of, node, page }: { of: Linked; node: string; page: Page | undefined }): JSX.Element {
  const { relationship: said, source, target } = of;
  const facet = page?.facets.find((one) => one.id === said.id);
  const end = (one: Node): JSX.Element =>
    one.id === node ? (
      <strong>
        <Said text={one.name} most={100} />
      </strong>
    ) : (
      <a href={to(["people", one.id])}>
        <Said text={one.name} most={100} />
      </a>
    );
  return (
    <li class={said.standing === "known" ? "" : "past"}>
      <div class="grow">
        <p>
          {end(source)}{" "}
          <span class="quiet">
            {said.label ? <Said text={said.label} most={100} /> : relationName(said.type)}
          </span>{" "}
          {target ? end(target) : <Said text={said.value ?? ""} most={300} />}
        </p>
        <div class="meta">
          {said.standing !== "known" && <span class="chip bad">{valueName(said.standing)}</span>}
          {said.level !== "explicit" && <span class="chip">{valueName(said.level)}</span>}
          {said.verified && <span class="chip memory_bank">{words.value.verified}</span>}
          {said.valid_from && <span>{fill(words.value.since, moment(said.valid_from))}</span>}
          {said.valid_to && <span>{fill(words.value.upTo, moment(said.valid_to))}</span>}
          {facet && <span>{valueName(facet.trend)}</span>}
          {facet && <Confirmed at={facet.checked_on} />}
        </div>
        {said.standing === "in_doubt" && <Note kind="warn">{words.value.inDoubt}</Note>}
        <SaidBy ids={said.memory_ids} />
      </div>
    </li>
  );
}

const Confirmed = ({ at }: { at: string }): JSX.Element => (
  <span>
    {words.value.saidLast} <When at={at} />
  </span>
);

/** Thoughts and episodes that name it, each with the memories that it rests on. */
function Derived({ id }: { id: string }): JSX.Element {
  const loaded = useLoad(async () => {
    const params = { params: { query: { node_id: id, limit: 50 } } };
    const [{ thoughts }, { episodes }] = await Promise.all([
      answerOf(api.GET("/api/memory/thoughts", params)),
      answerOf(api.GET("/api/memory/episodes", params)),
    ]);
    return { thoughts, episodes };
  }, [id, changes.value]);
  return (
    <section class="card">
      <h2>{words.value.derived}</h2>
      <Shown of={loaded}>
        {({ thoughts, episodes }) =>
          thoughts.length + episodes.length ? (
            <ul class="list">
              {thoughts.map((one) => (
                <DerivedRow key={one.id} title={one.title} text={one.text} ids={one.memory_ids}>
                  {one.state === "pending" ? (
                    <a href={to(["review"])}>{valueName(one.state)}</a>
                  ) : (
                    <span class={one.state === "in_doubt" ? "chip bad" : ""}>{valueName(one.state)}</span>
                  )}
                  <span>{fill(words.value.sureOf, percent(one.confidence))}</span>
                  <span>{valueName(one.trend)}</span>
                  <Confirmed at={one.last_at} />
                </DerivedRow>
              ))}
              {episodes.map((one) => (
                <DerivedRow key={one.id} title={one.title} text={one.narrative} ids={one.memory_ids}>
                  <span class="chip">{valueName("episode")}</span>
                  <When at={one.occurred_at} />
                  <Tags of={[...one.topics, ...one.emotion_tags]} />
                </DerivedRow>
              ))}
            </ul>
          ) : (
            <p class="quiet">{words.value.noDerived}</p>
          )
        }
      </Shown>
    </section>
  );
}

function DerivedRow({
  title,
  text,
  ids,
  children,
}: {
  title: string;
  text: string;
  ids: readonly string[];
  children: ComponentChildren;
}): JSX.Element {
  return (
    <li>
      <div class="grow">
        <p>
          <strong>
            <Said text={title} most={200} />
          </strong>
        </p>
        <p>
          <Said text={text} most={600} />
        </p>
        <div class="meta">{children}</div>
        <SaidBy ids={ids} />
      </div>
    </li>
  );
}

/** The latest memories that speak of it, the newest first. */
function Timeline({ ids }: { ids: string[] }): JSX.Element {
  useEffect(() => {
    for (const id of ids) void fetchMemory(id);
  }, [ids.join()]);
  if (!ids.length) return <p class="quiet">{words.value.noSources}</p>;
  const when = (id: string): string => memories.value.get(id)?.created_at ?? "";
  const sorted = [...ids].sort((a, b) => when(b).localeCompare(when(a)));
  return (
    <ol class="list">
      {sorted.map((id) => (
        <li key={id}>
          <div class="grow">
            <MemoryLine id={id} most={400} />
            <div class="meta">{when(id) && <When at={when(id)} />}</div>
          </div>
        </li>
      ))}
    </ol>
  );
}

function NewLink({ node, close }: { node: Node; close: () => void }): JSX.Element {
  const fitting = Object.entries(RELATIONS)
    .filter(([name, row]) => name !== "HAS" && (!row.source.length || row.source.includes(node.type)))
    .map(([name]) => [name, relationName(name)] as const);
  const [relation, setRelation] = useState(fitting[0]?.[0] ?? "RELATED_TO");
  const [other, setOther] = useState("");
  const [since, setSince] = useState("");
  const nodes = useLoad(() => nodesOf(""), []);
  const sending = useSending(async () => {
    const made = await answerOf(
      api.POST("/api/knowledge/relationships", {
        body: {
          from_id: node.id,
          type: relation,
          to_id: other,
          ...(since ? { valid_from: `${since}T00:00:00Z` } : {}),
        } as Schemas["RelationshipBody"],
      }),
    );
    tell(made.warning ?? words.value.saved);
    changes.value += 1;
    close();
  });
  return (
    <form class="card" onSubmit={sending.submit}>
      <Shown of={nodes}>
        {(all) => (
          <div class="filters">
            <Choice label={words.value.relation} value={relation} options={fitting} set={setRelation} />
            <Choice
              label={words.value.toWhom}
              value={other}
              options={[
                ["", words.value.choose],
                ...all
                  .filter((one) => one.id !== node.id)
                  .map((one) => [one.id, `${one.name.slice(0, 60)} · ${typeName(one.type)}`] as const),
              ]}
              set={setOther}
            />
            <TextField label={words.value.sinceWhen} type="date" value={since} set={setSince} />
          </div>
        )}
      </Shown>
      <FormEnd of={sending} action={words.value.save} off={!other} />
    </form>
  );
}
