/**
 * How test workers share objects that are made once for the whole run: the main process listens on a unix socket and
 * makes one when the first worker asks for it, so a run whose tests do not need it does not pay for it.
 */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";

const ENV = "SVC_TEST_BROKER";

interface Answer {
  value?: string;
  error?: string;
}

export interface Broker {
  close(): Promise<void>;
}

/** Serves what `make` gives for a name to every worker that asks; `make` runs once for each name. */
export async function serveBroker(path: string, make: (name: string) => Promise<string>): Promise<Broker> {
  const made = new Map<string, Promise<Answer>>();
  const answerFor = (name: string): Promise<Answer> => {
    let answer = made.get(name);
    if (answer === undefined) {
      answer = make(name).then(
        (value) => ({ value }),
        (error: unknown) => ({ error: error instanceof Error ? error.message : String(error) }),
      );
      made.set(name, answer);
    }
    return answer;
  };
  const server = createServer((socket) => {
    socket.on("error", () => {});
    createInterface(socket).once("line", async (name) => {
      socket.end(JSON.stringify(await answerFor(name)));
    });
  });
  server.listen(path);
  await once(server, "listening");
  server.unref();
  process.env[ENV] = path;
  return {
    close: async () => {
      delete process.env[ENV];
      server.close();
      await Promise.all(made.values());
    },
  };
}

/** Whether there is somebody to ask: not where a helper of the tests is used outside of vitest. */
export function hasBroker(): boolean {
  return process.env[ENV] !== undefined;
}

export async function askBroker(name: string): Promise<string> {
  const path = process.env[ENV];
  if (path === undefined) {
    throw new Error(`No ${name} to share: run the tests through vitest, whose global setup offers it.`);
  }
  const socket = connect(path);
  socket.write(`${name}\n`);
  const { value, error } = JSON.parse(await textOf(socket)) as Answer;
  if (value === undefined) throw new Error(error ?? `${name} could not be had`);
  return value;
}

async function textOf(socket: Socket): Promise<string> {
  let text = "";
  for await (const chunk of socket.setEncoding("utf8")) text += chunk;
  return text;
}
