// Who may call and who did what: keys, the audit log, tenants and their users.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { answerOf, api, type Schemas } from "../api";
import { moment, number } from "../format";
import { useLoad, usePages } from "../load";
import { place, setQuery } from "../router";
import { ask, Choice, Facts, FormEnd, Said, Secret, Shown, tell, TextField, useSending, When } from "../ui";
import { fill, valueName, words } from "../words";
import { More } from "./memories";

type Key = Schemas["KeyView"];

const SCOPES = [
  ["read", ["read"]],
  ["write", ["read", "write"]],
  ["admin", ["admin"]],
] as const;

export function Keys(): JSX.Element {
  const loaded = useLoad(() => answerOf(api.GET("/api/admin/keys")), []);
  const made = useSignal<Schemas["KeyMadeAnswer"] | undefined>(undefined);
  const adding = useSignal(false);
  const done = (answer: Schemas["KeyMadeAnswer"]): void => {
    made.value = answer;
    adding.value = false;
    loaded.again();
  };
  return (
    <section class="card">
      <h2>{words.value.keys}</h2>
      <p class="quiet">{words.value.keysLead}</p>
      {made.value && (
        <Secret says={words.value.keyShown} of={made.value.key} close={() => (made.value = undefined)} />
      )}
      {adding.value ? (
        <NewKey done={done} cancel={() => (adding.value = false)} />
      ) : (
        <button class="main" onClick={() => (adding.value = true)}>
          {words.value.makeKey}
        </button>
      )}
      <Shown of={loaded}>
        {({ keys }) =>
          keys.length ? (
            <ul class="list">
              {[...keys].reverse().map((one) => (
                <KeyRow key={one.key_id} of={one} rotated={done} again={loaded.again} />
              ))}
            </ul>
          ) : (
            <p class="quiet">{words.value.noKeys}</p>
          )
        }
      </Shown>
    </section>
  );
}

function KeyRow({
  of,
  rotated,
  again,
}: {
  of: Key;
  rotated: (made: Schemas["KeyMadeAnswer"]) => void;
  again: () => void;
}): JSX.Element {
  const params = { path: { key_id: of.key_id } };
  const rotate = (): void =>
    ask({
      title: fill(words.value.rotateAsk, of.name || of.principal),
      body: words.value.rotateBody,
      action: words.value.rotate,
      act: async () =>
        rotated(await answerOf(api.POST("/api/admin/keys/{key_id}/rotate", { params, body: { grace_s: 86_400 } }))),
    });
  const revoke = (): void =>
    ask({
      title: fill(words.value.revokeAsk, of.name || of.principal),
      body: words.value.revokeBody,
      action: words.value.revoke,
      danger: true,
      act: async () => {
        await answerOf(api.DELETE("/api/admin/keys/{key_id}", { params }));
        tell(words.value.revoked);
        again();
      },
    });
  return (
    <li class={of.state === "living" ? "" : "past"}>
      <div class="grow">
        <p>
          <strong>
            <Said text={of.name || of.principal} most={100} />
          </strong>{" "}
          <code dir="ltr">{of.key_id}</code>
        </p>
        <div class="meta">
          {of.state !== "living" && <span class="chip bad">{valueName(of.state)}</span>}
          {of.scopes.map((one) => (
            <span class="chip" key={one}>
              {valueName(one)}
            </span>
          ))}
          {of.name && <Said text={of.principal} most={100} />}
          <span>
            {words.value.user}: {of.user_id ? <Said text={of.user_id} most={60} /> : words.value.any}
          </span>
          {of.org_id && (
            <span>
              {words.value.tenant}: <Said text={of.org_id} most={60} />
            </span>
          )}
          <span>
            {words.value.created} <When at={of.created_at} />
          </span>
          <span>
            {words.value.lastUse}{" "}
            {of.last_used_at ? <When at={of.last_used_at} /> : words.value.never}
          </span>
          {of.expires_at && <span>{fill(words.value.upTo, moment(of.expires_at))}</span>}
        </div>
      </div>
      {of.state === "living" && (
        <div class="row">
          <button class="plain" onClick={rotate}>
            {words.value.rotate}
          </button>
          <button class="danger" onClick={revoke}>
            {words.value.revoke}
          </button>
        </div>
      )}
    </li>
  );
}

function NewKey({
  done,
  cancel,
}: {
  done: (made: Schemas["KeyMadeAnswer"]) => void;
  cancel: () => void;
}): JSX.Element {
  const [name, setName] = useState("");
  const [principal, setPrincipal] = useState("");
  const [user, setUser] = useState("");
  const [org, setOrg] = useState("");
  const [scope, setScope] = useState("write");
  const [until, setUntil] = useState("");
  const sending = useSending(async () => {
    done(
      await answerOf(
        api.POST("/api/admin/keys", {
          body: {
            principal: principal.trim(),
            name: name.trim(),
            scopes: [...(SCOPES.find(([one]) => one === scope)?.[1] ?? [])],
            ...(user.trim() ? { user_id: user.trim() } : {}),
            ...(org.trim() ? { org_id: org.trim() } : {}),
            ...(until ? { expires_at: `${until}T23:59:59Z` } : {}),
          },
        }),
      ),
    );
  });
  return (
    <form aria-label={words.value.makeKey} onSubmit={sending.submit}>
      <div class="filters">
        <TextField label={words.value.keyName} most={100} value={name} set={setName} />
        <TextField
          label={words.value.principal}
          hint={words.value.principalHint}
          most={128}
          required
          value={principal}
          set={setPrincipal}
        />
        <TextField
          label={words.value.userOfKey}
          hint={words.value.userOfKeyHint}
          most={128}
          value={user}
          set={setUser}
        />
        <TextField label={words.value.tenant} most={64} value={org} set={setOrg} />
        <Choice
          label={words.value.covers}
          value={scope}
          options={SCOPES.map(([one]) => [one, words.value[`covers${one}`]] as const)}
          set={setScope}
        />
        <TextField label={words.value.endsOn} type="date" value={until} set={setUntil} />
      </div>
      <FormEnd of={sending} action={words.value.makeKey} off={!principal.trim()} cancel={cancel} />
    </form>
  );
}

