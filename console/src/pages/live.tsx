// The event stream as a feed: it pauses, filters, and comes back where it was.
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import known from "../known.json";
import { actingFor, answerOf, api, type Failure, follow, key, type StreamEvent } from "../api";
import { clock, number } from "../format";
import { useEvery, useLoad } from "../load";
import { place, setQuery, to } from "../router";
import { mayOperate } from "../session";
import { fetchMemory, MemoryLine } from "../texts";
import { Empty, Facts, Failed, Head, Note, Said, Shown, Tier } from "../ui";
import { fill, valueName, words } from "../words";

// So many stay in the feed.
const MOST = 300;

export function Live(): JSX.Element {
  const [events, setEvents] = useState<StreamEvent[]>([]);
  const [paused, setPaused] = useState(false);
  const [open, setOpen] = useState(false);
  const [failure, setFailure] = useState<Failure>();
  const held = useRef<StreamEvent[]>([]);
  const pausing = useRef(false);
  const [waiting, setWaiting] = useState(0);
  useEffect(() => {
    const stop = new AbortController();
    void follow(
      stop.signal,
      (event) => {
        if (event.type === "ready") return;
        if (event.data.memory_id) {
          void fetchMemory(event.data.memory_id, event.type === "updated");
        }
        held.current = [event, ...held.current].slice(0, MOST);
        if (pausing.current) setWaiting((before) => before + 1);
        else setEvents(held.current);
      },
      (nowOpen, why) => {
        setOpen(nowOpen);
        setFailure(why && why.status > 0 && why.status < 500 ? why : undefined);
      },
    );
    return () => stop.abort();
  }, [key.value, actingFor.value]);
  const pause = (): void => {
    pausing.current = !paused;
    setPaused(!paused);
    setWaiting(0);
    if (paused) setEvents(held.current);
  };
  const only = place.value.query.get("kind") ?? "";
  const shown = events.filter((event) => !only || event.type === only);
  return (
    <>
      <Head title={words.value.live} lead={words.value.liveLead}>
        <span class={`dot ${open ? "good" : "warn"}`} role="status">
          {open ? words.value.connected : words.value.reconnecting}
        </span>
        <button class="plain" aria-pressed={paused} onClick={pause}>
          {paused ? words.value.resume : words.value.pause}
        </button>
      </Head>
      {failure && <Failed failure={failure} />}
      {mayOperate.value && <Queues />}
      <div class="row kinds" role="group" aria-label={words.value.kinds}>
        {["", ...known.events].map((kind) => (
          <button
            key={kind}
            class="chip"
            aria-pressed={only === kind}
            onClick={() => setQuery({ kind: kind || undefined })}
          >
            {kind ? valueName(kind) : words.value.all}
          </button>
        ))}
      </div>
      {paused && <Note>{fill(words.value.pausedCount, number(waiting))}</Note>}
      {shown.length ? (
        <ol class="list feed">
          {shown.map((event) => (
            <Line key={`${event.id} ${event.type} ${event.data.memory_id ?? ""}`} event={event} />
          ))}
        </ol>
      ) : (
        <Empty text={words.value.noEvents} />
      )}
    </>
  );
}

function Line({ event }: { event: StreamEvent }): JSX.Element {
  const { data } = event;
  if (event.type === "reset") {
    return (
      <li>
        <Note kind="warn">{words.value.missed}</Note>
      </li>
    );
  }
  return (
    <li>
      <time dateTime={data.at}>{clock(data.at)}</time>
      <span class={`chip kind ${event.type}`}>{valueName(event.type)}</span>
      <div class="grow">
        {data.memory_id && <MemoryLine id={data.memory_id} />}
        <span class="meta">
          {data.from_tier && (
            <>
              <Tier name={data.from_tier} /> <span class="arrow">→</span>
            </>
          )}
          {data.tier && <Tier name={data.tier} />}
          {data.outcome && <span>{valueName(data.outcome)}</span>}
          {data.rule && <span>{valueName(data.rule)}</span>}
          {data.memory_ids && <span>{fill(words.value.found, number(data.memory_ids.length))}</span>}
          {data.kind && <span>{valueName(data.kind)}</span>}
          {data.state && <span>{valueName(data.state)}</span>}
          {data.total !== undefined && data.total !== null && (
            <span>
              {number(data.done ?? 0)} / {number(data.total)}
            </span>
          )}
          {data.conversation_id && (
            <a href={to(["conversations", data.conversation_id])}>
              <Said text={data.conversation_id} most={60} />
            </a>
          )}
        </span>
      </div>
    </li>
  );
}

/** What waits; only who runs the service may see it. */
function Queues(): JSX.Element | null {
  const loaded = useLoad(() => answerOf(api.GET("/api/memory/diagnostics")), []);
  useEvery(5000, !loaded.failure, loaded.again);
  if (loaded.failure) return null;
  return (
    <Shown of={loaded}>
      {(found) => (
        <Facts
          of={[
            [words.value.pendingItems, number(found.index.pending)],
            [words.value.failedItems, number(found.index.failed)],
            [
              words.value.oldest,
              fill(words.value.seconds, number(Math.max(0, found.index.oldest_pending_s), 1)),
            ],
          ]}
        />
      )}
    </Shown>
  );
}
