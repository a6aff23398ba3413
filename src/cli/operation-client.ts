/**
 * Client that performs operations for commands: in this process on local data, or on a server. Commands cannot tell the
 * two cases from each other.
 */
import { resolve } from "node:path";
import type { z } from "zod";
import { readTextFileSync } from "../config/files.ts";
import { type CallerPrincipal, localId } from "../govern/roles.ts";
import type { RuntimeEnv } from "../kernel/env.ts";
import { invalidError, SvcError } from "../kernel/errors.ts";
import type { ServiceApp } from "../operations/app.ts";
import type { DocumentContent, ServiceOperation } from "../operations/pipeline/operation.ts";
import type { UndoToolOptions } from "../rollback/undo/execute.ts";
import { assertPrivateFile, storedKey } from "./credential-store.ts";
import type { CommandIo } from "./io.ts";

export interface OperationClient {
  perform<I extends z.ZodType, O>(op: ServiceOperation<I, O>, input: z.input<I>): Promise<O>;
  /** The app for local data, or null if a server answers. */
  readonly local: ServiceApp | null;
  readonly clock: RuntimeEnv;
  close(): Promise<void>;
}

export interface ServerAddress {
  url: string;
  key: string;
}

/** Yields a document in chunks, regardless of how it was returned. */
export async function* documentBytes(answer: object): AsyncGenerator<string | Uint8Array> {
  const { body } = answer as DocumentContent;
  if (typeof body === "string" || body instanceof Uint8Array) yield body;
  else yield* body;
}

export async function* documentChunks(answer: object): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const part of documentBytes(answer))
    yield typeof part === "string" ? part : decoder.decode(part, { stream: true });
}

/**
 * Client for local data. `as` is the actor to record; a user with access to the data can choose it. `undo` is how the
 * command undoes calls.
 */
export function localClient(app: ServiceApp, as?: string, undo?: UndoToolOptions): OperationClient {
  const caller = {
    app,
    principal: localPrincipal(as),
    signal: new AbortController().signal,
    at_the_data: true,
    undo,
  };
  return {
    perform: async (op, input) =>
      (await import("../operations/pipeline/dispatch.ts")).dispatchOperation(op, caller, input),
    local: app,
    clock: app.core.env,
    close: () => app.close(),
  };
}

export async function remoteClient(server: ServerAddress, clock: RuntimeEnv): Promise<OperationClient> {
  const { createOperationsClient } = await import("../http/api/operations-client.ts");
  const client = createOperationsClient(server);
  return {
    perform: (op, input) => client.perform(op, input).catch(withRemedy),
    local: null,
    clock,
    close: client.close,
  };
}

/** Fixes to add to a server's error messages, whose text is fixed. */
const REMEDIES: ReadonlyMap<string, string> = new Map([
  [
    "signed bundles are not enabled on this server",
    "create a key there with svc keygen and set signing_key, or run this on the server's machine with -d <dir>",
  ],
  ["capture is off", "set capture.enabled in its configuration"],
  ["no retention settings", "add a retention section to its policy, such as retention: {default_days: 365}"],
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

/** Returns the server that the options or the environment name, or null for local data. */
export function serverUrl({ server, local }: Omit<Asked, "keyFile">, io: CommandIo): string | null {
  if (server !== undefined && local)
    throw invalidError("--server: cannot be combined with --data, --store, --manifests or --config");
  const url = server ?? (local ? undefined : io.env["SVC_SERVER"] || undefined);
  if (url !== undefined) requireServerUrl(url, "--server");
  return url ?? null;
}

export function requireServerUrl(url: string, named: string): void {
  if (!/^https?:\/\/[^/]/.test(url))
    throw invalidError(`${named}: must be a URL such as https://svc.example.com`);
}

/** Like `serverUrl`, with the server's key. */
export function serverAddress({ keyFile, ...asked }: Asked, io: CommandIo): ServerAddress | null {
  const url = serverUrl(asked, io);
  if (url === null) return null;
  const key =
    keyFile === undefined
      ? io.env["SVC_TOKEN"]?.trim() || storedKey(io.env, url)
      : readKeyFile(resolve(io.cwd, keyFile));
  if (!key)
    throw invalidError(
      "no key for the server: pass --key-file <file>, set SVC_TOKEN, or store a key with svc login",
    );
  return { url, key };
}

function readKeyFile(path: string): string {
  const key = readTextFileSync(path).trim();
  assertPrivateFile(path);
  if (!/^\S+$/.test(key))
    throw invalidError(`${path}: does not contain a key: expected one line without spaces`);
  return key;
}

/** Principal for local commands. It has every role, because its user can already access the data. */
export function localPrincipal(name = "cli"): CallerPrincipal {
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
