// What a page shows while it asks, when it has an answer, and when it got none.
import { useEffect, useRef, useState } from "preact/hooks";
import { actingFor, Failure, key } from "./api";
import { language } from "./words";

export interface Loaded<T> {
  /** The last answer: it stays while the next one is on its way, so that nothing jumps. */
  data?: T;
  failure?: Failure;
  busy: boolean;
  again: () => void;
}

const AGAIN_MS = 3000;

/** Ask when the page appears and when a condition changes; what comes late is dropped. */
export function useLoad<T>(ask: () => Promise<T>, conditions: unknown[]): Loaded<T> {
  const [state, set] = useState<{ data?: T; failure?: Failure; busy: boolean }>({ busy: true });
  const [turn, setTurn] = useState(0);
  const newest = useRef(0);
  useEffect(() => {
    const mine = ++newest.current;
    set((before) => ({ ...before, busy: true }));
    ask().then(
      (data) => mine === newest.current && set({ data, busy: false }),
      (error: unknown) =>
        mine === newest.current &&
        set((before) => ({ ...before, failure: failureFrom(error), busy: false })),
    );
    return () => {
      newest.current += 1;
    };
  }, [...conditions, turn, key.value, actingFor.value, language.value]);
  const again = (): void => setTurn((before) => before + 1);
  // A service that is away comes back: the page does too, by itself.
  useEvery(AGAIN_MS, state.failure?.status === 0, again);
  return { ...state, again };
}

/** Page after page: the first one is `loaded`, `all` are those that came; `next` until the last. */
export function usePages<T extends { next_cursor: string | null }>(
  page: (cursor?: string) => Promise<T>,
  conditions: unknown[],
): { loaded: Loaded<T>; all: T[]; cursor: string | null; next: () => Promise<void> } {
  const [more, setMore] = useState<T[]>([]);
  const loaded = useLoad(async () => {
    const first = await page();
    setMore([]);
    return first;
  }, conditions);
  const all = loaded.data ? [loaded.data, ...more] : [];
  const cursor = all[all.length - 1]?.next_cursor ?? null;
  const next = async (): Promise<void> => {
    const found = await page(cursor ?? undefined);
    setMore((before) => [...before, found]);
  };
  return { loaded, all, cursor, next };
}

export function failureFrom(error: unknown): Failure {
  return error instanceof Failure ? error : new Failure(String(error), "", 0);
}

/** Ask again every `ms` while `on`. */
export function useEvery(ms: number, on: boolean, again: () => void): void {
  const call = useRef(again);
  call.current = again;
  useEffect(() => {
    if (!on) return;
    const timer = setInterval(() => document.hidden || call.current(), ms);
    return () => clearInterval(timer);
  }, [ms, on]);
}
