// For who runs the service: how it is, what it works on, what needs a hand.
import type { JSX } from "preact";
import { answerOf, api, type Schemas } from "../api";
import { bytes, number } from "../format";
import { useEvery, useLoad } from "../load";
import { to } from "../router";
import { mayOperate } from "../session";
import { Act, Bar, Facts, Head, Note, Said, Shown, When } from "../ui";
import { fill, valueName, words } from "../words";
import { Audit, Keys, Tenants } from "./access";
import { Webhooks } from "./webhooks";

const PARTS = ["", "keys", "audit", "webhooks"] as const;

export function Operate({ part = "" }: { part?: string | undefined }): JSX.Element {
  return (
    <>
      <Head title={words.value.operate} lead={words.value.operateLead} />
      <ul class="row kinds" aria-label={words.value.sections}>
        {PARTS.map((name) => (
          <li key={name}>
            <a
              class="button chip"
              href={to(name ? ["operate", name] : ["operate"])}
              aria-current={name === part ? "page" : undefined}
            >
              {words.value[name || "health"]}
            </a>
          </li>
        ))}
      </ul>
      {part === "webhooks" ? <Webhooks /> : !part && <Health />}
      {mayOperate.value ? (
        <>
          {part === "keys" && <Keys />}
          {part === "audit" && <Audit />}
          {!part && (
            <>
              <div class="two">
                <Index />
                <Integrity />
              </div>
              <Jobs />
            </>
          )}
        </>
      ) : (
        part !== "webhooks" && <Note>{words.value.operatorsOnly}</Note>
      )}
      {!part && (
        <div class="two">
          {mayOperate.value && <Tenants />}
          <Usage />
        </div>
      )}
    </>
  );
}

