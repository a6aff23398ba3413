/** Git's smart HTTP protocol as calls of `git.fetch` and `git.push`: what a request reads or changes. */
import { gunzipSync } from "node:zlib";
import type { JsonObject } from "../kernel/json/json.ts";
import { type HttpOrigin, hostText } from "../rules/http/routes.ts";
import type { HttpTarget } from "../rules/http/target.ts";
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

/** The call that the request makes. `head` is the beginning of its body. */
export function gitCall(
  { service, is_discovery, repository }: GitRequest,
  head: Buffer,
  coding: string | undefined,
): { tool: string; args: JsonObject } {
  if (is_discovery) return { tool: "git.fetch", args: { repository, refs: [] } };
  const lines = packetLines(coding === undefined || coding === "identity" ? head : unzipped(head, coding));
  if (service === "git-upload-pack")
    return { tool: "git.fetch", args: { repository, refs: readRefs(lines) } };
  return { tool: "git.push", args: { repository, ...pushedRefs(lines) } };
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
function packetLines(bytes: Buffer): string[] {
  const lines: string[] = [];
  for (let at = 0; ; ) {
    const text = bytes.toString("latin1", at, at + 4);
    if (!/^[0-9a-f]{4}$/i.test(text))
      throw refusal("the git request is not understood: a line has no length");
    const length = Number.parseInt(text, 16);
    if (length === 0) return lines;
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

/** Names the refs. Whether an update drops commits cannot be seen in a push, so `force` is unknown for one. */
function pushedRefs(lines: readonly string[]): JsonObject {
  const refs: string[] = [];
  // An approval holds for these commits alone.
  const commits: string[] = [];
  let isDelete = false;
  let isUpdate = false;
  for (const line of lines) {
    if (/^shallow [0-9a-f]+$/.test(line)) continue;
    const match = /^([0-9a-f]{40}|[0-9a-f]{64}) ([0-9a-f]{40}|[0-9a-f]{64}) ([^\0]+)(?:\0.*)?$/s.exec(line);
    if (match === null) throw refusal("this push is not understood; signed pushes are not supported");
    const [, from = "", to = "", ref = ""] = match;
    refs.push(ref);
    commits.push(to);
    if (ZERO_ID.test(to)) isDelete = true;
    else if (!ZERO_ID.test(from)) isUpdate = true;
  }
  if (refs.length === 0) throw refusal("this push is not understood: it names no ref");
  return { refs, commits, delete: isDelete, force: isUpdate ? "unknown" : false };
}
