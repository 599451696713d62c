// Who is here, and what they may do.
import { computed, signal } from "@preact/signals";
import { actingFor, answerOf, api, key, locked, type Schemas } from "./api";

export const who = signal<Schemas["ConsoleSessionAnswer"] | undefined>(undefined);

/** Corrections and deletions are offered. */
export const mayWrite = computed(
  () => !!who.value?.scopes.some((scope) => scope === "write" || scope === "admin"),
);

/** What belongs to no user is shown. */
export const mayOperate = computed(
  () => !!who.value?.scopes.some((scope) => scope === "admin") && !who.value.shard,
);

export async function look(): Promise<void> {
  who.value = await answerOf(api.GET("/api/auth/console"));
  locked.value = false;
}

/** `stay`: as a cookie that no script can read; else the key lives in this page alone. */
export async function signIn(given: string, stay: boolean): Promise<void> {
  const before = key.value;
  key.value = given;
  try {
    if (stay) {
      await answerOf(api.POST("/api/auth/console"));
      key.value = "";
    }
    await look();
  } catch (error) {
    key.value = before;
    throw error;
  }
}

export async function signOut(): Promise<void> {
  if (who.value?.expires_at) await answerOf(api.DELETE("/api/auth/console"));
  key.value = "";
  actingFor.value = "";
  who.value = undefined;
  locked.value = true;
}
