// A person's own data: take it along, bring it, erase it and keep the proof.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { answerOf, api, download, type Failure, save, type Schemas, sendForm } from "../api";
import { bytes, moment, number } from "../format";
import { failureFrom, useLoad } from "../load";
import { mayWrite } from "../session";
import { Act, ask, Choice, Facts, Failed, FileChoice, Head, Note, Said, Shown, When } from "../ui";
import { fill, valueName, words } from "../words";

const OURS = "rayapp";
const ELSEWHERE = ["mem0", "chatgpt", "claude", "markdown", "roampal"] as const;

export function Yours(): JSX.Element {
  const kept = useLoad(() => answerOf(api.GET("/api/memory/backup/estimate")), []);
  return (
    <>
      <Head title={words.value.yours} lead={words.value.yoursLead} />
      <section class="card">
        <h2>{words.value.kept}</h2>
        <Shown of={kept}>
          {({ estimate }) => {
            const kinds = Object.entries(estimate.kinds).filter(([, size]) => size.rows);
            return kinds.length ? (
              <table>
                <tbody>
                  {kinds.map(([name, size]) => (
                    <tr key={name}>
                      <th scope="row">{valueName(name)}</th>
                      <td>{number(size.rows)}</td>
                      <td>
                        <bdi>{bytes(size.bytes)}</bdi>
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            ) : (
              <p class="quiet">{words.value.nothingKept}</p>
            );
          }}
        </Shown>
      </section>
      <section class="card">
        <h2>{words.value.exportTitle}</h2>
        <p>{words.value.exportBody}</p>
        <Act
          kind="main"
          run={() =>
            download(
              "/api/memory/backup/export?format=zip",
              `memory-${new Date().toISOString().slice(0, 10)}.zip`,
            )
          }
        >
          {words.value.exportButton}
        </Act>
      </section>
      {mayWrite.value && (
        <>
          <Import done={kept.again} />
          <Erase done={kept.again} />
        </>
      )}
    </>
  );
}

type Imported = Schemas["ImportAnswer"] & Partial<Pick<Schemas["ForeignImportAnswer"], "notTaken">>;

function Import({ done }: { done: () => void }): JSX.Element {
  const [file, setFile] = useState<File>();
  const [source, setSource] = useState(OURS);
  const answer = useSignal<Imported | undefined>(undefined);
  const failure = useSignal<Failure | undefined>(undefined);
  const send = async (dry: boolean): Promise<void> => {
    if (!file) return;
    failure.value = undefined;
    answer.value = undefined;
    const form = new FormData();
    form.set("file", file);
    form.set("dryRun", String(dry));
    if (source !== OURS) form.set("source", source);
    else form.set("mapUser", "true");
    const path = source === OURS ? "/api/memory/backup/upload" : "/api/memory/backup/import-from";
    try {
      answer.value = await sendForm<Imported>(path, form);
      if (!dry) done();
    } catch (error) {
      failure.value = failureFrom(error);
    }
  };
  const found = answer.value;
  return (
    <section class="card">
      <h2>{words.value.importTitle}</h2>
      <p>{words.value.importBody}</p>
      <div class="filters">
        <Choice
          label={words.value.comesFrom}
          value={source}
          options={[[OURS, words.value.ours], ...ELSEWHERE.map((name) => [name, name] as const)]}
          set={(value) => {
            answer.value = undefined;
            setSource(value);
          }}
        />
        <div class="field">
          <span class="quiet">{file ? <Said text={file.name} most={60} /> : words.value.file}</span>
          <FileChoice
            label={words.value.chooseFile}
            choose={([chosen]) => {
              answer.value = undefined;
              setFile(chosen);
            }}
          />
        </div>
      </div>
      <div class="row">
        <Act run={() => send(true)} disabled={!file}>
          {words.value.tryImport}
        </Act>
        <Act run={() => send(false)} disabled={!found?.dryRun || !!found.errors.length} kind="main">
          {words.value.doImport}
        </Act>
      </div>
      {failure.value && <Failed failure={failure.value} />}
      {found && <ImportTold found={found} />}
    </section>
  );
}

function ImportTold({ found }: { found: Imported }): JSX.Element {
  const rows = Object.entries(found.collections);
  return (
    <>
      <Note kind={found.dryRun ? "plain" : "good"}>
        {found.dryRun ? words.value.wouldAdd : words.value.didAdd}
      </Note>
      <table>
        <thead>
          <tr>
            <td />
            <th scope="col">{words.value.added}</th>
            <th scope="col">{words.value.changedRows}</th>
            <th scope="col">{words.value.present}</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, put]) => (
            <tr key={name}>
              <th scope="row">{valueName(name)}</th>
              <td>{number(put.added)}</td>
              <td>{number(put.changed)}</td>
              <td>{number(put.present + put.same_text)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {found.errors.map((error) => (
        <Note kind="bad">
          <Said text={error} />
        </Note>
      ))}
      {found.notTaken?.map((one) => (
        <p class="quiet">
          {number(one.count)} · <Said text={one.what} />: <Said text={one.why} />
        </p>
      ))}
    </>
  );
}

function Erase({ done }: { done: () => void }): JSX.Element {
  const erased = useSignal<Schemas["ErasedAnswer"] | undefined>(undefined);
  const erase = (): void =>
    ask({
      title: words.value.eraseAsk,
      body: words.value.eraseBody,
      action: words.value.eraseButton,
      danger: true,
      word: "DELETE",
      act: async (word) => {
        erased.value = await answerOf(
          api.DELETE("/api/memory/user", { params: { query: { confirm: word } } }),
        );
        done();
      },
    });
  const found = erased.value;
  return (
    <section class="card">
      <h2>{words.value.eraseTitle}</h2>
      <p>{words.value.eraseBody}</p>
      <button class="danger" onClick={erase}>
        {words.value.eraseButton}
      </button>
      {found && (
        <>
          <h3>{words.value.certificate}</h3>
          <Note kind={found.complete ? "good" : "bad"}>
            {found.complete ? words.value.complete : words.value.incomplete}
          </Note>
          <p>{words.value.certificateBody}</p>
          <Facts
            of={[
              [words.value.created, moment(found.certificate.at)],
              [
                words.value.rows,
                number(Object.values(found.certificate.removed).reduce((a, b) => a + b, 0)),
              ],
              ["SHA-256", <code dir="ltr">{found.certificate.sha256}</code>],
            ]}
          />
          <button
            class="main"
            onClick={() =>
              save(
                new Blob([JSON.stringify(found.certificate, null, 2)], { type: "application/json" }),
                `certificate-${found.certificate.sha256.slice(0, 8)}.json`,
              )
            }
          >
            {words.value.saveCertificate}
          </button>
        </>
      )}
      <Backups />
    </section>
  );
}

function Backups(): JSX.Element | null {
  const kept = useLoad(() => answerOf(api.GET("/api/memory/backup/list")), []);
  if (!kept.data?.total) return null;
  return (
    <>
      <h3>{words.value.backups}</h3>
      <ul>
        {kept.data.backups.map((one) => (
          <li key={one.name}>
            <bdi dir="ltr">{one.name}</bdi> · <bdi>{bytes(one.size_bytes)}</bdi> · <When at={one.exportedAt} />
          </li>
        ))}
      </ul>
      <p class="quiet">{fill(words.value.found, number(kept.data.total))}</p>
    </>
  );
}
