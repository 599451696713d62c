// The analyser of a search: each hit with the parts of its place, and silence with its reason.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { answerOf, api, type Schemas } from "../api";
import { number, percent } from "../format";
import { useLoad } from "../load";
import { place, setQuery, to } from "../router";
import { mayWrite } from "../session";
import {
  Act, Bar, Choice, Degraded, Empty, Head, Note, Said, Shown, Success, Tags, tell, TextField, Tier, When,
} from "../ui";
import { fill, reasonName, TIER_NAMES, tierName, valueName, words } from "../words";

type Hit = Schemas["HitView"];
type Answer = Schemas["SearchAnswerView"];
type Explained = Schemas["ExplainAnswer"];

interface Wanted {
  q: string;
  tier?: string | undefined;
  recipe?: string | undefined;
}

async function search(wanted: Wanted): Promise<Answer> {
  return answerOf(
    api.POST("/api/memory/search", {
      body: {
        query: wanted.q,
        // The probability that a hit answers is told only where a floor is asked for.
        min_relevance: 0,
        ...(wanted.tier ? { tiers: [wanted.tier as Schemas["Tier"]] } : {}),
        ...(wanted.recipe ? { recipe: wanted.recipe } : {}),
      } as Schemas["SearchBody"],
    }),
  );
}

const explain = (id: string, q: string): Promise<Explained> =>
  answerOf(
    api.GET("/api/memory/items/{memory_id}/explain", {
      params: { path: { memory_id: id }, query: { query: q } },
    }),
  );

export function AskPage(): JSX.Element {
  const { query } = place.value;
  const q = query.get("q") ?? "";
  const [text, setText] = useState(q);
  const tier = query.get("tier") ?? undefined;
  const recipe = query.get("recipe") ?? undefined;
  const beside = query.get("beside") ?? "";
  const turn = useSignal(0);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (text.trim() === q) turn.value += 1;
    else setQuery({ q: text.trim() || undefined });
  };
  return (
    <>
      <Head title={words.value.askPage} lead={words.value.askLead} />
      <form class="question" role="search" onSubmit={submit}>
        <TextField
          label={words.value.question}
          type="search"
          most={2000}
          value={text}
          set={setText}
        />
        <Choice
          label={words.value.tier}
          value={tier ?? ""}
          options={[
            ["", words.value.all],
            ...TIER_NAMES.map((name) => [name, tierName(name)] as const),
          ]}
          set={(value) => setQuery({ tier: value || undefined })}
        />
        <Choice
          label={words.value.beside}
          value={beside}
          options={[
            ["", words.value.nothing],
            ...TIER_NAMES.map((name) => [name, tierName(name)] as const),
          ]}
          set={(value) => setQuery({ beside: value || undefined })}
        />
        <button class="main">{words.value.askButton}</button>
      </form>
      {q ? (
        <div class={beside ? "two" : ""}>
          <Results wanted={{ q, tier, recipe }} turn={turn.value} />
          {beside && <Results wanted={{ q, tier: beside, recipe }} turn={turn.value} />}
        </div>
      ) : (
        <Empty text={words.value.noQuestion} />
      )}
      {q && <WhyNot q={q} key={q} />}
    </>
  );
}

function Results({ wanted, turn }: { wanted: Wanted; turn: number }): JSX.Element {
  const loaded = useLoad(() => search(wanted), [JSON.stringify(wanted), turn]);
  return (
    <Shown of={loaded}>
      {(answer) => {
        const silent = answer.knows === "no" || answer.abstained;
        const best = Math.max(1e-9, ...answer.results.map((hit) => hit.score_summary.final_score));
        const took = Object.values(answer.debug.stage_timings_ms).reduce((a, b) => a + b, 0);
        return (
          <section aria-label={tierName(wanted.tier ?? words.value.all)}>
            <Degraded of={answer.degraded} />
            {silent ? (
              <Silence answer={answer} q={wanted.q} />
            ) : (
              <p class="verdict">
                {answer.knows === "yes" ? words.value.knows : words.value.unsure}{" "}
                <span class="quiet">
                  {fill(
                    words.value.timing,
                    number(took, 1),
                    answer.debug.recipe,
                    valueName(answer.confidence),
                  )}
                </span>
              </p>
            )}
            {!!answer.suggestions?.length && (
              <p>
                {words.value.didYouMean}:{" "}
                {answer.suggestions.map((one) => (
                  <a href={to(["ask"], { q: one })}>
                    <Said text={one} />
                  </a>
                ))}
              </p>
            )}
            <ol class={`hits ${silent ? "faded" : ""}`}>
              {answer.results.map((hit) => (
                <HitCard key={hit.memory_id} hit={hit} best={best} receipt={answer.receipt_id} />
              ))}
            </ol>
          </section>
        );
      }}
    </Shown>
  );
}

/** Silence is an answer: it says so, and why. */
function Silence({ answer, q }: { answer: Answer; q: string }): JSX.Element {
  const nearest = answer.results[0]?.memory_id;
  const why = useLoad(
    async () => (nearest ? await explain(nearest, q) : undefined),
    [nearest, q],
  );
  const stage = why.data?.stages.find((one) => one.stage === "knowledge");
  return (
    <div class="silence">
      <strong>{words.value.silence}</strong>
      <p>{nearest ? words.value.silenceBody : words.value.silenceEmpty}</p>
      {stage && (
        <p class="quiet">
          {words.value.reasonOf}: {reasonName(stage.detail)}
        </p>
      )}
    </div>
  );
}

