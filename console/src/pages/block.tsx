// The block before a model's answer: its sections, its tokens, and what was cut.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { answerOf, api, type Schemas } from "../api";
import { number } from "../format";
import { useLoad } from "../load";
import { place, setQuery, to } from "../router";
import { Degraded, Empty, Facts, Head, marked, Said, Shown, TextField } from "../ui";
import { language, valueName, words } from "../words";

interface Part {
  title: string;
  lines: string[];
}

const FRAME = /^═+.*═*$/;
const TITLE = /^\*\*(.+?):?\*\*$/;

/** The sections of a part, as its lines say. */
export function partsOf(text: string): Part[] {
  const parts: Part[] = [];
  for (const line of text.split("\n")) {
    const title = TITLE.exec(line)?.[1];
    if (title) parts.push({ title, lines: [] });
    else if (line.trim() && !FRAME.test(line)) {
      if (!parts.length) parts.push({ title: "", lines: [] });
      parts[parts.length - 1]?.lines.push(line);
    }
  }
  return parts;
}

async function look(q: string, budget: string): Promise<Schemas["ContextAnswer"]> {
  return answerOf(
    api.POST("/api/memory/context", {
      body: {
        query: q,
        include_context: true,
        // A question may order things of memory: here it is only looked at.
        dry_run: true,
        ...(Number(budget) > 0 ? { token_budget: Number(budget) } : {}),
      } as Schemas["PrefetchBody"],
    }),
  );
}

export function BlockPage(): JSX.Element {
  const { query } = place.value;
  const q = query.get("q") ?? "";
  const budget = query.get("budget") ?? "";
  const [text, setText] = useState(q);
  const [tokens, setTokens] = useState(budget);
  return (
    <>
      <Head title={words.value.block} lead={words.value.blockLead} />
      <form
        class="question"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          setQuery({ q: text.trim() || undefined, budget: tokens || undefined });
        }}
      >
        <TextField
          label={words.value.question}
          type="search"
          most={2000}
          value={text}
          set={setText}
        />
        <TextField
          label={words.value.budget}
          hint={words.value.budgetHint}
          type="number"
          value={tokens}
          set={setTokens}
        />
        <button class="main">{words.value.look}</button>
      </form>
      {q ? (
        <Block q={q} budget={budget} />
      ) : (
        <Empty text={words.value.noBlock} />
      )}
    </>
  );
}

function Block({ q, budget }: { q: string; budget: string }): JSX.Element {
  const loaded = useLoad(() => look(q, budget), [q, budget]);
  return (
    <Shown of={loaded}>
      {(found) => {
        const stable = found.stable_text ?? "";
        const changing = found.volatile_text ?? "";
        const empty = !partsOf(stable + changing).some((part) => part.lines.length);
        return (
          <>
            <Degraded of={found.degraded} />
            <Facts
              of={[
                [words.value.tokens, number(found.tokens)],
                [words.value.confidence, valueName(found.confidence)],
                [
                  words.value.cut,
                  found.left_out.length ? (
                    <>
                      {number(found.left_out.length)} · {words.value.cutHint}:{" "}
                      {found.left_out.map((id) => (
                        <a class="id" href={to(["memories", id])} dir="ltr">
                          {id}
                        </a>
                      ))}
                    </>
                  ) : (
                    words.value.none
                  ),
                ],
                [words.value.toolsAllowed, found.gating.trace_explanation[language.value]],
              ]}
            />
            {empty ? (
              <div class="silence">
                <strong>{words.value.silence}</strong>
                <p>{words.value.blockEmpty}</p>
              </div>
            ) : (
              <>
                <Sections title={words.value.stable} hint={words.value.stableHint} text={stable} />
                <Sections
                  title={words.value.changing}
                  hint={words.value.changingHint}
                  text={changing}
                />
              </>
            )}
            {(stable || changing) && (
              <details class="card">
                <summary>{words.value.raw}</summary>
                <pre dir="auto" tabIndex={0}>
                  {marked(stable + changing)}
                </pre>
              </details>
            )}
          </>
        );
      }}
    </Shown>
  );
}

const LINE = /^(?:•|\[(\d+)\])?\s*\[([a-z_]+):([^\]\s]+)\]\s*(.*)$/u;

function Sections({ title, hint, text }: { title: string; hint: string; text: string }): JSX.Element | null {
  const parts = partsOf(text);
  if (!parts.some((part) => part.lines.length)) return null;
  return (
    <section class="card">
      <h2>{title}</h2>
      <p class="quiet">{hint}</p>
      {parts.map((part) => (
        <div key={part.title}>
          {part.title && (
            <h3>
              <Said text={part.title} />
            </h3>
          )}
          <ul class="lines">
            {part.lines.map((line) => {
              const [, position, , id, rest] = LINE.exec(line) ?? [];
              return (
                <li>
                  {position && <span class="place">{number(Number(position))}</span>}
                  <Said text={rest ?? line} />
                  {id && (
                    <a class="id" href={to(["memories", id])} aria-label={`${words.value.memory} ${id}`}>
                      ↗
                    </a>
                  )}
                </li>
              );
            })}
          </ul>
        </div>
      ))}
    </section>
  );
}
