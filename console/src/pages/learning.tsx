// What outcomes taught: which memories help, how they climb, which tools and tiers pay.
import type { JSX } from "preact";
import { answerOf, api, type Schemas } from "../api";
import { number, percent } from "../format";
import { useLoad } from "../load";
import { place, to } from "../router";
import { mayWrite } from "../session";
import { Act, Bar, Facts, Head, Said, SearchForm, Shown, Success, tell, Tier, When } from "../ui";
import { fill, tierName, valueName, words } from "../words";

// From where a memory begins to where it stays.
const LADDER = ["working", "history", "patterns"] as const;
const SHOWN = 20;

export function Learning(): JSX.Element {
  return (
    <>
      <Head title={words.value.learning} lead={words.value.learningLead} />
      <Ladder />
      <Growth />
      <Helpful />
      <div class="two">
        <Tools />
        <Routing />
      </div>
      <Insights />
    </>
  );
}

function Ladder(): JSX.Element {
  const loaded = useLoad(async () => {
    const [{ stats }, { schedule }] = await Promise.all([
      answerOf(api.GET("/api/memory/stats")),
      answerOf(api.GET("/api/memory/decay/schedule")),
    ]);
    return { stats, schedule };
  }, []);
  const run = async (): Promise<void> => {
    const { result } = await answerOf(api.POST("/api/memory/decay/force"));
    tell(fill(words.value.cycleDid, number(result.promoted), number(result.demoted), number(result.archived)));
    loaded.again();
  };
  return (
    <section class="card">
      <h2>{words.value.ladder}</h2>
      <p class="quiet">{words.value.ladderLead}</p>
      <Shown of={loaded}>
        {({ stats, schedule }) => {
          const most = Math.max(1, ...LADDER.map((name) => stats.tiers[name]?.active_count ?? 0));
          return (
            <>
              <ol class="checks">
                {LADDER.map((name) => {
                  const row = stats.tiers[name];
                  return (
                    <li key={name}>
                      <Bar
                        name={tierName(name)}
                        value={(row?.active_count ?? 0) / most}
                        shown={number(row?.active_count ?? 0)}
                        hint={row && fill(words.value.usesAndSuccess, number(row.uses_total), percent(row.success_rate))}
                      />
                    </li>
                  );
                })}
              </ol>
              <Facts
                of={[
                  [words.value.climbs, stats.promotion_rate !== null && percent(stats.promotion_rate)],
                  [words.value.falls, stats.demotion_rate !== null && percent(stats.demotion_rate)],
                  [
                    words.value.lastCycle,
                    schedule.last_run_at ? <When at={schedule.last_run_at} /> : words.value.never,
                  ],
                ]}
              />
              {mayWrite.value && <Act run={run}>{words.value.runCycle}</Act>}
            </>
          );
        }}
      </Shown>
    </section>
  );
}

/** Memories of each day, as bars: the numbers stand in the title of each. */
function Growth(): JSX.Element {
  const loaded = useLoad(() => answerOf(api.GET("/api/memory/growth")), []);
  return (
    <section class="card">
      <h2>{words.value.growth}</h2>
      <Shown of={loaded}>
        {(days) => {
          const added = days.map((day) => Object.values(day.bySource).reduce((a, b) => a + b, 0));
          const most = Math.max(1, ...added);
          const sum = added.reduce((a, b) => a + b, 0);
          return (
            <div
              class="days"
              role="img"
              aria-label={fill(words.value.growthSays, number(sum), number(days.length), number(most))}
            >
              {days.map((day, place) => (
                <span key={day.date} title={`${day.date}: ${number(added[place] ?? 0)}`}>
                  <span style={{ blockSize: `${((added[place] ?? 0) / most) * 100}%` }} />
                </span>
              ))}
            </div>
          );
        }}
      </Shown>
    </section>
  );
}

const judged = (one: Schemas["MemoryView"]): number =>
  one.stats.worked_count + one.stats.partial_count + one.stats.failed_count;

function Helpful(): JSX.Element {
  const loaded = useLoad(
    () =>
      answerOf(api.GET("/api/memory/items", { params: { query: { limit: 200, sort: "score" } } })),
    [],
  );
  return (
    <section class="card">
      <h2>{words.value.helpful}</h2>
      <p class="quiet">{words.value.helpfulLead}</p>
      <Shown of={loaded}>
        {({ items }) => {
          const shown = items.filter((one) => judged(one) > 0).slice(0, SHOWN);
          return shown.length ? (
            <ul class="list">
              {shown.map((one) => (
                <li key={one.memory_id}>
                  <div class="grow">
                    <a class="text" href={to(["memories", one.memory_id])}>
                      <Said text={one.text} most={200} />
                    </a>
                    <div class="meta">
                      <Success of={one.success_estimate} />
                      <Tier name={one.tier} />
                      <span>
                        {fill(
                          words.value.outcomeCounts,
                          number(one.stats.worked_count),
                          number(one.stats.partial_count),
                          number(one.stats.failed_count),
                        )}
                      </span>
                    </div>
                  </div>
                </li>
              ))}
            </ul>
          ) : (
            <p class="quiet">{words.value.nothingJudged}</p>
          );
        }}
      </Shown>
    </section>
  );
}

