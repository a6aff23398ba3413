/** A server that lies: it sits between a client and the real server, and changes what the real one answers. */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";

// biome-ignore lint/suspicious/noExplicitAny: lies change bodies freely
type Body = any;
/** Answers what the client gets instead of `body`; undefined leaves it. */
export type Lie = (asked: { method: string; path: string; body: Body }, answer: Body) => Body | undefined;

export async function forgingServer(real: string) {
  const lies: Lie[] = [];
  const server = createServer(async (request, response) => {
    // It forges plain requests alone, and clients do without a stream.
    if (request.headers.upgrade !== undefined) {
      response.writeHead(404).end();
      return;
    }
    const sent = await bodyOf(request);
    const headers = Object.fromEntries(
      Object.entries(request.headers).filter(
        ([name]) => !["host", "connection", "content-length"].includes(name),
      ),
    ) as Record<string, string>;
    const answer = await fetch(`${real}${request.url}`, {
      method: request.method!,
      headers,
      ...(sent === "" ? {} : { body: sent }),
    });
    const text = await answer.text();
    const json = (answer.headers.get("content-type") ?? "").startsWith("application/json");
    const asked = {
      method: request.method!,
      path: request.url!,
      body: sent === "" ? undefined : JSON.parse(sent),
    };
    let body: Body = json ? JSON.parse(text) : text;
    let status = answer.status;
    for (const lie of lies) {
      const lied = lie(asked, body);
      if (lied !== undefined) [body, status] = [lied, status >= 400 ? 200 : status];
    }
    const kept = [...answer.headers].filter(([name]) => name.startsWith("svc-"));
    response.writeHead(status, { ...Object.fromEntries(kept), "content-type": "application/json" });
    response.end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    lies,
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
}
