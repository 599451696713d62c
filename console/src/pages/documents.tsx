// Documents: drop a file, see it being read, read its passages, delete it.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { answerOf, api, type Failure, type Schemas, sendForm } from "../api";
import { bytes, number } from "../format";
import { failureFrom, useEvery, useLoad } from "../load";
import { go, place, setQuery, to } from "../router";
import { mayWrite } from "../session";
import { ask, Degraded, Empty, Facts, Failed, FileChoice, Head, Note, Said, Shown, tell, When } from "../ui";
import { fill, language, valueName, words } from "../words";
import { More } from "./memories";

type Book = Schemas["BookView"];

const PAGE = 100;
const open = (status: string): boolean => status === "pending" || status === "processing";

const why = (book: { error: string | null; error_en: string | null; error_he: string | null }): string | null =>
  (language.value === "he" ? book.error_he : book.error_en) ?? book.error;

async function list(): Promise<Schemas["BooksAnswer"]> {
  const params = { query: { limit: PAGE } };
  const [read, failed] = await Promise.all([
    answerOf(api.GET("/api/memory/books", { params })),
    answerOf(api.GET("/api/memory/books", { params: { query: { limit: PAGE, failed: true } } })),
  ]);
  const known = new Set(read.books.map((book) => book.book_id));
  const others = failed.books.filter((book) => !known.has(book.book_id));
  return { ...read, books: [...others, ...read.books] };
}

export function Documents(): JSX.Element {
  const loaded = useLoad(list, []);
  const reading = !!loaded.data?.books.some((book) => open(book.status));
  useEvery(1000, reading, loaded.again);
  return (
    <>
      <Head title={words.value.documents} lead={words.value.documentsLead} />
      {mayWrite.value && <Drop done={loaded.again} />}
      <Shown of={loaded}>
        {(data) => (
          <>
            <Degraded of={data.degraded} />
            {data.books.length ? (
              <ul class="list">
                {data.books.map((book) => (
                  <Row key={book.book_id} book={book} />
                ))}
              </ul>
            ) : (
              <Empty text={words.value.noDocuments} />
            )}
          </>
        )}
      </Shown>
    </>
  );
}

function Row({ book }: { book: Book }): JSX.Element {
  return (
    <li>
      <div class="grow">
        <a class="text" href={to(["documents", book.book_id])}>
          <Said text={book.title} most={200} />
        </a>
        <div class="meta">
          {book.author && <Said text={book.author} most={80} />}
          <span class={`chip ${book.status === "failed" ? "bad" : ""}`}>{valueName(book.status)}</span>
          <When at={book.upload_timestamp} />
          {book.status === "completed" && (
            <span>
              {words.value.passages}: {number(book.processing_stats.total_chunks)}
            </span>
          )}
          {book.conversation_id && <span>{words.value.onlyIn}</span>}
        </div>
        <Progress book={book} />
      </div>
    </li>
  );
}

function Progress({
  book,
}: {
  book: Pick<Book, "status" | "processingStage" | "processing_stats"> & {
    error: string | null;
    error_en: string | null;
    error_he: string | null;
  };
}): JSX.Element | null {
  const failure = why(book);
  if (failure) {
    return (
      <Note kind="bad">
        <span dir="auto">{failure}</span>
      </Note>
    );
  }
  if (!open(book.status)) return null;
  const { total_chunks: total, chunks_processed: done } = book.processing_stats;
  return (
    <div class="row">
      <progress
        aria-label={words.value.progress}
        max={1}
        {...(total ? { value: done / total } : {})}
      />
      <span class="quiet">{valueName(book.processingStage)}</span>
    </div>
  );
}