function Tools(): JSX.Element {
  const loaded = useLoad(
    () =>
      answerOf(
        api.GET("/api/memory/kg/action-rollups", {
          params: { query: { limit: SHOWN, include_tiers: false } },
        }),
      ),
    [],
  );
  return (
    <section class="card">
      <h2>{words.value.toolsThatHelp}</h2>
      <p class="quiet">{words.value.toolsLead}</p>
      <Shown of={loaded}>
        {({ rollups }) =>
          rollups.length ? (
            <ul class="checks">
              {rollups.map((one) => (
                <li key={one.label}>
                  <Bar
                    name={`${one.action} · ${valueName(one.context_type)}`}
                    value={one.wilson_score}
                    shown={percent(one.wilson_score)}
                    hint={fill(words.value.usesAndSuccess, number(one.uses), percent(one.success_rate))}
                  />
                </li>
              ))}
            </ul>
          ) : (
            <p class="quiet">{words.value.noTools}</p>
          )
        }
      </Shown>
    </section>
  );
}

function Routing(): JSX.Element {
  const loaded = useLoad(
    () =>
      answerOf(api.GET("/api/memory/kg", { params: { query: { mode: "routing", limit: SHOWN } } })),
    [],
  );
  return (
    <section class="card">
      <h2>{words.value.routing}</h2>
      <Shown of={loaded}>
        {({ concepts }) =>
          concepts.length ? (
            <table>
              <thead>
                <tr>
                  <th scope="col">{words.value.topic}</th>
                  <th scope="col">{words.value.bestIn}</th>
                  <th scope="col">{words.value.success}</th>
                  <th scope="col">{words.value.uses}</th>
                </tr>
              </thead>
              <tbody>
                {concepts.map((one) => (
                  <tr key={one.concept_id}>
                    <th scope="row">
                      <Said text={one.label} most={60} />
                    </th>
                    <td>{one.best_collection && <Tier name={one.best_collection} />}</td>
                    <td>{percent(one.success_rate)}</td>
                    <td>{number(one.uses)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          ) : (
            <p class="quiet">{words.value.noRouting}</p>
          )
        }
      </Shown>
    </section>
  );
}

/** What would be told to a model beside the memories, for one question. */
function Insights(): JSX.Element {
  const q = place.value.query.get("q") ?? "";
  return (
    <section class="card">
      <h2>{words.value.insights}</h2>
      <p class="quiet">{words.value.insightsLead}</p>
      <SearchForm name="q" label={words.value.question} />
      {q && <Told q={q} />}
    </section>
  );
}

function Told({ q }: { q: string }): JSX.Element {
  const loaded = useLoad(
    () => answerOf(api.GET("/api/memory/context/insights", { params: { query: { query: q } } })),
    [q],
  );
  return (
    <Shown of={loaded}>
      {(found) =>
        found.relevant_patterns.length + found.past_failures.length + found.directives.length ? (
          <>
            <ul class="checks">
              {found.directives.map((one) => (
                <li key={one}>
                  <Said text={one} />
                </li>
              ))}
            </ul>
            <Experiences title={words.value.helpedBefore} of={found.relevant_patterns} />
            <Experiences title={words.value.failedBefore} of={found.past_failures} />
            <ul class="checks">
              {found.tier_recommendations.map((one) => (
                <li key={one.tier}>
                  <Bar
                    name={tierName(one.tier)}
                    value={one.wilson_score}
                    shown={percent(one.wilson_score)}
                    hint={one.advised ? words.value.advised : undefined}
                  />
                </li>
              ))}
            </ul>
          </>
        ) : (
          <p class="quiet">{words.value.noInsights}</p>
        )
      }
    </Shown>
  );
}

function Experiences({ title, of }: { title: string; of: Schemas["ExperienceView"][] }): JSX.Element | null {
  if (!of.length) return null;
  return (
    <>
      <h3>{title}</h3>
      <ul class="lines">
        {of.map((one) => (
          <li key={one.memory_id}>
            <Success of={one.success_estimate} />
            <a href={to(["memories", one.memory_id])}>
              <Said text={one.text_preview} most={200} />
            </a>
          </li>
        ))}
      </ul>
    </>
  );
}
