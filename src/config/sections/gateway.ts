/** Gateway settings: the identity it acts under and its tool servers. */
import * as z from "zod";
import { RESERVED_NAMES } from "../../govern/roles.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { isLoopbackHost } from "../loopback.ts";
import { maskNamed, maskValues } from "../mask.ts";
import {
  choiceRow,
  durationRow,
  durationSchema,
  locatePath,
  pathRow,
  pathSchema,
  readList,
  settingRow,
  settingSection,
  switchRow,
  textRow,
  textSchema,
  urlSchema,
} from "../setting-row.ts";
import { type UpstreamAuth, upstreamAuthSchema } from "./upstream-auth.ts";

/** MCP features besides tools that an upstream can be allowed to use. They are not governed. */
export const PASSTHROUGH_FEATURES = [
  "resources",
  "prompts",
  "completions",
  "sampling",
  "elicitation",
  "roots",
] as const;

/** Who shares a connection to an upstream, and with it any state that the upstream keeps per connection. */
const ISOLATION = ["principal", "session", "shared"] as const;

interface UpstreamBase {
  name: string;
  isolation: (typeof ISOLATION)[number];
  max_connections: number;
  /** Idle time after which a dedicated connection is closed. */
  idle_ms: number;
  /** Tools are listed as `<name>.<tool>`. */
  namespace: boolean;
  timeout_ms: number;
  passthrough: readonly (typeof PASSTHROUGH_FEATURES)[number][];
}
export interface CommandUpstream extends UpstreamBase {
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd: string | null;
}
export interface UrlUpstream extends UpstreamBase {
  url: string;
  headers: Record<string, string>;
  /** Null for an upstream whose headers are the same for everybody. */
  auth: UpstreamAuth | null;
}
export type UpstreamSpec = CommandUpstream | UrlUpstream;

/** Whether each principal has its own tokens, and therefore its own connections. */
export function isPersonal(spec: UpstreamSpec): boolean {
  if (!("url" in spec) || spec.auth === null) return false;
  return spec.auth.type === "exchange" || spec.auth.per === "principal";
}

/** Whether connections need a person's consent at the upstream. */
export function needsConsent(spec: UpstreamSpec): boolean {
  return "url" in spec && spec.auth?.type === "oauth";
}

const HEADER_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const headers = z
  .record(
    z.string(),
    textSchema.refine((text) => !/[\r\n]/.test(text), "must not hold a line break"),
  )
  .superRefine((map, context) => {
    for (const name of Object.keys(map)) {
      if (!HEADER_NAME.test(name))
        context.addIssue({ code: "custom", path: [name], message: "is not a header name" });
    }
  });

const upstreamSchema = z
  .strictObject({
    name: z.string().refine((name) => /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(name) && name !== "svc", {
      message: 'must be letters, digits, "-" and "_" (at most 64), and not "svc"',
    }),
    command: textSchema.optional(),
    args: z
      .array(z.string().refine((text) => !text.includes("\0"), "must not hold a NUL character"))
      .optional(),
    env: z
      .record(
        z.string().min(1),
        z.string().refine((text) => !text.includes("\0"), "must not hold a NUL character"),
      )
      .optional(),
    cwd: pathSchema.optional(),
    url: urlSchema.optional(),
    headers: headers.optional(),
    auth: upstreamAuthSchema.optional(),
    namespace: z.boolean().default(false),
    timeout: durationSchema(1).prefault(`${SERVICE_LIMITS.upstream_timeout_ms / 1_000}s`),
    passthrough: z.array(z.enum(PASSTHROUGH_FEATURES)).default([]),
    isolation: z.enum(ISOLATION).default("principal"),
    max_connections: z.int().min(1).max(10_000).default(SERVICE_LIMITS.upstream_connections),
    idle: durationSchema(1).prefault(`${SERVICE_LIMITS.upstream_idle_ms / 60_000}m`),
  })
  .superRefine((upstream, context) => {
    const refuse = (path: string[], message: string) => context.addIssue({ code: "custom", path, message });
    const given = (["args", "env", "cwd"] as const).filter((key) => upstream[key] !== undefined);
    if (upstream.command === undefined && upstream.url === undefined)
      refuse([], "needs a command to start or a url to reach");
    if (upstream.command !== undefined && upstream.url !== undefined)
      refuse(["url"], "cannot be combined with command; keep one of the two");
    else if (upstream.url !== undefined)
      for (const key of given) refuse([key], "requires an upstream with a command");
    if (upstream.command !== undefined && upstream.headers !== undefined)
      refuse(["headers"], "requires an upstream with a url");
    if (upstream.auth === undefined) return;
    if (upstream.url === undefined) return refuse(["auth"], "requires an upstream with a url");
    if (Object.keys(upstream.headers ?? {}).some((name) => name.toLowerCase() === "authorization"))
      refuse(["headers"], "cannot hold Authorization together with auth; keep one of the two");
    const { protocol, hostname } = new URL(upstream.url);
    if (protocol !== "https:" && !isLoopbackHost(hostname))
      refuse(["url"], "must be https, because tokens are sent there");
    const isPersonal = upstream.auth.type === "exchange" || upstream.auth.per === "principal";
    if (isPersonal && upstream.isolation === "shared")
      refuse(["isolation"], "cannot be shared, because each principal has its own tokens");
  });