function Drop({ done }: { done: () => void }): JSX.Element {
  const over = useSignal(false);
  const sending = useSignal("");
  const failure = useSignal<Failure | undefined>(undefined);
  const send = async (files: readonly File[]): Promise<void> => {
    failure.value = undefined;
    for (const file of files) {
      sending.value = file.name;
      const form = new FormData();
      form.set("file", file);
      try {
        await sendForm<Schemas["UploadAnswer"]>("/api/memory/books", form);
      } catch (error) {
        failure.value = failureFrom(error);
        break;
      }
    }
    sending.value = "";
    done();
  };
  return (
    <div
      class={`drop ${over.value ? "over" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        over.value = true;
      }}
      onDragLeave={() => (over.value = false)}
      onDrop={(event) => {
        event.preventDefault();
        over.value = false;
        void send([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      <p>{words.value.drop}</p>
      <FileChoice many label={words.value.chooseFile} choose={(files) => void send(files)} />
      {sending.value && (
        <p role="status">
          <Said text={fill(words.value.sending, sending.value)} />
        </p>
      )}
      {failure.value && <Failed failure={failure.value} />}
    </div>
  );
}

export function DocumentPage({ id }: { id: string }): JSX.Element {
  const loaded = useLoad(
    () =>
      answerOf(api.GET("/api/memory/books/{book_id}", { params: { path: { book_id: id } } })),
    [id],
  );
  const book = loaded.data?.book;
  useEvery(1000, !!book && open(book.status), loaded.again);
  const remove = (): void =>
    ask({
      title: words.value.removeDocument,
      body: words.value.removeDocumentBody,
      action: words.value.remove,
      danger: true,
      act: async () => {
        await answerOf(
          api.DELETE("/api/memory/books/{book_id}", { params: { path: { book_id: id } } }),
        );
        go(to(["documents"]));
        tell(fill(words.value.removed, number(1)));
      },
    });
  return (
    <>
      <a class="back" href={to(["documents"])}>
        {words.value.documents}
      </a>
      <Shown of={loaded}>
        {({ book: shown }) => (
          <>
            <Head title={<Said text={shown.title} most={200} />}>
              {mayWrite.value && (
                <button class="danger" onClick={remove}>
                  {words.value.remove}
                </button>
              )}
            </Head>
            <Progress book={shown} />
            <Facts
              of={[
                [words.value.state, valueName(shown.status)],
                [words.value.author, shown.author && <Said text={shown.author} />],
                [words.value.file, <Said text={shown.file_name} />],
                [words.value.size, <bdi>{bytes(shown.file_bytes)}</bdi>],
                [words.value.characters, number(shown.characters)],
                [words.value.language, shown.language],
                [words.value.created, <When at={shown.uploadTimestamp} />],
                [words.value.passages, number(shown.processing_stats.total_chunks)],
                [
                  words.value.noText,
                  shown.pages_without_text.length ? shown.pages_without_text.join(", ") : null,
                ],
              ]}
            />
            {shown.summary && (
              <>
                <h2>{words.value.summary}</h2>
                <p>
                  <Said text={shown.summary} />
                </p>
              </>
            )}
            <h2>{words.value.passages}</h2>
            {shown.status === "completed" && shown.processing_stats.total_chunks > 0 ? (
              <Passages id={id} />
            ) : (
              <p class="quiet">{words.value.noPassages}</p>
            )}
          </>
        )}
      </Shown>
    </>
  );
}

const NEAR = 20;

type Chunk = Omit<Schemas["ChunkView"], "pages"> & { pages: number[] | null };

async function chunks(id: string, around: number): Promise<Chunk[]> {
  const found = await answerOf(
    api.GET("/api/memory/books/{book_id}/chunks/{chunk_id}/surrounding", {
      params: { path: { book_id: id, chunk_id: String(around) }, query: { radius: NEAR } },
    }),
  );
  return found.chunks;
}

function Passages({ id }: { id: string }): JSX.Element {
  const more = useSignal<Chunk[]>([]);
  const first = useLoad(() => chunks(id, 0), [id]);
  return (
    <Shown of={first}>
      {(found) => {
        const shown = [...found, ...more.value];
        const next = shown[shown.length - 1]?.next ?? null;
        const at = place.value.query.get("passage");
        return (
          <>
            <ol class="list">
              {shown.map((chunk) => (
                <li key={chunk.chunk_index} class={at === String(chunk.chunk_index) ? "picked" : ""}>
                  <button
                    class="place plain"
                    aria-label={`${words.value.passages} ${number(chunk.chunk_index + 1)}`}
                    onClick={() => setQuery({ passage: String(chunk.chunk_index) })}
                  >
                    {number(chunk.chunk_index + 1)}
                  </button>
                  <div class="grow">
                    <div class="meta">
                      {chunk.section && <Said text={chunk.section} most={120} />}
                      {chunk.pages && <span>{fill(words.value.pagesOf, chunk.pages.join("–"))}</span>}
                      <a class="id" href={to(["memories", chunk.memory_id])}>
                        {words.value.memory}
                      </a>
                    </div>
                    <p class="words">
                      <Said text={chunk.text} />
                    </p>
                  </div>
                </li>
              ))}
            </ol>
            {next !== null && (
              <More
                key={next}
                next={async () => {
                  const found = await chunks(id, next + NEAR).catch(() => chunks(id, next));
                  more.value = [
                    ...more.value,
                    ...found.filter((chunk) => chunk.chunk_index >= next),
                  ];
                }}
              />
            )}
          </>
        );
      }}
    </Shown>
  );
}