function HitCard({ hit, best, receipt }: { hit: Hit; best: number; receipt: string | null }): JSX.Element {
  const of = hit.score_summary;
  const judge = async (outcome: "worked" | "failed"): Promise<void> => {
    await answerOf(
      api.POST("/api/memory/outcomes", {
        body: {
          outcome,
          memory_ids: [hit.memory_id],
          ...(receipt ? { receipt_id: receipt } : {}),
        } as Schemas["OutcomeBody"],
      }),
    );
    tell(words.value.judged);
  };
  const judged = of.uses > 0;
  const rank = (place: number | null): string | undefined =>
    place === null ? undefined : `#${number(place)}`;
  return (
    <li class="card">
      <div class="place" aria-hidden="true">
        {number(hit.position)}
      </div>
      <div class="grow">
        <a class="text" href={to(["memories", hit.memory_id])}>
          <Said text={hit.passage?.text ?? hit.content} most={600} />
        </a>
        <div class="meta">
          <Tier name={hit.tier} />
          <span>{valueName(hit.source.type)}</span>
          <When at={hit.created_at} />
          {judged && <Success of={hit.success_estimate} />}
          {hit.outdated_by && <span class="chip bad">{words.value.outdatedBy}</span>}
          {hit.collapsed_ids.length > 0 && (
            <span>{fill(words.value.alsoThese, number(hit.collapsed_ids.length))}</span>
          )}
          <Tags of={hit.tags} />
          {mayWrite.value && (
            <span class="judge">
              <Act run={() => judge("worked")}>{words.value.helped}</Act>
              <Act run={() => judge("failed")}>{words.value.failedIt}</Act>
            </span>
          )}
        </div>
        <div class="bars">
          <Bar
            name={words.value.meaning}
            value={of.dense_similarity ?? 0}
            shown={of.dense_similarity === null ? "–" : number(of.dense_similarity, 2)}
            hint={rank(of.vector_rank)}
          />
          {of.encoder_similarity !== null && (
            <Bar
              name={words.value.reading}
              value={of.encoder_similarity}
              shown={number(of.encoder_similarity, 2)}
              hint={rank(of.encoder_rank)}
            />
          )}
          <Bar
            name={words.value.literal}
            value={of.text_similarity ?? 0}
            shown={of.text_similarity === null ? "–" : number(of.text_similarity, 2)}
            hint={rank(of.text_rank)}
          />
          <Bar name={words.value.fused} value={of.fused} shown={number(of.fused, 2)} />
          <Bar
            name={words.value.rerank}
            value={of.ce_score ?? 0}
            shown={of.ce_score === null ? "–" : number(of.ce_score, 2)}
            hint={rank(of.ce_rank)}
          />
          {of.relevance !== null && (
            <Bar
              name={words.value.floor}
              value={of.relevance}
              shown={percent(of.relevance)}
              hint={words.value.floorHint}
            />
          )}
          <Bar
            name={words.value.outcomePart}
            value={of.evidence / 2}
            shown={`×${number(of.evidence, 2)}`}
            hint={words.value.outcomeHint}
          />
          <Bar
            name={words.value.boosts}
            value={of.total_boost / 2}
            shown={`×${number(of.total_boost, 2)}`}
          />
          <Bar
            name={words.value.final}
            value={of.final_score / best}
            shown={number(of.final_score, 3)}
          />
        </div>
      </div>
    </li>
  );
}

/** One memory through all stages, found by its id or by words of it. */
function WhyNot({ q }: { q: string }): JSX.Element {
  const [text, setText] = useState("");
  const wanted = useSignal("");
  return (
    <section>
      <h2>{words.value.whyNot}</h2>
      <form
        class="question"
        onSubmit={(event) => {
          event.preventDefault();
          wanted.value = text.trim();
        }}
      >
        <TextField label={words.value.whyNotHint} value={text} set={setText} />
        <button class="plain" disabled={!text.trim()}>
          {words.value.follow}
        </button>
      </form>
      {wanted.value && <Stages q={q} wanted={wanted.value} />}
    </section>
  );
}

async function followed(q: string, wanted: string): Promise<Explained | null> {
  if (!/\s/.test(wanted) && wanted.length >= 20) return explain(wanted, q);
  const found = await answerOf(
    api.GET("/api/memory/items", { params: { query: { query: wanted, limit: 1 } } }),
  );
  const id = found.items[0]?.memory_id;
  return id ? explain(id, q) : null;
}

function Stages({ q, wanted }: { q: string; wanted: string }): JSX.Element {
  const loaded = useLoad(async () => ({ found: await followed(q, wanted) }), [q, wanted]);
  return (
    <Shown of={loaded}>
      {({ found }) =>
        found ? (
          <>
            <p>
              <a href={to(["memories", found.memory_id])} dir="ltr">
                {found.memory_id}
              </a>
              {" · "}
              {found.position
                ? fill(words.value.shownAt, number(found.position))
                : fill(words.value.lostAt, valueName(found.lost_at ?? ""))}
            </p>
            <ol class="stages">
              {found.stages.map((stage) => (
                <li key={stage.stage} class={stage.kept ? "good" : "bad"}>
                  <strong>{valueName(stage.stage)}</strong>
                  <span>
                    <bdi lang="en">{stage.detail}</bdi>
                  </span>
                </li>
              ))}
            </ol>
          </>
        ) : (
          <Note kind="warn">{words.value.noSuch}</Note>
        )
      }
    </Shown>
  );
}
