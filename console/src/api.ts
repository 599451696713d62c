// Calls of the service: typed from its own document, refused in one sentence.
import { signal } from "@preact/signals";
import createClient from "openapi-fetch";
import { language, words } from "./words";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];

/** A key that was entered by hand: it is kept in the memory of this page and nowhere else. */
export const key = signal("");
/** Whom the calls are for; empty: the user of the key, or the one of local mode. */
export const actingFor = signal(sessionStorage.getItem("acting-for") ?? "");
/** The service asked who we are. */
export const locked = signal(false);

export function actFor(user: string): void {
  sessionStorage.setItem("acting-for", user);
  actingFor.value = user;
}

export function headers(): Record<string, string> {
  const found: Record<string, string> = {
    "Accept-Language": language.value,
    // A page of another origin cannot send it: what makes a cookie count.
    "X-Rayapp-Console": "1",
  };
  if (key.value) found["Authorization"] = `Bearer ${key.value}`;
  if (actingFor.value) found["X-User-Id"] = actingFor.value;
  return found;
}

/** Why a call failed: a sentence that says what to do. */
export class Failure extends Error {
  constructor(
    sentence: string,
    readonly code: string,
    readonly status: number,
  ) {
    super(sentence);
  }
}

export const api = createClient<paths>({ baseUrl: location.origin });
api.use({
  onRequest({ request }) {
    for (const [name, value] of Object.entries(headers())) request.headers.set(name, value);
  },
});

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** What a call answers. Throws Failure. */
export async function answerOf<T>(call: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await call;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Failure(words.value.unreachable, "unreachable", 0);
  }
  if (answer.response.ok) return answer.data as T;
  throw failureOf(answer.error, answer.response.status);
}

export function failureOf(body: unknown, status: number): Failure {
  const said = (typeof body === "object" && body !== null ? body : {}) as {
    message?: string;
    error?: string;
    code?: string;
  };
  if (status === 401) locked.value = true;
  return new Failure(
    said.message ?? said.error ?? `${words.value.refused} (${status})`,
    said.code ?? "",
    status,
  );
}

/** A form with a file; openapi-fetch would make it JSON. */
export async function sendForm<T>(path: keyof paths, form: FormData): Promise<T> {
  const call = async (): Promise<Answer<T>> => {
    const response = await fetch(path, { method: "POST", body: form, headers: headers() });
    const body: unknown = await response.json().catch(() => null);
    return response.ok
      ? { data: body as T, response }
      : { error: body, response };
  };
  return answerOf(call());
}

/** Save what a route answers as a file. */
export async function download(path: string, name: string): Promise<void> {
  const call = async (): Promise<Answer<Blob>> => {
    const response = await fetch(path, { headers: headers() });
    if (response.ok) return { data: await response.blob(), response };
    return { error: await response.json().catch(() => null), response };
  };
  save(await answerOf(call()), name);
}

export function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export interface StreamEvent {
  id: string;
  type: string;
  data: Schemas["StreamEventView"];
}

/** The events of the service until `signal` aborts; comes back after a break where it was. */
export async function follow(
  signal: AbortSignal,
  seen: (event: StreamEvent) => void,
  state: (open: boolean, failure?: Failure) => void,
): Promise<void> {
  let last = "";
  let wait = 500;
  while (!signal.aborted) {
    try {
      const response = await fetch("/api/memory/events", {
        headers: { ...headers(), ...(last ? { "Last-Event-ID": last } : {}) },
        signal,
      });
      if (!response.ok || !response.body) {
        throw failureOf(await response.json().catch(() => null), response.status);
      }
      state(true);
      wait = 500;
      await readLines(response.body, (event) => {
        last = event.id || last;
        if (event.type) seen(event);
      });
    } catch (error) {
      if (signal.aborted) return;
      const known = error instanceof Failure && error.status > 0 && error.status < 500;
      state(false, error instanceof Failure ? error : new Failure(words.value.unreachable, "", 0));
      if (known) return;
    }
    await new Promise((done) => setTimeout(done, wait));
    wait = Math.min(wait * 2, 10_000);
  }
}

async function readLines(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  seen: (event: StreamEvent) => void,
): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const fields = new Map(
        block.split("\n").map((line) => {
          const cut = line.indexOf(": ");
          return [line.slice(0, cut), line.slice(cut + 2)] as const;
        }),
      );
      const data = fields.get("data");
      seen({
        id: fields.get("id") ?? "",
        type: data ? (fields.get("event") ?? "") : "",
        data: data ? JSON.parse(data) : {},
      } as StreamEvent);
    }
  }
}
