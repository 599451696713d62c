// What changed between two texts, by words.

export interface Piece {
  kind: "same" | "gone" | "new";
  text: string;
}

// Above so many words each the table would be large: the whole texts are shown.
const MOST_WORDS = 1_500;

export function differences(before: string, after: string): Piece[] {
  const a = before.match(/\s+|\S+/g) ?? [];
  const b = after.match(/\s+|\S+/g) ?? [];
  if (a.length > MOST_WORDS || b.length > MOST_WORDS) {
    return [
      { kind: "gone", text: before },
      { kind: "new", text: after },
    ];
  }
  const width = b.length + 1;
  const common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] =
        a[i] === b[j]
          ? (common[(i + 1) * width + j + 1] ?? 0) + 1
          : Math.max(common[(i + 1) * width + j] ?? 0, common[i * width + j + 1] ?? 0);
    }
  }
  const pieces: Piece[] = [];
  const add = (kind: Piece["kind"], text: string): void => {
    const last = pieces[pieces.length - 1];
    if (last?.kind === kind) last.text += text;
    else pieces.push({ kind, text });
  };
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      add("same", a[i] ?? "");
      i += 1;
      j += 1;
    } else if (
      j >= b.length ||
      (i < a.length && (common[(i + 1) * width + j] ?? 0) >= (common[i * width + j + 1] ?? 0))
    ) {
      add("gone", a[i] ?? "");
      i += 1;
    } else {
      add("new", b[j] ?? "");
      j += 1;
    }
  }
  return pieces;
}
