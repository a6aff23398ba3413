/** Git's smart HTTP protocol as calls of `git.fetch` and `git.push`: what a request reads or changes. */
import { gunzipSync } from "node:zlib";
import type { JsonObject } from "../kernel/json/json.ts";
import { type HttpOrigin, hostText } from "../rules/http/routes.ts";
import type { HttpTarget } from "../rules/http/target.ts";
import { forcedPush } from "./git-pack.ts";
import { ProxyRefusal } from "./wire.ts";

const SERVICES = ["git-upload-pack", "git-receive-pack"] as const;
type GitService = (typeof SERVICES)[number];

/** A request of the protocol, before its body is read. */
export interface GitRequest {
  readonly service: GitService;
  /** Whether the request asks for the list of refs alone. */
  readonly is_discovery: boolean;
  readonly repository: string;
}

const MAX_REQUEST_BYTES = 16_777_216;
const ZERO_ID = /^0+$/;

/** Undefined for a request that is not of the protocol. */
export function gitRequest(origin: HttpOrigin, method: string, { segments, query }: HttpTarget) {
  const last = segments.at(-1);
  const service = SERVICES.find((name) => name === (last === "refs" ? query.get("service") : last));
  const is_discovery = last === "refs";
  if (is_discovery && (segments.at(-2) !== "info" || method !== "GET")) return undefined;
  if (service === undefined || (!is_discovery && method !== "POST")) return undefined;
  const path = segments.slice(0, is_discovery ? -2 : -1).join("/");
  const request: GitRequest = {
    service,
    is_discovery,
    repository: `${hostText(origin)}/${path.replace(/\.git$/, "")}`,
  };
  return request;
}

/** Whether the path is one of git's that is not understood: files of a repository, or large files. */
export const isOtherGit = ({ segments }: HttpTarget): boolean =>
  /(?:^|\/)(?:info\/refs|info\/lfs(?:\/.*)?|objects\/(?:info|pack|[0-9a-f]{2})\/.+)$/.test(
    segments.join("/"),
  );

/** The call that the request makes. `head` is the beginning of its body, `content` all of it if it is short. */
export function gitCall(
  { service, is_discovery, repository }: GitRequest,
  { head, content }: { head: Buffer; content: Buffer | undefined },
  coding: string | undefined,
): { tool: string; args: JsonObject } {
  if (is_discovery) return { tool: "git.fetch", args: { repository, refs: [] } };
  const isPlain = coding === undefined || coding === "identity";
  const bytes = isPlain ? head : unzipped(head, coding);
  const { lines, end } = packetLines(bytes);
  if (service === "git-upload-pack")
    return { tool: "git.fetch", args: { repository, refs: readRefs(lines) } };
  const pack = isPlain && content === undefined ? undefined : bytes.subarray(end);
  return { tool: "git.push", args: { repository, ...pushedRefs(lines, pack) } };
}

const refusal = (text: string) =>
  new ProxyRefusal("forbidden", text, { headers: { "svc-decision": "block" } });

function unzipped(head: Buffer, coding: string): Buffer {
  if (coding !== "gzip" && coding !== "x-gzip")
    throw refusal("this content coding of a git request is not understood");
  try {
    return gunzipSync(head, { maxOutputLength: MAX_REQUEST_BYTES });
  } catch {
    throw refusal("the git request cannot be decompressed, or is too long to read");
  }
}

/** Lines up to the first flush. Throws for anything that is not of the protocol. */
function packetLines(bytes: Buffer): { lines: string[]; end: number } {
  const lines: string[] = [];
  for (let at = 0; ; ) {
    const text = bytes.toString("latin1", at, at + 4);
    if (!/^[0-9a-f]{4}$/i.test(text))
      throw refusal("the git request is not understood: a line has no length");
    const length = Number.parseInt(text, 16);
    if (length === 0) return { lines, end: at + 4 };
    if (length <= 4) {
      at += 4;
      continue;
    }
    if (at + length > bytes.length) throw refusal("the git request is not understood: a line is cut off");
    lines.push(bytes.toString("utf8", at + 4, at + length).replace(/\n$/, ""));
    at += length;
  }
}

/** Prefixes of a list, or the ids and names that a fetch wants. */
function readRefs(lines: readonly string[]): string[] {
  const named = lines.flatMap((line) => /^(?:ref-prefix|want-ref|want) (\S+)/.exec(line)?.[1] ?? []);
  return [...new Set(named)];
}

/** Names the refs, and whether commits are lost, as far as the pack shows it. */
function pushedRefs(lines: readonly string[], pack: Buffer | undefined): JsonObject {
  const updates: { from: string; to: string; ref: string }[] = [];
  for (const line of lines) {
    if (/^shallow [0-9a-f]+$/.test(line)) continue;
    const match = /^([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) ([^\0]+)(?:\0.*)?$/s.exec(line);
    if (match === null) throw refusal("this push is not understood; signed pushes are not supported");
    const [, from = "", to = "", ref = ""] = match;
    updates.push({ from, to, ref });
  }
  if (updates.length === 0) throw refusal("this push is not understood: it names no ref");
  return {
    refs: updates.map(({ ref }) => ref),
    // An approval holds for these commits alone.
    commits: updates.map(({ to }) => to),
    delete: updates.some(({ to }) => ZERO_ID.test(to)),
    force: forcedPush(updates, pack),
  };
}

/** How the server reports a push, within an answer of any status. */
export interface PushReport {
  /** Refs that the server changed. */
  readonly changed: string[];
  /** Refs that it refused, with its reasons. */
  readonly refused: string[];
}

/** Null for an answer without a report, whose effect is not known. */
export function readPushReport(body: Buffer): PushReport | null {
  try {
    const outer = packets(body);
    const isBanded = outer.some((one) => one[0] === 1);
    const lines = isBanded
      ? packets(Buffer.concat(outer.flatMap((one) => (one[0] === 1 ? [one.subarray(1)] : []))))
      : outer;
    const texts = lines.map((line) => line.toString("utf8").replace(/\n$/, ""));
    const unpacked = texts.find((text) => text.startsWith("unpack "));
    if (unpacked === undefined) return null;
    const refused = texts.filter((text) => text.startsWith("ng ")).map((text) => text.slice(3));
    return {
      changed: texts.filter((text) => text.startsWith("ok ")).map((text) => text.slice(3)),
      refused: unpacked === "unpack ok" ? refused : [unpacked, ...refused],
    };
  } catch {
    return null;
  }
}

/** Contents of all lines; flushes are left out. */
function packets(bytes: Buffer): Buffer[] {
  const found: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = Number.parseInt(bytes.toString("latin1", at, at + 4), 16);
    if (!(length >= 0) || at + length > bytes.length) throw new Error("not a packet");
    if (length > 4) found.push(bytes.subarray(at + 4, at + length));
    at += Math.max(length, 4);
  }
  return found;
}
