// The AI SDK at a council: objects, texts and a conversation, by each of its providers. Prints one
// JSON line for each.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, baseURL] = process.argv.slice(2);
const resolve = createRequire(`${folder}/package.json`).resolve;
const load = (name) => import(pathToFileURL(resolve(name)));
const { generateObject, generateText, streamText } = await load("ai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const { createOpenAI } = await load("@ai-sdk/openai");
const { z } = await load("zod");

const schema = z.object({ city: z.string(), degrees: z.number() });
const settings = { baseURL, apiKey: "none" };
const compatible = { ...settings, name: "witan", supportsStructuredOutputs: true };
const providers = {
  compatible: createOpenAICompatible(compatible)("witan"),
  chat: createOpenAI(settings).chat("witan"),
  responses: createOpenAI(settings)("witan"),
};
for (const [provider, model] of Object.entries(providers)) {
  const asked = { model, maxRetries: 0 };
  const { object } = await generateObject({ ...asked, schema, prompt: "How is it?" });
  const question = { role: "user", content: "How is it?" };
  const first = await generateText({ ...asked, messages: [question] });
  const messages = [question, ...first.response.messages, { role: "user", content: "Why?" }];
  const second = streamText({ ...asked, messages });
  let streamed = "";
  for await (const piece of second.textStream) streamed += piece;
  const finish = await second.finishReason;
  console.log(JSON.stringify({ provider, object, text: first.text, streamed, finish }));
}
