// Addresses: a path below /console and a query, both shareable.
import { signal } from "@preact/signals";

const BASE = "/console";

export interface Place {
  parts: string[];
  query: URLSearchParams;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function read(): Place {
  const path = location.pathname.slice(BASE.length).replace(/^\/+|\/+$/g, "");
  return {
    parts: path ? path.split("/").map(decoded) : [],
    query: new URLSearchParams(location.search),
  };
}

export const place = signal<Place>(read());

/** The address of a page. */
export function to(parts: string[], query: Record<string, string | undefined> = {}): string {
  const kept = Object.entries(query).filter((one): one is [string, string] => !!one[1]);
  const search = kept.length ? `?${new URLSearchParams(kept)}` : "";
  return `${BASE}/${parts.map(encodeURIComponent).join("/")}${search}`;
}

export function go(address: string, replace = false): void {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  place.value = read();
  if (!replace) {
    scrollTo(0, 0);
    document.getElementById("main")?.focus({ preventScroll: true });
  }
}

/** The same page with other conditions. */
export function setQuery(changes: Record<string, string | undefined>): void {
  const { parts, query } = place.value;
  go(to(parts, { ...Object.fromEntries(query), ...changes }), true);
}

addEventListener("popstate", () => (place.value = read()));

// Links are plain: a click with a key held, or the middle one, opens them as a browser does.
document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey)
    return;
  const link = (event.target as Element | null)?.closest?.("a");
  if (!link || link.target || link.hasAttribute("download")) return;
  if (link.origin !== location.origin || !link.pathname.startsWith(BASE)) return;
  if (link.hash) return;
  event.preventDefault();
  go(link.pathname + link.search);
});