function Health(): JSX.Element {
  const loaded = useLoad(async () => {
    const [health, version] = await Promise.all([
      answerOf(api.GET("/api/memory/health")),
      answerOf(api.GET("/api/system/version")),
    ]);
    return { health, version };
  }, []);
  useEvery(10_000, true, loaded.again);
  return (
    <section class="card">
      <h2>{words.value.health}</h2>
      <Shown of={loaded}>
        {({ health, version }) => (
          <>
            <p class={`dot ${health.status === "healthy" ? "good" : "bad"}`}>
              {health.status === "healthy" ? words.value.healthy : words.value.unhealthy}{" "}
              <span class="quiet">
                {words.value.version} <bdi dir="ltr">{version.version}</bdi>
              </span>
            </p>
            <table>
              <tbody>
                {health.components.map((one) => (
                  <tr key={one.name}>
                    <th scope="row">{valueName(one.name)}</th>
                    <td>
                      <span class={`dot ${one.healthy ? "good" : "bad"}`}>
                        {one.healthy ? words.value.well : words.value.away}
                      </span>
                    </td>
                    <td class="wide">
                      {one.message !== "ok" && (
                        <span dir="auto" class="quiet">
                          {one.message}
                        </span>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </>
        )}
      </Shown>
    </section>
  );
}

function Index(): JSX.Element {
  const loaded = useLoad(async () => {
    const [found, disk] = await Promise.all([
      answerOf(api.GET("/api/memory/diagnostics")),
      answerOf(api.GET("/api/system/disk-space")),
    ]);
    return { index: found.index, disk: disk.disk };
  }, []);
  useEvery(5000, !loaded.failure, loaded.again);
  return (
    <section class="card">
      <h2>{words.value.index}</h2>
      <Shown of={loaded}>
        {({ index, disk }) => (
          <Facts
            of={[
              [words.value.pendingItems, number(index.pending)],
              [words.value.failedItems, number(index.failed)],
              [words.value.vectors, number(index.synced)],
              [
                words.value.storage,
                <>
                  <bdi>{bytes(disk.free_bytes)}</bdi> / <bdi>{bytes(disk.total_bytes)}</bdi>
                </>,
              ],
            ]}
          />
        )}
      </Shown>
    </section>
  );
}

function Integrity(): JSX.Element {
  const loaded = useLoad(() => answerOf(api.GET("/api/memory/ops/integrity")), []);
  return (
    <section class="card">
      <h2>{words.value.integrity}</h2>
      <Shown of={loaded}>
        {(found) => (
          <ul class="checks">
            {found.checks.map((one) => (
              <li key={one.name}>
                <span class={`dot ${one.well ? "good" : "warn"}`} />
                {one.found !== null && <>{number(one.found)} · </>}
                <bdi lang="en">{one.says}</bdi>
                {!one.well && (
                  <div class="quiet">
                    {words.value.repair}: <code dir="ltr">{one.repair}</code>
                  </div>
                )}
              </li>
            ))}
          </ul>
        )}
      </Shown>
    </section>
  );
}

type Job = Schemas["JobView"];
type Wish = "pause" | "resume" | "cancel";

async function wish(job: Job, what: Wish): Promise<void> {
  const params = { path: { job_id: job.job_id } };
  if (what === "pause") await answerOf(api.POST("/api/memory/jobs/{job_id}/pause", { params }));
  else if (what === "resume") await answerOf(api.POST("/api/memory/jobs/{job_id}/resume", { params }));
  else await answerOf(api.POST("/api/memory/jobs/{job_id}/cancel", { params }));
}

function Jobs(): JSX.Element {
  const loaded = useLoad(() => answerOf(api.GET("/api/memory/jobs")), []);
  const live = (job: Job): boolean => ["submitted", "running", "paused"].includes(job.state);
  useEvery(2000, !!loaded.data?.jobs.some(live), loaded.again);
  return (
    <section class="card">
      <h2>{words.value.jobs}</h2>
      <Shown of={loaded}>
        {({ jobs }) =>
          jobs.length ? (
            <ul class="list">
              {jobs.map((job) => (
                <li key={job.job_id}>
                  <div class="grow">
                    <div class="meta">
                      <strong>{valueName(job.kind)}</strong>
                      <span class={`chip ${job.state === "failed" ? "bad" : ""}`}>
                        {valueName(job.state)}
                      </span>
                      <When at={job.created_at} />
                      {job.stage && <span>{valueName(job.stage)}</span>}
                    </div>
                    {job.total > 0 && (
                      <div class="row">
                        <progress aria-label={words.value.progress} max={1} value={job.share} />
                        <span class="quiet">
                          {number(job.done)} / {number(job.total)}
                        </span>
                      </div>
                    )}
                    {job.error && (
                      <Note kind="bad">
                        <Said text={job.error} />
                      </Note>
                    )}
                  </div>
                  {live(job) && (
                    <div class="row">
                      {job.state === "paused" ? (
                        <Act run={() => wish(job, "resume").then(loaded.again)}>
                          {words.value.resume}
                        </Act>
                      ) : (
                        <Act run={() => wish(job, "pause").then(loaded.again)}>
                          {words.value.pause}
                        </Act>
                      )}
                      <Act kind="danger" run={() => wish(job, "cancel").then(loaded.again)}>
                        {words.value.cancelJob}
                      </Act>
                    </div>
                  )}
                </li>
              ))}
            </ul>
          ) : (
            <p class="quiet">{words.value.noJobs}</p>
          )
        }
      </Shown>
    </section>
  );
}

function Usage(): JSX.Element {
  const loaded = useLoad(() => answerOf(api.GET("/api/memory/models/usage")), []);
  return (
    <section class="card">
      <h2>{words.value.usage}</h2>
      <Shown of={loaded}>
        {(found) =>
          found.enabled ? (
            <>
              <p class="quiet">{fill(words.value.lastDays, number(found.days))}</p>
              <Facts
                of={[
                  [words.value.calls, number(found.calls)],
                  [words.value.tokens, number(found.tokens)],
                  [words.value.cost, number(found.cost, 2)],
                  [words.value.today, number(found.today.tokens)],
                  ...Object.entries(found.limits)
                    .filter(([, most]) => most > 0)
                    .map(([name, most]) => [fill(words.value.limitOf, valueName(name)), number(most, 2)] as const),
                ]}
              />
              <ul class="checks">
                {found.by_helper.map((one) => (
                  <li key={one.helper}>
                    <Bar
                      name={valueName(one.helper)}
                      value={one.tokens / Math.max(1, found.tokens)}
                      shown={number(one.tokens)}
                      hint={`${number(one.calls)} · ${number(one.cost, 2)}`}
                    />
                  </li>
                ))}
              </ul>
            </>
          ) : (
            <p class="quiet">{words.value.usageOff}</p>
          )
        }
      </Shown>
    </section>
  );
}
