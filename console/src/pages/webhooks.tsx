// Programs that are told what happens: made, tried, switched off, and what each was told.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { answerOf, api, type Schemas } from "../api";
import { number } from "../format";
import known from "../known.json";
import { useLoad } from "../load";
import { mayWrite } from "../session";
import { Act, ask, FormEnd, Said, Secret, Shown, tell, TextField, useSending, When } from "../ui";
import { fill, valueName, words } from "../words";

type Webhook = Schemas["WebhookView"];

// What belongs to operators is told to no program.
const EVENTS = known.events.filter((name) => name !== "job");

export function Webhooks(): JSX.Element {
  const loaded = useLoad(() => answerOf(api.GET("/api/webhooks")), []);
  const adding = useSignal(false);
  const secret = useSignal("");
  return (
    <section class="card">
      <h2>{words.value.webhooks}</h2>
      <p class="quiet">{words.value.webhooksLead}</p>
      {secret.value && (
        <Secret says={words.value.secretShown} of={secret.value} close={() => (secret.value = "")} />
      )}
      {adding.value ? (
        <NewWebhook
          cancel={() => (adding.value = false)}
          done={(made) => {
            secret.value = made;
            adding.value = false;
            loaded.again();
          }}
        />
      ) : (
        mayWrite.value && (
          <button class="main" onClick={() => (adding.value = true)}>
            {words.value.addWebhook}
          </button>
        )
      )}
      <Shown of={loaded}>
        {({ webhooks }) =>
          webhooks.length ? (
            <ul class="list">
              {webhooks.map((one) => (
                <Hook key={one.webhook_id} of={one} again={loaded.again} />
              ))}
            </ul>
          ) : (
            <p class="quiet">{words.value.noWebhooks}</p>
          )
        }
      </Shown>
    </section>
  );
}

function NewWebhook({ done, cancel }: { done: (secret: string) => void; cancel: () => void }): JSX.Element {
  const [url, setUrl] = useState("");
  const [about, setAbout] = useState("");
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const sending = useSending(async () => {
    const body = { url: url.trim(), description: about.trim(), events: chosen } as Schemas["WebhookBody"];
    const made = await answerOf(api.POST("/api/webhooks", { body }));
    done(made.secret);
  });
  return (
    <form aria-label={words.value.addWebhook} onSubmit={sending.submit}>
      <div class="filters">
        <TextField label={words.value.address} type="url" dir="ltr" most={2000} required value={url} set={setUrl} />
        <TextField label={words.value.description} most={200} value={about} set={setAbout} />
      </div>
      <div class="row kinds" role="group" aria-label={words.value.whichEvents}>
        {EVENTS.map((name) => (
          <button
            type="button"
            key={name}
            class="chip"
            aria-pressed={chosen.includes(name)}
            onClick={() =>
              setChosen(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name])
            }
          >
            {valueName(name)}
          </button>
        ))}
      </div>
      <small>{words.value.whichEventsHint}</small>
      <FormEnd of={sending} action={words.value.save} off={!url.trim()} cancel={cancel} />
    </form>
  );
}

function Hook({ of, again }: { of: Webhook; again: () => void }): JSX.Element {
  const [open, setOpen] = useState(false);
  const params = { path: { webhook_id: of.webhook_id } };
  const test = async (): Promise<void> => {
    const tried = await answerOf(api.POST("/api/webhooks/{webhook_id}/test", { params }));
    tell(tried.delivered ? words.value.delivered : (tried.error ?? words.value.refused));
  };
  const turn = async (): Promise<void> => {
    await answerOf(api.PATCH("/api/webhooks/{webhook_id}", { params, body: { enabled: !of.enabled } }));
    again();
  };
  const remove = (): void =>
    ask({
      title: words.value.removeWebhook,
      body: words.value.removeWebhookBody,
      action: words.value.remove,
      danger: true,
      act: async () => {
        await answerOf(api.DELETE("/api/webhooks/{webhook_id}", { params }));
        again();
      },
    });
  return (
    <li class={of.enabled ? "" : "past"}>
      <div class="grow">
        <p>
          <bdi dir="ltr">{of.url}</bdi>
        </p>
        <div class="meta">
          {of.off && (
            <span class="chip bad">
              <Said text={of.off} most={200} />
            </span>
          )}
          {of.description && <Said text={of.description} most={200} />}
          <span>{of.events.length ? of.events.map(valueName).join(", ") : words.value.all}</span>
          <span>
            {words.value.created} <When at={of.created_at} />
          </span>
        </div>
        <details onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>{words.value.deliveries}</summary>
          {open && <Deliveries id={of.webhook_id} />}
        </details>
      </div>
      {mayWrite.value && (
        <div class="row">
          <Act run={test}>{words.value.tryIt}</Act>
          <Act run={turn}>{of.enabled ? words.value.pause : words.value.resume}</Act>
          <button class="danger" onClick={remove}>
            {words.value.remove}
          </button>
        </div>
      )}
    </li>
  );
}

function Deliveries({ id }: { id: string }): JSX.Element {
  const params = { path: { webhook_id: id } };
  const loaded = useLoad(
    () => answerOf(api.GET("/api/webhooks/{webhook_id}/deliveries", { params })),
    [id],
  );
  const replay = async (one?: string): Promise<void> => {
    const body = (one ? { delivery_id: one } : {}) as Schemas["ReplayBody"];
    const { queued } = await answerOf(api.POST("/api/webhooks/{webhook_id}/replay", { params, body }));
    tell(fill(words.value.sentAgain, number(queued)));
    loaded.again();
  };
  return (
    <Shown of={loaded}>
      {({ deliveries }) =>
        deliveries.length ? (
          <>
            {mayWrite.value && deliveries.some((one) => one.state === "dead") && (
              <Act run={() => replay()}>{words.value.sendAllAgain}</Act>
            )}
            <ul class="lines">
              {deliveries.map((one) => (
                <li key={one.delivery_id}>
                  <span class={`dot ${{ done: "good", dead: "bad", waiting: "warn" }[one.state]}`}>
                    {valueName(`delivery_${one.state}`)}
                  </span>
                  <span>{valueName(one.type)}</span>
                  <When at={one.at} />
                  <span class="quiet">{fill(words.value.tries, number(one.tries))}</span>
                  {one.status !== null && <span>{one.status}</span>}
                  {one.error && (
                    <span class="quiet">
                      <Said text={one.error} most={200} />
                    </span>
                  )}
                  {mayWrite.value && one.state === "dead" && (
                    <Act run={() => replay(one.delivery_id)}>{words.value.sendAgain}</Act>
                  )}
                </li>
              ))}
            </ul>
          </>
        ) : (
          <p class="quiet">{words.value.noDeliveries}</p>
        )
      }
    </Shown>
  );
}
