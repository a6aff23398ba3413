/**
 * The way from a command to an operation: performed in this process on the data that the options name, or by a
 * server that they name. A command cannot tell the two apart.
 */
import { resolve } from "node:path";
import type { z } from "zod";
import type { App } from "../app/app.ts";
import type { Content, Operation } from "../app/door/operation.ts";
import { readTextFileSync } from "../config/files.ts";
import type { Env } from "../kernel/env.ts";
import { invalid, SvcError } from "../kernel/errors.ts";
import { localId, type Principal } from "../model/roles.ts";
import type { UndoMeans } from "../rollback/execute.ts";
import type { Io } from "./io.ts";
import { assertOwn, keptKey } from "./kept-keys.ts";

export interface Door {
  perform<I extends z.ZodType, O>(op: Operation<I, O>, input: z.input<I>): Promise<O>;
  /** The service behind the door where its data are here; null where a server answers. */
  readonly local: App | null;
  readonly clock: Env;
  close(): Promise<void>;
}

interface ServerAddress {
  url: string;
  key: string;
}

/** A document piece by piece, however it came. */
export async function* bytesOf(answer: object): AsyncGenerator<string | Uint8Array> {
  const { body } = answer as Content;
  if (typeof body === "string" || body instanceof Uint8Array) yield body;
  else yield* body;
}

export async function* partsOf(answer: object): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const part of bytesOf(answer))
    yield typeof part === "string" ? part : decoder.decode(part, { stream: true });
}

/** `as`: who acts, on the ledger; whoever holds the data may say so. `undo`: what the command undoes with. */
export function localDoor(app: App, as?: string, undo?: UndoMeans): Door {
  const caller = {
    app,
    principal: localPrincipal(as),
    signal: new AbortController().signal,
    at_the_data: true,
    undo,
  };
  return {
    perform: async (op, input) => (await import("../app/door/perform.ts")).perform(op, caller, input),
    local: app,
    clock: app.core.env,
    close: () => app.close(),
  };
}

export async function remoteDoor(server: ServerAddress, clock: Env): Promise<Door> {
  const { createClient } = await import("../api/client.ts");
  const client = createClient(server);
  return {
    perform: (op, input) => client.perform(op, input).catch(withRemedy),
    local: null,
    clock,
    close: client.close,
  };
}

/** A server says in fixed words what it has not enabled; whoever sits at a command line is told what to do about it. */
const REMEDIES: ReadonlyMap<string, string> = new Map([
  [
    "signed bundles are not enabled on this server",
    "make a key there with svc keygen and name it under signing_key, or run this on its machine with -d <dir>",
  ],
  ["capture is off", "set capture.enabled in its configuration"],
  ["no retention settings", "give its policy a section retention, such as retention: {default_days: 365}"],
]);

function withRemedy(error: unknown): never {
  const remedy = error instanceof SvcError ? REMEDIES.get(error.message) : undefined;
  if (remedy === undefined) throw error;
  const { code, cause_code, message, extra } = error as SvcError;
  throw new SvcError(code, `${message}: ${remedy}`, { cause: error, cause_code, ...(extra && { extra }) });
}

interface Asked {
  server: string | undefined;
  keyFile: string | undefined;
  /** Whether an option names data on this machine. */
  local: boolean;
}

/** The server that the options or the environment name; null where the work is on local data. */
export function serverUrl({ server, local }: Omit<Asked, "keyFile">, io: Io): string | null {
  if (server !== undefined && local)
    throw invalid("--server: its data are there; leave out --data, --store, --manifests and --config");
  const url = server ?? (local ? undefined : io.env["SVC_SERVER"] || undefined);
  if (url !== undefined) requireServerUrl(url, "--server");
  return url ?? null;
}

export function requireServerUrl(url: string, named: string): void {
  if (!/^https?:\/\/[^/]/.test(url)) throw invalid(`${named}: must be a URL such as https://svc.example.com`);
}

/** The same with the key for it. */
export function serverAddress({ keyFile, ...asked }: Asked, io: Io): ServerAddress | null {
  const url = serverUrl(asked, io);
  if (url === null) return null;
  const key =
    keyFile === undefined
      ? io.env["SVC_TOKEN"]?.trim() || keptKey(io.env, url)
      : readKeyFile(resolve(io.cwd, keyFile));
  if (!key) throw invalid("which key? give --key-file <file>, set SVC_TOKEN, or keep one with svc login");
  return { url, key };
}

function readKeyFile(path: string): string {
  const key = readTextFileSync(path).trim();
  assertOwn(path);
  if (!/^\S+$/.test(key)) throw invalid(`${path}: holds no key: one line without spaces is expected`);
  return key;
}

/** Whoever sits at the command line holds the data already, and so acts with every role. */
export function localPrincipal(name = "cli"): Principal {
  return {
    id: localId(name),
    name,
    roles: ["admin"],
    groups: [],
    tenant: null,
    max_permissions: ["*"],
    allow_observe: true,
  };
}
