/** Calls of a tool, as many at once as there are sessions: over Streamable HTTP, or directly into the pipe. */
import { spawn } from "node:child_process";
import { Agent, request } from "node:http";
import { createInterface } from "node:readline";

export interface Contestant {
  /** One call by one of the sessions; rejects unless the answer is the right one. */
  call(session: number): Promise<void>;
  stop(): void;
}

/** Calls a second with all sessions busy. */
export async function throughput({ call }: Contestant, sessions: number, seconds: number): Promise<number> {
  const end = performance.now() + seconds * 1_000;
  let done = 0;
  const busy = async (session: number) => {
    while (performance.now() < end) {
      await call(session);
      done++;
    }
  };
  const start = performance.now();
  await Promise.all(Array.from({ length: sessions }, (_, session) => busy(session)));
  return (done * 1_000) / (performance.now() - start);
}

/** Milliseconds of one call after the other: the median. */
export async function latency({ call }: Contestant, seconds: number): Promise<number> {
  const times: number[] = [];
  const end = performance.now() + seconds * 1_000;
  while (performance.now() < end) {
    const start = performance.now();
    await call(0);
    times.push(performance.now() - start);
  }
  times.sort((a, b) => a - b);
  return times[Math.floor(times.length / 2)]!;
}

export async function overHttp(
  url: string,
  sessions: number,
  key: string | null,
  tool = "echo",
): Promise<Contestant> {
  const agent = new Agent({ keepAlive: true, maxSockets: sessions });
  const { hostname, port, pathname } = new URL(url);
  const post = (body: object, headers: Record<string, string>) =>
    new Promise<{ status: number; text: string; session: string | undefined }>((resolve, reject) => {
      const text = JSON.stringify(body);
      const sent = request(
        {
          agent,
          hostname,
          port,
          path: pathname,
          method: "POST",
          headers: {
            "content-type": "application/json",
            "content-length": Buffer.byteLength(text),
            accept: "application/json, text/event-stream",
            ...(key === null ? {} : { authorization: `Bearer ${key}` }),
            ...headers,
          },
        },
        (response) => {
          let got = "";
          response.setEncoding("utf8").on("data", (chunk: string) => {
            got += chunk;
          });
          response.on("end", () =>
            resolve({
              status: response.statusCode!,
              text: got,
              session: response.headers["mcp-session-id"] as string | undefined,
            }),
          );
        },
      );
      sent.on("error", reject);
      sent.end(text);
    });
  const version = "2025-06-18";
  const opened = await Promise.all(
    Array.from({ length: sessions }, async () => {
      const params = {
        protocolVersion: version,
        capabilities: {},
        clientInfo: { name: "bench", version: "1" },
      };
      const { session, text } = await post({ jsonrpc: "2.0", id: 0, method: "initialize", params }, {});
      if (session === undefined) throw new Error(`no session: ${text.slice(0, 200)}`);
      const headers = { "mcp-session-id": session, "mcp-protocol-version": version };
      await post({ jsonrpc: "2.0", method: "notifications/initialized" }, headers);
      return headers;
    }),
  );
  let n = 0;
  return {
    async call(session) {
      const mark = `${session}-${++n}`;
      const params = { name: tool, arguments: { mark } };
      const { status, text } = await post(
        { jsonrpc: "2.0", id: n, method: "tools/call", params },
        opened[session]!,
      );
      if (status !== 200 || !text.includes(mark))
        throw new Error(`wrong answer (${status}): ${text.slice(0, 300)}`);
    },
    stop: () => agent.destroy(),
  };
}

/** The cost for a client that starts the tool server itself, or the program in front of it. */
export async function intoPipe(command: string, args: string[]): Promise<Contestant> {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "ignore"] });
  const waiting = new Map<number, (line: string) => void>();
  createInterface({ input: child.stdout }).on("line", (line) => {
    const { id } = JSON.parse(line) as { id: number };
    waiting.get(id)?.(line);
    waiting.delete(id);
  });
  let n = 0;
  const ask = (method: string, params: object) =>
    new Promise<string>((resolve) => {
      const id = ++n;
      waiting.set(id, resolve);
      child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    });
  await ask("initialize", {
    protocolVersion: "2025-06-18",
    capabilities: {},
    clientInfo: { name: "bench", version: "1" },
  });
  child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  return {
    async call(session) {
      const mark = `${session}-${n}`;
      if (!(await ask("tools/call", { name: "echo", arguments: { mark } })).includes(mark))
        throw new Error("wrong answer");
    },
    stop: () => child.kill(),
  };
}
