// One memory: what it says, where it comes from, what it was before, and how to put it right.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { answerOf, api, type Schemas } from "../api";
import { differences } from "../diff";
import { moment, number } from "../format";
import { useEvery, useLoad } from "../load";
import { go, to } from "../router";
import { mayWrite } from "../session";
import {
  Act, Facts, FormEnd, Head, marked, Note, Said, Shown, Success, Tags, tell, TextField, Tier, useSending, When,
} from "../ui";
import { MemoryLine } from "../texts";
import { fill, valueName, words } from "../words";
import { archiveOf, removeOf, restoreAll, tagsOf } from "./memories";

type View = Schemas["MemoryView"];
type Version = Schemas["VersionView"];

async function both(id: string): Promise<{ memory: View; versions: Version[] }> {
  const params = { path: { memory_id: id } };
  const [item, versions] = await Promise.all([
    answerOf(api.GET("/api/memory/items/{memory_id}", { params })),
    answerOf(api.GET("/api/memory/items/{memory_id}/versions", { params })),
  ]);
  return { memory: item.memory, versions: versions.versions };
}

export function MemoryPage({ id }: { id: string }): JSX.Element {
  const editing = useSignal(false);
  const loaded = useLoad(() => both(id), [id]);
  useEvery(1500, loaded.data?.memory.index.sync_state === "pending" && !editing.value, loaded.again);
  return (
    <>
      <a class="back" href={to(["memories"])}>
        {words.value.memories}
      </a>
      <Shown of={loaded}>
        {({ memory, versions }) => (
          <>
            <Head title={words.value.memory}>
              <Buttons memory={memory} again={loaded.again} edit={() => (editing.value = true)} />
            </Head>
            {editing.value ? (
              <Edit
                memory={memory}
                close={(changed) => {
                  editing.value = false;
                  if (changed) loaded.again();
                }}
              />
            ) : (
              <blockquote class="card words">
                <Said text={memory.text} />
              </blockquote>
            )}
            {memory.status === "archived" && (
              <Note kind="warn">
                {words.value.archivedWhy}{" "}
                <Said text={memory.archived_reason || words.value.none} />
              </Note>
            )}
            {memory.index.last_error && (
              <Note kind="bad">
                <bdi dir="ltr">{memory.index.last_error}</bdi>
              </Note>
            )}
            <h2>{words.value.facts}</h2>
            <About memory={memory} />
            <h2>{words.value.versions}</h2>
            <History memory={memory} versions={versions} again={loaded.again} />
          </>
        )}
      </Shown>
    </>
  );
}

function Buttons({ memory, again, edit }: { memory: View; again: () => void; edit: () => void }): JSX.Element {
  const ids = [memory.memory_id];
  const pinnable = memory.tier === "memory_bank" && memory.status === "active";
  const pin = async (): Promise<void> => {
    await answerOf(
      api.PATCH("/api/memory/items/{memory_id}", {
        params: { path: { memory_id: memory.memory_id } },
        body: { always_inject: !memory.always_inject, expected_version: memory.version },
      }),
    );
    again();
  };
  return (
    <>
      <a class="button plain" href={to(["ask"], { q: memory.text.slice(0, 200) })}>
        {words.value.askWith}
      </a>
      {mayWrite.value && (
        <>
          {memory.status === "active" ? (
            <>
              <button class="main" onClick={edit}>
                {words.value.edit}
              </button>
              {pinnable && (
                <Act run={pin}>{memory.always_inject ? words.value.unpin : words.value.pin}</Act>
              )}
              <button class="plain" onClick={() => archiveOf(ids, again)}>
                {words.value.archive}
              </button>
            </>
          ) : (
            <Act run={() => restoreAll(ids).then(again)} kind="main">
              {words.value.restore}
            </Act>
          )}
          <button class="danger" onClick={() => removeOf(ids, () => go(to(["memories"])))}>
            {words.value.remove}
          </button>
        </>
      )}
    </>
  );
}

function Edit({ memory, close }: { memory: View; close: (changed: boolean) => void }): JSX.Element {
  const [text, setText] = useState(memory.text);
  const [tags, setTags] = useState(memory.tags.join(", "));
  const [reason, setReason] = useState("");
  const sending = useSending(async () => {
    const wanted = tagsOf(tags);
    await answerOf(
      api.PATCH("/api/memory/items/{memory_id}", {
        params: { path: { memory_id: memory.memory_id } },
        body: {
          expected_version: memory.version,
          ...(text !== memory.text ? { text } : {}),
          ...(wanted.join() !== memory.tags.join() ? { tags: wanted } : {}),
          ...(reason ? { reason } : {}),
        },
      }),
    );
    tell(words.value.saved);
    close(true);
  });
  const same = text === memory.text && tagsOf(tags).join() === memory.tags.join();
  return (
    <form class="card" aria-label={words.value.editing} onSubmit={sending.submit}>
      <TextField
        label={words.value.text}
        rows={Math.min(14, 2 + Math.ceil(text.length / 80))}
        value={text}
        set={setText}
      />
      <div class="filters">
        <TextField
          label={words.value.tags}
          hint={words.value.tagsHint}
          most={2000}
          value={tags}
          set={setTags}
        />
        <TextField label={words.value.why} value={reason} set={setReason} />
      </div>
      <FormEnd of={sending} action={words.value.save} off={same || !text.trim()} cancel={() => close(false)} />
    </form>
  );
}

