/**
 * A chat service as approvers have it on their phone: it takes messages at an incoming webhook, shows them with their
 * buttons, tells the app of every tap in a request that it signs (v0, HMAC-SHA-256 over time and body), and only
 * then opens a button's address.
 */
import { createHmac } from "node:crypto";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { safeHtml } from "../../../src/console/html.ts";
import { sha256Hex } from "../../../src/kernel/hash.ts";

interface Button {
  text: { text: string };
  action_id: string;
  value?: string;
  url?: string;
}
export interface ChatMessage {
  text: string;
  blocks: { type: string; text?: { text: string }; fields?: { text: string }[]; elements?: Button[] }[];
}

interface App {
  /** The request URL of its interactivity. */
  actions: string;
  signing_secret: string;
  user: string;
}

export async function standInChat(app: App) {
  const messages: ChatMessage[] = [];
  /** What the app answered to each tap. */
  const answers: { action: string; status: number; text: string }[] = [];

  async function tell({ action_id, value = "" }: Button): Promise<void> {
    const payload = {
      type: "block_actions",
      user: { id: app.user, username: "ann", team_id: "T1" },
      api_app_id: "A1",
      trigger_id: sha256Hex(`${answers.length}`),
      actions: [{ type: "button", action_id, block_id: "svc_approval", value }],
    };
    const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
    const at = String(Math.floor(Date.now() / 1_000));
    const mac = createHmac("sha256", app.signing_secret).update(`v0:${at}:${body}`).digest("hex");
    const answer = await fetch(app.actions, {
      method: "POST",
      body,
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        "x-slack-request-timestamp": at,
        "x-slack-signature": `v0=${mac}`,
      },
    });
    answers.push({ action: action_id, status: answer.status, text: await answer.text() });
  }

  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url!, "http://chat");
    if (pathname === "/hook") {
      messages.push(JSON.parse(await bodyOf(request)) as ChatMessage);
      return void response.end("ok");
    }
    if (pathname !== "/tap")
      return void response.setHeader("content-type", "text/html").end(page(messages).toString());
    const tapped = buttonsOf(messages[Number(searchParams.get("message"))]!)[
      Number(searchParams.get("button"))
    ]!;
    await tell(tapped);
    return void response.writeHead(302, { location: tapped.url ?? "/" }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    /** Another site than the console's, as a chat is. */
    url: `http://localhost:${port}`,
    messages,
    answers,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

export const buttonsOf = ({ blocks }: ChatMessage): Button[] =>
  blocks.flatMap(({ type, elements }) => (type === "actions" ? (elements ?? []) : []));

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}

const page = (messages: readonly ChatMessage[]) => safeHtml`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>chat</title></head>
<body>${messages.map(
  (message, i) =>
    safeHtml`<article>${message.blocks.map(
      ({ text, fields = [] }) =>
        safeHtml`<p>${text?.text ?? ""}</p>${fields.map((field) => safeHtml`<p>${field.text}</p>`)}`,
    )}${buttonsOf(message).map(
      ({ text }, n) => safeHtml` <a href="/tap?message=${i}&button=${n}">${text.text}</a>`,
    )}</article>`,
)}</body></html>`;
