// The few parts that all pages are made of.
import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import type { Failure } from "./api";
import { ago, moment, percent } from "./format";
import { failureFrom, type Loaded } from "./load";
import { place, setQuery } from "./router";
import { tierName, words } from "./words";

// Marks that turn the direction of what follows: shown, so that no text looks like another one.
const TURNS = /[\u202a-\u202e\u2066-\u2069]/;
const TURN = /([\u202a-\u202e\u2066-\u2069])/;

/** A text whose hidden marks are visible. */
export function marked(text: string): ComponentChildren {
  if (!TURNS.test(text)) return text;
  return text
    .split(TURN)
    .map((part) =>
      TURNS.test(part) ? (
        <span class="mark">{`U+${part.charCodeAt(0).toString(16).toUpperCase()}`}</span>
      ) : (
        part
      ),
    );
}

/** What somebody wrote: as text and in its own direction. */
export function Said({ text, most = Infinity }: { text: string; most?: number }): JSX.Element {
  return <bdi dir="auto">{marked(text.length > most ? `${text.slice(0, most)}…` : text)}</bdi>;
}

export function When({ at }: { at: string }): JSX.Element {
  return (
    <time dateTime={at} title={moment(at)}>
      {ago(at)}
    </time>
  );
}

export function Tier({ name }: { name: string }): JSX.Element {
  return <span class={`chip tier ${name}`}>{tierName(name)}</span>;
}

export function Tags({ of }: { of: readonly string[] }): JSX.Element {
  return (
    <>
      {of.map((tag) => (
        <span class="chip tag" key={tag}>
          <Said text={tag} most={60} />
        </span>
      ))}
    </>
  );
}

export function Head({
  title,
  lead,
  children,
}: {
  title: ComponentChildren;
  lead?: ComponentChildren;
  children?: ComponentChildren;
}): JSX.Element {
  return (
    <header class="head">
      <div>
        <h1>{title}</h1>
        {lead && <p class="lead">{lead}</p>}
      </div>
      {children && <div class="row">{children}</div>}
    </header>
  );
}

export function Note({
  kind = "plain",
  children,
}: {
  kind?: "plain" | "bad" | "warn" | "good";
  children: ComponentChildren;
}): JSX.Element {
  return (
    <div class={`note ${kind}`} role={kind === "bad" ? "alert" : "status"}>
      {children}
    </div>
  );
}

export function Failed({ failure, again }: { failure: Failure; again?: (() => void) | undefined }): JSX.Element {
  return (
    <Note kind="bad">
      <span dir="auto">{failure.message}</span>
      {again && (
        <button class="plain" onClick={again}>
          {words.value.tryAgain}
        </button>
      )}
    </Note>
  );
}

/** The answer of a page, or a sentence in its place. */
export function Shown<T>({ of, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }): JSX.Element {
  return (
    <div class={of.busy && of.data ? "stale" : ""} aria-busy={of.busy}>
      {of.failure && <Failed failure={of.failure} again={of.again} />}
      {!of.data && !of.failure && <Waiting />}
      {of.data && children(of.data)}
    </div>
  );
}

export function Waiting(): JSX.Element {
  return (
    <div class="waiting" role="status">
      <span class="unseen">{words.value.loading}</span>
      <div />
      <div />
      <div />
    </div>
  );
}

export function Empty({ text }: { text: string }): JSX.Element {
  return (
    <div class="empty">
      <p>{text}</p>
    </div>
  );
}

export function Degraded({ of }: { of: readonly string[] }): JSX.Element | null {
  if (!of.length) return null;
  return (
    <Note kind="warn">
      {words.value.degraded} <code dir="ltr">{of.join(", ")}</code>
    </Note>
  );
}

export function Field({
  label,
  hint,
  children,
}: {
  label: string;
  hint?: string;
  children: (id: string) => ComponentChildren;
}): JSX.Element {
  const id = useId();
  return (
    <div class="field">
      <label htmlFor={id}>{label}</label>
      {children(id)}
      {hint && <small>{hint}</small>}
    </div>
  );
}

