// The frame around every page: where to go, who is here, in which language.
import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { actFor, actingFor, type Failure, locked } from "./api";
import { failureFrom } from "./load";
import { AskPage } from "./pages/ask";
import { BlockPage } from "./pages/block";
import { ConversationPage, Conversations } from "./pages/conversations";
import { DocumentPage, Documents } from "./pages/documents";
import { Learning } from "./pages/learning";
import { Live } from "./pages/live";
import { Memories } from "./pages/memories";
import { MemoryPage } from "./pages/memory";
import { Operate } from "./pages/operate";
import { People, PersonPage } from "./pages/people";
import { Review } from "./pages/review";
import { Yours } from "./pages/yours";
import { place, to } from "./router";
import { look, mayWrite, signIn, signOut, who } from "./session";
import { ask, AskDialog, Empty, Failed, FormEnd, tell, TextField, Toast, useSending } from "./ui";
import { language, speak, words } from "./words";

const PAGES = [
  ["memories", "memories"],
  ["ask", "askPage"],
  ["block", "block"],
  ["live", "live"],
  ["documents", "documents"],
  ["conversations", "conversations"],
  ["review", "review"],
  ["people", "people"],
  ["learning", "learning"],
  ["yours", "yours"],
  ["operate", "operate"],
] as const;

const dark = signal(
  (localStorage.getItem("theme") ??
    (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark",
);

function shade(on: boolean): void {
  localStorage.setItem("theme", on ? "dark" : "light");
  dark.value = on;
}

export function App(): JSX.Element {
  const [failure, setFailure] = useState<Failure>();
  const start = (): void => {
    setFailure(undefined);
    look().catch((error: unknown) => {
      if (!locked.value) setFailure(failureFrom(error));
    });
  };
  useEffect(start, []);
  const name = place.value.parts[0] ?? "memories";
  const title = PAGES.find(([path]) => path === name)?.[1];
  useEffect(() => {
    const root = document.documentElement;
    root.lang = language.value;
    root.dir = language.value === "he" ? "rtl" : "ltr";
    root.dataset["theme"] = dark.value ? "dark" : "light";
    document.title = `${title ? words.value[title] : words.value.console} · rayapp`;
  }, [language.value, dark.value, title]);
  return (
    <>
      <a class="skip" href="#main">
        {words.value.skip}
      </a>
      <Top />
      <div class="frame">
        {who.value && <Pages now={name} />}
        <main id="main" tabIndex={-1}>
          {failure && <Failed failure={failure} again={start} />}
          {locked.value ? <SignIn /> : who.value && <Page name={name} id={place.value.parts[1]} />}
        </main>
      </div>
      <AskDialog />
      <Toast />
    </>
  );
}

function Page({ name, id }: { name: string; id: string | undefined }): JSX.Element {
  switch (name) {
    case "memories":
      return id ? <MemoryPage id={id} key={id} /> : <Memories />;
    case "ask":
      return <AskPage key={place.value.query.get("q")} />;
    case "block":
      return <BlockPage />;
    case "live":
      return <Live />;
    case "documents":
      return id ? <DocumentPage id={id} key={id} /> : <Documents />;
    case "conversations":
      return id ? <ConversationPage id={id} key={id} /> : <Conversations />;
    case "review":
      return <Review />;
    case "people":
      return id ? <PersonPage id={id} key={id} /> : <People />;
    case "learning":
      return <Learning />;
    case "yours":
      return <Yours />;
    case "operate":
      return <Operate part={id} />;
    default:
      return (
        <Empty text={words.value.noPage} />
      );
  }
}

function Pages({ now }: { now: string }): JSX.Element {
  const list = useRef<HTMLElement>(null);
  // On a narrow screen the list is a row that scrolls.
  useEffect(() => {
    list.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [now]);
  return (
    <nav aria-label={words.value.pages} ref={list}>
      {PAGES.map(([path, word]) => (
        <a key={path} href={to([path])} aria-current={path === now ? "page" : undefined}>
          {words.value[word]}
        </a>
      ))}
    </nav>
  );
}

function Top(): JSX.Element {
  const other = language.value === "he" ? "en" : "he";
  return (
    <header class="top">
      <a class="brand" href={to(["memories"])} dir="ltr">
        <span aria-hidden="true" class="logo" />
        rayapp
      </a>
      <span class="grow" />
      {who.value && !mayWrite.value && (
        <span class="chip" title={words.value.readOnlyHint}>
          {words.value.readOnly}
        </span>
      )}
      {who.value && <Whose />}
      <button class="plain small" onClick={() => shade(!dark.value)}>
        {dark.value ? words.value.light : words.value.dark}
      </button>
      <button class="plain small" lang={other} onClick={() => speak(other)}>
        {words.value.switchLanguage}
      </button>
      {who.value?.keys && (
        <button
          class="plain small"
          onClick={() => {
            signOut().then(
              () => tell(words.value.signedOut),
              (error: unknown) => tell(failureFrom(error).message),
            );
          }}
        >
          {words.value.signOut}
        </button>
      )}
    </header>
  );
}

/** The user whose memory is shown; a click names another one. */
function Whose(): JSX.Element {
  const change = (): void =>
    ask({
      title: words.value.userOf,
      body: words.value.userHint,
      action: words.value.show,
      line: words.value.user,
      act: async (user) => {
        const before = actingFor.value;
        actFor(user);
        try {
          await look();
        } catch (error) {
          actFor(before);
          throw error;
        }
      },
    });
  return (
    <button class="plain small whose" onClick={change} aria-label={`${words.value.userOf}: ${who.value?.user_id}`}>
      <bdi dir="auto">{who.value?.user_id}</bdi>
    </button>
  );
}

function SignIn(): JSX.Element {
  const [given, setGiven] = useState("");
  const [stay, setStay] = useState(false);
  const sending = useSending(() => signIn(given.trim(), stay));
  return (
    <form class="card sign-in" onSubmit={sending.submit}>
      <h1>{words.value.signInTitle}</h1>
      <p>
        {words.value.signInLead} <code dir="ltr">rayapp keys create</code>
      </p>
      <TextField
        label={words.value.keyLabel}
        type="password"
        dir="ltr"
        required
        value={given}
        set={setGiven}
      />
      <label class="check">
        <input
          type="checkbox"
          checked={stay}
          onChange={(event) => setStay(event.currentTarget.checked)}
        />
        {words.value.stay}
      </label>
      <small>{words.value.stayHint}</small>
      <FormEnd of={sending} action={words.value.signInTitle} off={!given.trim()} />
    </form>
  );
}
