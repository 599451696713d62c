// A chat through the service with OpenAI's own client: whole, streamed, and left in the middle.
import OpenAI from "openai";

const client = new OpenAI({
  baseURL: `${process.argv[2]}/v1`,
  apiKey: "none",
  maxRetries: 0,
  defaultHeaders: { "X-User-Id": "real-js" },
});
const asking = (content, more) => ({
  model: "",
  messages: [{ role: "user", content }],
  max_tokens: 24,
  ...more,
});

const whole = await client.chat.completions.create(asking("Which sea is near Haifa?"));
let streamed = "";
let finish = null;
const stream = await client.chat.completions.create(asking("איפה דנה גרה?", { stream: true }));
for await (const chunk of stream) {
  streamed += chunk.choices[0]?.delta?.content ?? "";
  finish = chunk.choices[0]?.finish_reason ?? finish;
}
let taken = 0;
const left = await client.chat.completions.create(
  asking("Who left in the middle?", { stream: true, max_tokens: 400 }),
);
for await (const chunk of left) {
  taken += 1;
  if (taken === 3) break;
}
console.log(
  JSON.stringify({
    whole: whole.choices[0].message.content,
    tokens: whole.usage.total_tokens,
    streamed,
    finish,
    taken,
  }),
);