function About({ memory }: { memory: View }): JSX.Element {
  const { source, stats } = memory;
  const judged = stats.worked_count + stats.partial_count + stats.failed_count > 0;
  return (
    <Facts
      of={[
        [words.value.tier, <Tier name={memory.tier} />],
        [words.value.state, valueName(memory.status)],
        [words.value.tags, memory.tags.length ? <Tags of={memory.tags} /> : null],
        [words.value.entities, memory.entities.length ? <Tags of={memory.entities} /> : null],
        [words.value.source, valueName(source.type)],
        [words.value.tool, source.tool_name && <Said text={source.tool_name} />],
        [
          words.value.conversation,
          source.conversation_id && (
            <a href={to(["conversations", source.conversation_id])}>
              <Said text={source.conversation_title || source.conversation_id} />
            </a>
          ),
        ],
        [
          words.value.document,
          source.doc_id && (
            <a href={to(["documents", source.doc_id])}>
              <Said text={source.doc_id} />
            </a>
          ),
        ],
        [words.value.created, <When at={memory.created_at} />],
        [words.value.changed, <When at={memory.updated_at} />],
        [words.value.expires, memory.expires_at && moment(memory.expires_at)],
        [words.value.validFrom, memory.valid_from && moment(memory.valid_from)],
        [words.value.validTo, memory.valid_to && moment(memory.valid_to)],
        [words.value.replaces, memory.supersedes && <MemoryLine id={memory.supersedes} />],
        [words.value.replacedBy, memory.superseded_by && <MemoryLine id={memory.superseded_by} />],
        [words.value.instruction, memory.instruction && <Said text={memory.instruction} />],
        [words.value.uses, number(stats.uses)],
        [words.value.success, judged && <Success of={memory.success_estimate} />],
        [
          words.value.outcomes,
          judged &&
            fill(
              words.value.outcomeCounts,
              number(stats.worked_count),
              number(stats.partial_count),
              number(stats.failed_count),
            ),
        ],
        [words.value.index, valueName(memory.index.sync_state)],
        [words.value.version, number(memory.version)],
        [words.value.id, <bdi dir="ltr">{memory.memory_id}</bdi>],
      ]}
    />
  );
}

async function putBack(memory: View, version: Version): Promise<void> {
  await answerOf(
    api.PATCH("/api/memory/items/{memory_id}", {
      params: { path: { memory_id: memory.memory_id } },
      body: {
        text: version.text,
        expected_version: memory.version,
        reason: fill(words.value.asIn, number(version.version)),
      },
    }),
  );
  tell(words.value.saved);
}

function History({ memory, versions, again }: { memory: View; versions: Version[]; again: () => void }): JSX.Element {
  if (!versions.length) return <p class="quiet">{words.value.noVersions}</p>;
  const older = [...versions].sort((a, b) => b.version - a.version);
  return (
    <ol class="list">
      {older.map((version, place) => {
        const after = place === 0 ? memory.text : (older[place - 1]?.text ?? memory.text);
        return (
          <li key={version.version}>
            <div class="grow">
              <div class="meta">
                <strong>
                  <bdi dir="ltr">
                    {number(version.version)} → {number(version.version + 1)}
                  </bdi>
                </strong>
                <span>{valueName(version.change_type)}</span>
                <When at={version.at} />
                {version.reason && <Said text={version.reason} most={300} />}
              </div>
              {after !== version.text && <Changes before={version.text} after={after} />}
              {mayWrite.value && memory.status === "active" && version.text !== memory.text && (
                <Act run={() => putBack(memory, version).then(again)}>{words.value.putBack}</Act>
              )}
            </div>
          </li>
        );
      })}
    </ol>
  );
}

function Changes({ before, after }: { before: string; after: string }): JSX.Element {
  return (
    <p class="diff" dir="auto">
      {differences(before, after).map(({ kind, text }) => {
        if (kind === "same") return marked(text);
        return kind === "gone" ? <del>{marked(text)}</del> : <ins>{marked(text)}</ins>;
      })}
    </p>
  );
}
