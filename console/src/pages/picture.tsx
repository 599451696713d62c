// A node among those that it is linked to, as a picture: each of them is a link.
import type { JSX } from "preact";
import type { Schemas } from "../api";
import { to } from "../router";
import { Said } from "../ui";
import { relationName, words } from "../words";

type Linked = Schemas["LinkedView"];

// More would stand on each other; the list below has them all.
const MOST = 10;

/** In per cent of the picture: on an oval, the first one at its side. */
const placeOf = (at: number, of: number): { x: number; y: number } => {
  const angle = (2 * Math.PI * at) / of;
  return { x: 50 + 37 * Math.cos(angle), y: 50 + 40 * Math.sin(angle) };
};

export function Picture({ name, id, of }: { name: string; id: string; of: Linked[] }): JSX.Element | null {
  const linked = of.filter((one) => one.target && one.relationship.standing === "known").slice(0, MOST);
  if (linked.length < 2) return null;
  const spots = linked.map((one, at) => ({ ...one, ...placeOf(at, linked.length) }));
  return (
    <figure class="picture" style={{ blockSize: `${Math.min(300, 60 + 32 * linked.length)}px` }}>
      <svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true">
        {spots.map(({ relationship, x, y }) => (
          <line key={relationship.id} x1="50" y1="50" x2={x} y2={y} />
        ))}
      </svg>
      <strong style={{ insetInlineStart: "50%", insetBlockStart: "50%" }}>
        <Said text={name} most={24} />
      </strong>
      {spots.map(({ relationship, source, target, x, y }) => {
        const inward = source.id !== id;
        const far = inward ? source : (target ?? source);
        const { label, type } = relationship;
        const said = <small>{label ? <Said text={label} most={24} /> : relationName(type)}</small>;
        return (
          <a key={relationship.id} href={to(["people", far.id])} style={{ insetInlineStart: `${x}%`, insetBlockStart: `${y}%` }}>
            {!inward && said} <Said text={far.name} most={24} /> {inward && said}
          </a>
        );
      })}
      <figcaption class="unseen">{words.value.picture}</figcaption>
    </figure>
  );
}