const entries = (who: string, cursor?: string): Promise<Schemas["AuditAnswer"]> =>
  answerOf(
    api.GET("/api/admin/audit", {
      params: {
        query: { limit: 50, ...(who ? { principal: who } : {}), ...(cursor ? { cursor } : {}) },
      },
    }),
  );

export function Audit(): JSX.Element {
  const who = place.value.query.get("who") ?? "";
  const { loaded, all, cursor, next } = usePages((at) => entries(who, at), [who]);
  return (
    <section class="card">
      <h2>{words.value.audit}</h2>
      <p class="quiet">{words.value.auditLead}</p>
      <div class="filters">
        <TextField
          label={words.value.principal}
          type="search"
          most={128}
          value={who}
          set={(value) => setQuery({ who: value || undefined })}
        />
      </div>
      <Shown of={loaded}>
        {() => {
          const rows = all.flatMap((one) => one.entries);
          return rows.length ? (
            <>
              <ul class="list">
                {rows.map((one) => (
                  <Entry key={one.entry_id} of={one} />
                ))}
              </ul>
              {cursor && <More key={cursor} next={next} />}
            </>
          ) : (
            <p class="quiet">{words.value.noEntries}</p>
          );
        }}
      </Shown>
    </section>
  );
}

function Entry({ of }: { of: Schemas["AuditEntryView"] }): JSX.Element {
  return (
    <li>
      <div class="grow">
        <p>
          <strong>
            <Said text={of.principal} most={100} />
          </strong>{" "}
          <code dir="ltr">
            {of.method} {of.route}
          </code>{" "}
          <span class={`chip ${of.status >= 400 ? "bad" : ""}`}>{of.status}</span>
        </p>
        <div class="meta">
          <time dateTime={of.at}>{moment(of.at)}</time>
          <bdi dir="ltr">{of.source}</bdi>
          <span>
            {words.value.user}: <Said text={of.user_id} most={60} />
          </span>
          {of.org_id && <Said text={of.org_id} most={60} />}
          {Object.entries(of.ids).map(([name, id]) => (
            <span key={name}>
              {valueName(name)}: <Said text={id} most={60} />
            </span>
          ))}
        </div>
        {of.memory_ids.length > 0 && (
          <details>
            <summary>{fill(words.value.found, number(of.memory_ids.length))}</summary>
            <bdi dir="ltr">{of.memory_ids.join(", ")}</bdi>
          </details>
        )}
      </div>
    </li>
  );
}

export function Tenants(): JSX.Element {
  const loaded = useLoad(() => answerOf(api.GET("/api/memory/ops/tenants")), []);
  return (
    <section class="card">
      <h2>{words.value.tenants}</h2>
      <Shown of={loaded}>
        {({ tenants }) =>
          tenants.length ? (
            tenants.map((one) => <Tenant key={one.org_id} of={one} />)
          ) : (
            <p class="quiet">{words.value.noTenants}</p>
          )
        }
      </Shown>
    </section>
  );
}

function Tenant({ of }: { of: Schemas["TenantView"] }): JSX.Element {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Said text={of.org_id} />
      </summary>
      <Facts
        of={[
          [words.value.keys, number(of.keys)],
          [words.value.users, number(of.users)],
          [words.value.memories, number(of.memories)],
        ]}
      />
      {open && <TenantUsers org={of.org_id} />}
    </details>
  );
}

function TenantUsers({ org }: { org: string }): JSX.Element {
  const loaded = useLoad(
    () =>
      answerOf(
        api.GET("/api/memory/ops/tenants/{org_id}/users", { params: { path: { org_id: org } } }),
      ),
    [org],
  );
  return (
    <Shown of={loaded}>
      {({ users }) =>
        users.length ? (
          <table>
            <thead>
              <tr>
                <th scope="col">{words.value.user}</th>
                <th scope="col">{words.value.memories}</th>
                <td />
              </tr>
            </thead>
            <tbody>
              {users.map((one) => (
                <tr key={one.user_id}>
                  <th scope="row">
                    <Said text={one.user_id} most={128} />
                  </th>
                  <td>{number(one.memories)}</td>
                  <td>{one.held && words.value.held}</td>
                </tr>
              ))}
            </tbody>
          </table>
        ) : (
          <p class="quiet">{words.value.noUsers}</p>
        )
      }
    </Shown>
  );
}