const upstreamsSchema = z
  .array(upstreamSchema)
  .max(256)
  .superRefine((list, context) => {
    const seen = new Set<string>();
    for (const [i, { name }] of list.entries()) {
      if (seen.has(name))
        context.addIssue({ code: "custom", path: [i, "name"], message: "another upstream has this name" });
      seen.add(name);
    }
  })
  .transform((list) => list.map(toUpstream));

function toUpstream(given: z.infer<typeof upstreamSchema>): UpstreamSpec {
  const base = {
    name: given.name,
    namespace: given.namespace,
    timeout_ms: given.timeout,
    passthrough: given.passthrough,
    isolation: given.isolation,
    max_connections: given.max_connections,
    idle_ms: given.idle,
  };
  if (given.url !== undefined)
    return { ...base, url: given.url, headers: given.headers ?? {}, auth: given.auth ?? null };
  return {
    ...base,
    command: given.command!,
    args: given.args ?? [],
    env: given.env ?? {},
    cwd: given.cwd ?? null,
  };
}

export const GATEWAY_ROWS = {
  gateway_url: settingRow<string | null>({
    type: "URL",
    schema: urlSchema
      .refine((url) => !/[?#]/.test(url), "must not hold a query or a fragment")
      .transform((url) => url.replace(/(?<!\/)\/+$/, "")),
    default: null,
    shown_default: "the listening address",
    env: "SVC_GATEWAY_URL",
    about:
      "Base URL of the gateway, as clients reach it. OIDC tokens for `<gateway_url>/mcp` are accepted there.",
  }),
  mode: choiceRow(["enforce", "observe"], "enforce", {
    about: "Mode of the runs that the gateway opens.",
  }),
  actor: settingRow<string>({
    type: "text",
    schema: textSchema
      .max(256)
      .refine((name) => !RESERVED_NAMES.has(name), "is reserved for the service; choose another"),
    default: "gateway-agent",
    about: "Actor of a stdio session, which has no key.",
  }),
  tenant: textRow({ about: "Tenant of a stdio session." }),
  approvers: pathRow({
    env: "SVC_APPROVERS",
    flag: "approvers",
    flag_inside: true,
    about:
      "Approvers file. The gateway, the proxy, the library and undos by compensator_cmd then verify signed approvals themselves.",
  }),
  blocked_results: choiceRow(["structured", "text"], "text", {
    about:
      "Answer to a blocked call of a tool with an output schema. `structured` adds structured content, which strict clients drop.",
  }),
  tool_names: choiceRow(["dots", "underscores"], "dots", {
    flag: "tool-names",
    about:
      "Names in tool lists: `files.write_file`, or `files__write_file`, as model providers require. Calls can use either.",
  }),
  own_tools: settingRow<"all" | "none" | string[]>({
    type: "all, none or list of tools",
    schema: z.union([z.enum(["all", "none"]), z.array(z.string().regex(/^svc[._][a-z_]+$/)).max(100)]),
    default: "all",
    fromText: (text) => (text === "all" || text === "none" ? text : readList(text)),
    about: "Which of the service's own tools agents see on `/mcp`, such as `[svc.await_approval]`.",
  }),
  ask_reason: switchRow({
    flag: "ask-reason",
    about:
      "Adds an optional argument `svc_reason` to each tool, for the agent's reason. The tool server does not get it.",
  }),
  approvals: settingSection("Waiting for approvals.", {
    wait: durationRow(0, 1_000, {
      shown_default: "not at all",
      about:
        "How long the gateway holds a call for approval, if the client can show URLs. Needs console_url and `console: login`.",
    }),
  }),
  runs: settingSection("The run of calls that do not name one.", {
    by: choiceRow(["session", "principal", "call"], "session", {
      about: "One run per session (per principal for clients without sessions), per principal, or per call.",
    }),
    idle: durationRow(30 * 60_000, 1_000, {
      about: "Idle time after which a principal's next call starts a new run.",
    }),
  }),
  permissions: settingRow<string[] | null>({
    type: "list of permissions",
    schema: z.array(textSchema.max(SERVICE_LIMITS.permission_chars)).max(SERVICE_LIMITS.permissions),
    default: null,
    shown_default: "every permission that the manifests declare and the key allows",
    fromText: readList,
    about: "Scope of the runs that the gateway opens.",
  }),
  upstreams: settingRow<UpstreamSpec[]>({
    type: "list of upstreams",
    schema: upstreamsSchema,
    default: [],
    about: "The tool servers ([keys](#keys-of-an-upstream)).",
    locate: (list, base) =>
      list.map((upstream) =>
        "command" in upstream && upstream.cwd !== null
          ? { ...upstream, cwd: locatePath(upstream.cwd, base) }
          : upstream,
      ),
    mask: (list) =>
      list.map((upstream) =>
        "url" in upstream
          ? { ...(maskNamed(upstream) as object), headers: maskValues(upstream.headers) }
          : { ...upstream, env: maskValues(upstream.env) },
      ),
  }),
} as const;
