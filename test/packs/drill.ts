/**
 * Drills a pack: calls each tool through `svc proxy` against an emulator of its service, rolls the run back with
 * `svc rollback`, and compares the emulator's own state with the one before, by requests that go past the proxy.
 */
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { createEmulator, type SeedConfig, type ServiceName } from "emulate";
import { isJsonObject, type JsonObject, type JsonValue } from "../../src/kernel/json/json.ts";
import { buildRequest, HttpRoutes } from "../../src/rules/http/routes.ts";
import { readManifests } from "../../src/rules/manifest/load.ts";
import { parseYaml } from "../../src/rules/yaml.ts";
import { ROOT } from "../support/files.ts";
import { selfSigned, startProxy, throughTunnel } from "../support/proxy.ts";

/** A request that goes to the emulator itself. */
export type Direct = (
  method: string,
  path: string,
  body?: JsonObject,
) => Promise<{ status: number; body: JsonValue }>;

export interface PackDrill {
  readonly pack: string;
  readonly service: ServiceName;
  readonly seed?: SeedConfig;
  /** Host in the manifests, and the path prefix of the emulator for it. */
  readonly hosts: Readonly<Record<string, string>>;
  /** Value of the Authorization header: a scheme and a token, or the scheme aws_sigv4 and `id:secret`. */
  readonly authorization: string;
  readonly form?: true;
  /** Members of an answer that change without a call. */
  readonly volatile: readonly string[];
  readonly tools: readonly ToolDrill[];
}

export interface ToolDrill {
  readonly tool: string;
  /** Prepares the state, and returns the call's arguments and the requests that show the state. */
  readonly prepare: (direct: Direct) => Promise<PreparedCall>;
  /** Paths of the state that the pack says stay changed. An exact undo has none. */
  readonly stays?: readonly RegExp[];
}

interface PreparedCall {
  readonly args: JsonObject;
  readonly look: Look[];
  /** Content of an opaque body. */
  readonly body?: string;
}

/** A read of the state: a GET of a path, or a POST with fields. */
export type Look = string | { readonly post: string; readonly body: JsonObject };

/** What became of one tool. `problem` is null if its call took effect and its undo restored what the pack promises. */
export interface DrilledTool {
  readonly tool: string;
  readonly effect: string;
  readonly problem: string | null;
}

const TLS = selfSigned(["localhost"]);
const SIGV4 = "aws_sigv4";

export async function drillPack(drill: PackDrill): Promise<DrilledTool[]> {
  const port = await freePort();
  const emulator = await createEmulator({
    service: drill.service,
    port,
    ...(drill.seed === undefined ? {} : { seed: drill.seed }),
  });
  const front = await tlsFront(emulator.url);
  try {
    return await drillAt(drill, emulator.url, front.host);
  } finally {
    front.server.closeAllConnections();
    front.server.close();
    await emulator.close();
  }
}

