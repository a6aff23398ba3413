/**
 * How test workers share one PostgreSQL: the main process listens on a unix socket and starts the
 * server when the first worker asks, so a run whose tests need no database does not pay for one.
 */
import { once } from "node:events";
import { connect, createServer } from "node:net";

const ENV = "SVC_TEST_PG_BROKER";

interface Answer {
  url?: string;
  error?: string;
}

export interface Broker {
  close(): Promise<void>;
}

/** Serves the URL that `start` gives to every worker that asks; `start` runs once, at the first question. */
export async function serveBroker(path: string, start: () => Promise<string>): Promise<Broker> {
  let answer: Promise<Answer> | undefined;
  const server = createServer((socket) => {
    socket.on("error", () => {});
    answer ??= start().then(
      (url) => ({ url }),
      (error: unknown) => ({ error: error instanceof Error ? error.message : String(error) }),
    );
    void answer.then((value) => socket.end(JSON.stringify(value)));
  });
  server.listen(path);
  await once(server, "listening");
  server.unref();
  process.env[ENV] = path;
  return {
    close: async () => {
      delete process.env[ENV];
      server.close();
      await answer;
    },
  };
}

export async function askBroker(): Promise<string> {
  const path = process.env[ENV];
  if (path === undefined) {
    throw new Error("No test database: run the tests through vitest, whose global setup offers one.");
  }
  const socket = connect(path);
  let text = "";
  socket.setEncoding("utf8").on("data", (chunk) => {
    text += chunk;
  });
  await once(socket, "close");
  const { url, error } = JSON.parse(text) as Answer;
  if (url === undefined) throw new Error(error ?? "the test database did not start");
  return url;
}
