// Conversations: what was said, what each turn used and taught, and how to take it back.
import type { JSX } from "preact";
import { answerOf, api, type Schemas } from "../api";
import { number, percent } from "../format";
import { usePages } from "../load";
import { go, place, to } from "../router";
import { mayWrite } from "../session";
import { ask, Degraded, Empty, Head, Said, SearchForm, Shown, tell, When } from "../ui";
import { fill, tierName, valueName, words } from "../words";
import { More } from "./memories";

type Answer = Schemas["ConversationsAnswer"];

const page = (query: string, cursor?: string): Promise<Answer> =>
  answerOf(
    api.GET("/api/memory/conversations", {
      params: {
        query: { limit: 50, ...(query ? { query } : {}), ...(cursor ? { cursor } : {}) },
      },
    }),
  );

export function Conversations(): JSX.Element {
  const q = place.value.query.get("q") ?? "";
  const { loaded, all, cursor, next } = usePages((at) => page(q, at), [q]);
  return (
    <>
      <Head title={words.value.conversations} lead={words.value.conversationsLead} />
      <SearchForm name="q" label={words.value.searchConversations} />
      <Shown of={loaded}>
        {(data) => {
          const rows = all.flatMap((one) => one.conversations);
          return (
            <>
              <Degraded of={data.degraded} />
              {rows.length ? (
                <ul class="list">
                  {rows.map((row) => (
                    <li key={row.conversation_id}>
                      <div class="grow">
                        <a class="text" href={to(["conversations", row.conversation_id])}>
                          <Said text={row.title || words.value.untitled} most={200} />
                        </a>
                        {row.match && (
                          <p class="quiet">
                            <Said text={row.match} most={300} />
                          </p>
                        )}
                        <div class="meta">
                          <When at={row.updated_at} />
                          <span>{fill(words.value.turns, number(row.turns))}</span>
                        </div>
                      </div>
                    </li>
                  ))}
                </ul>
              ) : (
                <Empty text={q ? words.value.noConversationMatch : words.value.noConversations} />
              )}
              {cursor && <More key={cursor} next={next} />}
            </>
          );
        }}
      </Shown>
    </>
  );
}

const turns = (id: string, cursor?: string): Promise<Schemas["MessagesAnswer"]> =>
  answerOf(
    api.GET("/api/memory/conversations/{conversation_id}/messages", {
      params: {
        path: { conversation_id: id },
        query: { limit: 100, ...(cursor ? { cursor } : {}) },
      },
    }),
  );

export function ConversationPage({ id }: { id: string }): JSX.Element {
  const { loaded, all, cursor, next } = usePages((at) => turns(id, at), [id]);
  const forget = (): void =>
    ask({
      title: words.value.forgetTitle,
      body: words.value.forgetBody,
      action: words.value.forget,
      danger: true,
      act: async () => {
        const found = await answerOf(
          api.DELETE("/api/memory/conversations/{conversation_id}", {
            params: { path: { conversation_id: id } },
          }),
        );
        go(to(["conversations"]));
        const rows = Object.values(found.removed).reduce((a, b) => a + b, 0);
        tell(fill(words.value.forgotten, number(rows)));
      },
    });
  return (
    <>
      <a class="back" href={to(["conversations"])}>
        {words.value.conversations}
      </a>
      <Shown of={loaded}>
        {(data) => (
          <>
            <Head title={<Said text={data.title || words.value.untitled} most={200} />}>
              <a class="button plain" href={to(["memories"], { conversation: id })}>
                {words.value.memories}
              </a>
              {mayWrite.value && (
                <button class="danger" onClick={forget}>
                  {words.value.forget}
                </button>
              )}
            </Head>
            <ol class="talk">
              {all
                .flatMap((one) => one.messages)
                .map((message) => (
                  <Message key={`${message.message_id} ${message.role}`} message={message} />
                ))}
            </ol>
            {cursor && <More key={cursor} next={next} />}
          </>
        )}
      </Shown>
    </>
  );
}

function Message({ message }: { message: Schemas["StoredMessage"] }): JSX.Element {
  const person = message.role === "user";
  return (
    <li class={person ? "person" : "assistant"}>
      <div class="meta">
        <strong>{person ? words.value.person : words.value.assistant}</strong>
        <When at={message.at} />
        {message.model && <bdi dir="ltr">{message.model}</bdi>}
        {message.interrupted && <span class="chip bad">{words.value.brokeOff}</span>}
        {message.feedback && <span class="chip">{valueName(message.feedback)}</span>}
      </div>
      <p class="words">
        <Said text={message.content ?? ""} />
      </p>
      {(!!message.citations?.length || message.memory_id) && (
        <div class="meta">
          {!!message.citations?.length && (
            <>
              {words.value.used}{" "}
              {message.citations.map((one) => (
                <a class="chip" href={to(["memories", one.memory_id])}>
                  {number(one.position)} · {tierName(one.tier)}
                </a>
              ))}
            </>
          )}
          {message.memory_id && (
            <a class="id" href={to(["memories", message.memory_id])}>
              {words.value.learnedAs}
            </a>
          )}
          {!!message.tool_runs?.length &&
            message.tool_runs.map((run) => (
              <span class={`chip ${run.ok ? "" : "bad"}`}>
                <bdi dir="ltr">{run.name}</bdi>
              </span>
            ))}
          {typeof message.score === "number" && <span>{percent(message.score)}</span>}
        </div>
      )}
    </li>
  );
}