/** Passes requests on to a plain server. A credential is added over verified TLS only. */
async function tlsFront(to: string): Promise<{ server: Server; host: string }> {
  const server = createServer(TLS, (request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", async () => {
      const { host: _, connection: __, "content-length": ___, ...headers } = request.headers;
      const body = Buffer.concat(chunks);
      const answer = await fetch(`${to}${request.url}`, {
        method: request.method!,
        headers: headers as Record<string, string>,
        ...(body.length === 0 ? {} : { body }),
      });
      const bytes = Buffer.from(await answer.arrayBuffer());
      response.writeHead(answer.status, {
        "content-type": answer.headers.get("content-type") ?? "text/plain",
        "content-length": bytes.length,
        ...(answer.headers.has("etag") ? { etag: answer.headers.get("etag")! } : {}),
      });
      response.end(bytes);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, host: `localhost:${(server.address() as AddressInfo).port}` };
}

async function freePort(): Promise<number> {
  const { createServer: plain } = await import("node:net");
  const server = plain();
  await new Promise<void>((resolve) => server.listen(0, resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** The pack's manifests with the emulator's host instead of the service's. */
function manifestsAt(drill: PackDrill, host: string): string {
  const text = readFileSync(join(ROOT, "packs/services", `${drill.pack}.yaml`), "utf8");
  const entries = parseYaml(text, drill.pack).value as (JsonObject & {
    http: { host: string; path: string };
  })[];
  const moved = entries.map((entry) => {
    const { http } = entry;
    const prefix = drill.hosts[http.host];
    if (prefix === undefined) throw new Error(`the drill names no place for ${http.host}`);
    return { ...entry, http: { ...http, host, path: `${prefix}${http.path}` } };
  });
  return JSON.stringify(moved);
}

async function drillAt(drill: PackDrill, url: string, host: string): Promise<DrilledTool[]> {
  const manifests = manifestsAt(drill, host);
  const set = readManifests([{ file: "pack.yaml", text: manifests }]);
  const routes = new HttpRoutes(set);
  const [prefix, token] = drill.authorization.split(" ") as [string, string];
  const way =
    prefix === SIGV4
      ? "aws_sigv4: {region: us-east-1, service: s3}"
      : `header: {name: Authorization, prefix: "${prefix} "}`;
  const proxy = await startProxy({
    manifests,
    config: `credentials: [{name: service, hosts: ["${host}"], ${way}, from: {env: SERVICE_TOKEN}}]\nallow_hosts: [localhost]\n`,
    env: { NODE_EXTRA_CA_CERTS: TLS.file, SERVICE_TOKEN: token },
    args: ["--allow-host", "localhost"],
  });
  const direct = directTo(url, drill);
  const called: { drill: ToolDrill; look: Look[]; before: JsonValue; problem: string | null }[] = [];
  // Everything is prepared first, so that only the calls and their undos change the state between two looks.
  const prepared: ({ one: ToolDrill } & PreparedCall)[] = [];
  for (const one of drill.tools) prepared.push({ one, ...(await one.prepare(direct)) });
  for (const { one, args, look, ...content } of prepared) {
    const before = await stateOf(direct, look, drill.volatile);
    const request = buildRequest(routes.ofTool(one.tool)!, args);
    if ("problem" in request) throw new Error(`${one.tool}: ${request.problem}`);
    const answer = await throughTunnel(proxy, {
      host,
      method: request.method,
      path: request.target,
      headers: { ...request.headers, authorization: "Bearer placeholder" },
      ...(request.body === undefined ? {} : { body: Buffer.from(request.body).toString("latin1") }),
      ...content,
    });
    const after = await stateOf(direct, look, drill.volatile);
    called.push({ drill: one, look, before, problem: callProblem(answer, before, after) });
  }
  const report = await rolledBack(proxy);
  const drilled: DrilledTool[] = [];
  for (const [step, { drill: one, look, before, problem }] of called.entries()) {
    const now = await stateOf(direct, look, drill.volatile);
    const left = differences(before, now).filter(
      (path) => !(one.stays ?? []).some((stay) => stay.test(path)),
    );
    const undone = undoProblem(report, step) ?? (left.length === 0 ? null : `differs: ${left.join(", ")}`);
    const { effect } = set.active(one.tool)!;
    drilled.push({ tool: one.tool, effect, problem: problem ?? undone });
  }
  await proxy.stop();
  return drilled;
}

function directTo(url: string, { authorization, form }: PackDrill): Direct {
  return async (method, path, body) => {
    const type = form === true ? "application/x-www-form-urlencoded" : "application/json";
    const text =
      form === true ? new URLSearchParams(body as Record<string, string>).toString() : JSON.stringify(body);
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { authorization, ...(body === undefined ? {} : { "content-type": type }) },
      ...(body === undefined ? {} : { body: text }),
    });
    const content = await answer.text();
    let value: JsonValue = content;
    try {
      value = JSON.parse(content);
    } catch {
      // Text, as it is.
    }
    return { status: answer.status, body: value };
  };
}

async function stateOf(
  direct: Direct,
  look: readonly Look[],
  volatile: readonly string[],
): Promise<JsonValue> {
  const seen: JsonValue[] = [];
  for (const one of look) {
    const { status, body } =
      typeof one === "string" ? await direct("GET", one) : await direct("POST", one.post, one.body);
    // The text of a refusal names the request.
    seen.push({ status, body: status >= 400 ? null : without(body, new Set(volatile)) });
  }
  return seen;
}

function without(value: JsonValue, names: ReadonlySet<string>): JsonValue {
  if (Array.isArray(value)) {
    // A list of texts, such as members or topics, has no order.
    const kept = value.map((item) => without(item, names));
    return kept.every((item) => typeof item === "string") ? kept.sort() : kept;
  }
  if (!isJsonObject(value)) return value;
  const kept = Object.entries(value).filter(([name]) => !names.has(name));
  return Object.fromEntries(kept.map(([name, item]) => [name, without(item, names)]));
}

function callProblem(
  { status, headers, body }: { status: number; headers: Record<string, string>; body: string },
  before: JsonValue,
  after: JsonValue,
): string | null {
  if (status >= 400) return `the call answered ${status}: ${body.slice(0, 200)}`;
  const effect = headers["svc-effect"];
  if (effect !== undefined && effect !== "held") return `the effect check says ${effect}`;
  return differences(before, after).length === 0
    ? `the call changed nothing that was looked at: ${body.slice(0, 200)}`
    : null;
}

type Report = { compensated: number[]; failed: { step: number; error: string }[]; unrecoverable: number[] };

async function rolledBack(proxy: Awaited<ReturnType<typeof startProxy>>): Promise<Report> {
  const [{ run_id } = {}] = (await proxy.records()).filter(({ event }) => event === "intended");
  const { out, err } = await proxy.svc(
    "rollback",
    String(run_id),
    "--retries",
    "1",
    "--approve-compensations",
    "--json",
  );
  try {
    return JSON.parse(out) as Report;
  } catch {
    throw new Error(`the rollback printed no report: ${out} ${err}`);
  }
}

function undoProblem({ compensated, failed }: Report, step: number): string | null {
  if (compensated.includes(step)) return null;
  return failed.find((one) => one.step === step)?.error ?? "it was not undone";
}

/** Paths at which two values differ. */
function differences(a: JsonValue, b: JsonValue, at = ""): string[] {
  if (JSON.stringify(a) === JSON.stringify(b)) return [];
  if (Array.isArray(a) && Array.isArray(b) && a.length === b.length)
    return a.flatMap((item, i) => differences(item, b[i]!, `${at}[${i}]`));
  if (isJsonObject(a) && isJsonObject(b))
    return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((name) =>
      differences(a[name] ?? null, b[name] ?? null, `${at}.${name}`),
    );
  return [at];
}