/** A line that somebody writes, or several (`rows`), in their own direction. */
export function TextField({
  label,
  hint,
  value,
  set,
  rows,
  type = "text",
  most = 500,
  dir = "auto",
  required = false,
}: {
  label: string;
  hint?: string;
  value: string;
  set: (value: string) => void;
  rows?: number;
  type?: "text" | "search" | "password" | "date" | "number" | "url";
  most?: number;
  dir?: "auto" | "ltr";
  required?: boolean;
}): JSX.Element {
  const shared = { dir, required, value };
  return (
    <Field label={label} {...(hint ? { hint } : {})}>
      {(id) =>
        rows ? (
          <textarea
            id={id}
            {...shared}
            rows={rows}
            onInput={(event) => set(event.currentTarget.value)}
          />
        ) : (
          <input
            id={id}
            {...shared}
            // Which roles go with which type is not asked: none is given.
            type={type as "text"}
            maxLength={most}
            min={type === "number" ? 1 : undefined}
            autocomplete="off"
            onInput={(event) => set(event.currentTarget.value)}
          />
        )
      }
    </Field>
  );
}

export function Choice({
  label,
  value,
  options,
  set,
}: {
  label: string;
  value: string;
  options: readonly (readonly [string, string])[];
  set: (value: string) => void;
}): JSX.Element {
  return (
    <Field label={label}>
      {(id) => (
        <select id={id} value={value} onChange={(event) => set(event.currentTarget.value)}>
          {options.map(([name, shown]) => (
            <option value={name} key={name}>
              {shown}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** A file: the words on the button are ours, not those of the browser. */
export function FileChoice({
  label,
  many = false,
  choose,
}: {
  label: string;
  many?: boolean;
  choose: (files: File[]) => void;
}): JSX.Element {
  const id = useId();
  return (
    <span>
      <input
        id={id}
        class="unseen"
        type="file"
        multiple={many}
        onChange={(event) => {
          choose([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
      <label class="button" htmlFor={id}>
        {label}
      </label>
    </span>
  );
}

/** A share of one, with what it stands for. */
export function Bar({
  name,
  value,
  shown,
  hint,
}: {
  name: string;
  value: number;
  shown: string;
  hint?: string | undefined;
}): JSX.Element {
  const share = Math.max(0, Math.min(1, value));
  return (
    <div class="bar" title={hint}>
      <span>{name}</span>
      <span class="track" aria-hidden="true">
        <span style={{ inlineSize: `${share * 100}%` }} />
      </span>
      <span class="amount">
        <bdi dir="ltr">{shown}</bdi>
      </span>
    </div>
  );
}

/** How often something helped, with its interval of 95 %. */
export function Success({ of }: { of: { value: number; low: number; high: number } }): JSX.Element {
  const told = words.value.interval(percent(of.low), percent(of.high));
  return (
    <span class="success" title={told}>
      <span class="range" aria-hidden="true">
        <span
          style={{ insetInlineStart: `${of.low * 100}%`, inlineSize: `${(of.high - of.low) * 100}%` }}
        />
        <i style={{ insetInlineStart: `${of.value * 100}%` }} />
      </span>
      {percent(of.value)}
      <span class="unseen">{told}</span>
    </span>
  );
}

export interface Asked {
  title: string;
  body: ComponentChildren;
  /** The word on the button that does it. */
  action: string;
  danger?: boolean;
  /** Asks for a line of text, under this label. */
  line?: string;
  /** Only this word lets it happen. */
  word?: string;
  act: (line: string) => Promise<unknown>;
}

const asked = signal<Asked | null>(null);

/** Ask before something happens; the dialog shows a failure and stays. */
export function ask(question: Asked): void {
  asked.value = question;
}

export function AskDialog(): JSX.Element | null {
  const question = asked.value;
  const dialog = useRef<HTMLDialogElement>(null);
  const [line, setLine] = useState("");
  const [failure, setFailure] = useState<Failure>();
  const [busy, setBusy] = useState(false);
  const title = useId();
  useEffect(() => {
    setLine("");
    setFailure(undefined);
    setBusy(false);
    if (question) dialog.current?.showModal();
  }, [question]);
  if (!question) return null;
  const close = (): void => {
    dialog.current?.close();
    asked.value = null;
  };
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setFailure(undefined);
    try {
      await question.act(line.trim());
      close();
    } catch (error) {
      setFailure(failureFrom(error));
      setBusy(false);
    }
  };
  const label = question.line ?? question.word;
  return (
    <dialog ref={dialog} aria-labelledby={title} onCancel={close}>
      <form onSubmit={(event) => void submit(event)}>
        <h2 id={title}>{question.title}</h2>
        <div>{question.body}</div>
        {label && (
          <TextField
            label={question.word ? words.value.typeWord(question.word) : label}
            value={line}
            set={setLine}
          />
        )}
        {failure && <Failed failure={failure} />}
        <div class="row end">
          <button type="button" class="plain" onClick={close}>
            {words.value.cancel}
          </button>
          <button
            class={question.danger ? "danger" : "main"}
            disabled={busy || (!!question.word && line !== question.word)}
          >
            {busy ? words.value.working : question.action}
          </button>
        </div>
      </form>
    </dialog>
  );
}

interface Sending {
  submit: (event: Event) => void;
  failure: Failure | undefined;
  busy: boolean;
}

/** A form that sends once, shows why it failed, and stays. */
export function useSending(send: () => Promise<unknown>): Sending {
  const [failure, setFailure] = useState<Failure>();
  const [busy, setBusy] = useState(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    if (busy) return;
    setFailure(undefined);
    setBusy(true);
    send()
      .catch((error: unknown) => setFailure(failureFrom(error)))
      .finally(() => setBusy(false));
  };
  return { submit, failure, busy };
}

/** Why a form failed, and its buttons. */
export function FormEnd({
  of,
  action,
  off,
  cancel,
}: {
  of: Sending;
  action: string;
  off: boolean;
  cancel?: () => void;
}): JSX.Element {
  return (
    <>
      {of.failure && <Failed failure={of.failure} />}
      <div class="row end">
        {cancel && (
          <button type="button" class="plain" onClick={cancel}>
            {words.value.cancel}
          </button>
        )}
        <button class="main" disabled={off || of.busy}>
          {action}
        </button>
      </div>
    </>
  );
}

/** What a key or a secret is: here, once, and nowhere else. */
export function Secret({ says, of, close }: { says: string; of: string; close: () => void }): JSX.Element {
  const copy = (): void =>
    void navigator.clipboard?.writeText(of).then(() => tell(words.value.copied));
  return (
    <Note kind="good">
      <span>{says}</span>
      <code dir="ltr" class="secret">
        {of}
      </code>
      <button class="plain" onClick={copy}>
        {words.value.copy}
      </button>
      <button class="plain" onClick={close}>
        {words.value.close}
      </button>
    </Note>
  );
}

/** A line of words in the address, asked with a button; `children`: what else narrows it. */
export function SearchForm({
  name,
  label,
  action = words.value.show,
  children,
}: {
  name: string;
  label: string;
  action?: string;
  children?: ComponentChildren;
}): JSX.Element {
  const [text, setText] = useState(place.value.query.get(name) ?? "");
  const submit = (event: Event): void => {
    event.preventDefault();
    setQuery({ [name]: text.trim() || undefined });
  };
  return (
    <form class="question" role="search" onSubmit={submit}>
      <TextField label={label} type="search" most={2000} value={text} set={setText} />
      {children}
      <button class="plain">{action}</button>
    </form>
  );
}

interface Told {
  text: string;
  undo?: (() => Promise<unknown>) | undefined;
}

const told = signal<Told | null>(null);
let timer = 0;

/** Say what was done, and how to take it back. */
export function tell(text: string, undo?: () => Promise<unknown>): void {
  told.value = { text, undo };
  clearTimeout(timer);
  timer = setTimeout(() => (told.value = null), undo ? 12_000 : 5_000);
}

export function Toast(): JSX.Element {
  const now = told.value;
  return (
    <div class="toast" role="status" aria-live="polite">
      {now && (
        <div>
          <span dir="auto">{now.text}</span>
          {now.undo && (
            <button
              class="plain"
              onClick={() => {
                told.value = null;
                now.undo?.().catch((error: unknown) => tell(failureFrom(error).message));
              }}
            >
              {words.value.undo}
            </button>
          )}
        </div>
      )}
    </div>
  );
}

/** A button for a call: busy while it runs, and a failure is told. */
export function Act({
  run,
  children,
  kind = "plain",
  disabled = false,
}: {
  run: () => Promise<unknown>;
  children: ComponentChildren;
  kind?: "plain" | "main" | "danger";
  disabled?: boolean;
}): JSX.Element {
  const [busy, setBusy] = useState(false);
  return (
    <button
      type="button"
      class={kind}
      disabled={busy || disabled}
      onClick={() => {
        setBusy(true);
        run()
          .catch((error: unknown) => tell(failureFrom(error).message))
          .finally(() => setBusy(false));
      }}
    >
      {children}
    </button>
  );
}

export function Facts({ of }: { of: readonly (readonly [string, ComponentChildren])[] }): JSX.Element {
  return (
    <dl class="facts">
      {of
        .filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
