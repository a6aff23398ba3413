/** The rows of the gateway: whom it speaks for and which tool servers stand behind it. */
import * as z from "zod";
import { LIMITS } from "../../kernel/limits.ts";
import { RESERVED_NAMES } from "../../model/roles.ts";
import { maskNamed, maskValues } from "../mask.ts";
import {
  choiceRow,
  durationRow,
  durationSchema,
  locatePath,
  pathSchema,
  readList,
  row,
  section,
  switchRow,
  textRow,
  textSchema,
  urlSchema,
} from "../row.ts";

/** Methods beside tools that an upstream may be allowed, though nothing governs them. */
export const PASSTHROUGH = [
  "resources",
  "prompts",
  "completions",
  "sampling",
  "elicitation",
  "roots",
] as const;

/** Who shares a connection to an upstream, and with it whatever the upstream keeps for the connection. */
const ISOLATION = ["principal", "session", "shared"] as const;

interface UpstreamBase {
  name: string;
  isolation: (typeof ISOLATION)[number];
  max_connections: number;
  /** After how long without a request a holder's own connection is ended. */
  idle_ms: number;
  /** Tools are shown as `<name>.<tool>`. */
  namespace: boolean;
  timeout_ms: number;
  passthrough: readonly (typeof PASSTHROUGH)[number][];
}
export interface CommandUpstream extends UpstreamBase {
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd: string | null;
}
interface UrlUpstream extends UpstreamBase {
  url: string;
  headers: Record<string, string>;
}
export type UpstreamSpec = CommandUpstream | UrlUpstream;

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
    namespace: z.boolean().default(false),
    timeout: durationSchema(1).prefault(`${LIMITS.upstream_timeout_ms / 1_000}s`),
    passthrough: z.array(z.enum(PASSTHROUGH)).default([]),
    isolation: z.enum(ISOLATION).default("principal"),
    max_connections: z.int().min(1).max(10_000).default(LIMITS.upstream_connections),
    idle: durationSchema(1).prefault(`${LIMITS.upstream_idle_ms / 60_000}m`),
  })
  .superRefine((upstream, context) => {
    const refuse = (path: string[], message: string) => context.addIssue({ code: "custom", path, message });
    const given = (["args", "env", "cwd"] as const).filter((key) => upstream[key] !== undefined);
    if (upstream.command === undefined && upstream.url === undefined)
      refuse([], "needs a command to start or a url to reach");
    if (upstream.command !== undefined && upstream.url !== undefined)
      refuse(["url"], "cannot stand beside command; keep one of the two");
    else if (upstream.url !== undefined)
      for (const key of given) refuse([key], "belongs to an upstream with a command");
    if (upstream.command !== undefined && upstream.headers !== undefined)
      refuse(["headers"], "belongs to an upstream with a url");
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
  if (given.url !== undefined) return { ...base, url: given.url, headers: given.headers ?? {} };
  return {
    ...base,
    command: given.command!,
    args: given.args ?? [],
    env: given.env ?? {},
    cwd: given.cwd ?? null,
  };
}

export const GATEWAY_ROWS = {
  mode: choiceRow(["enforce", "observe"], "enforce", {
    about: "The mode of the runs that the gateway opens.",
  }),
  actor: row<string>({
    type: "text",
    schema: textSchema
      .max(256)
      .refine((name) => !RESERVED_NAMES.has(name), "is a name of the service itself; choose another"),
    default: "gateway-agent",
    about: "The actor of a stdio session, which has no key.",
  }),
  tenant: textRow({ about: "The tenant of a stdio session." }),
  blocked_results: choiceRow(["structured", "text"], "text", {
    about:
      "How a blocked call of a tool that declares an output schema is answered: with text and `_meta` alone, because strict clients drop what does not match that schema, or with structured content as well.",
  }),
  tool_names: choiceRow(["dots", "underscores"], "dots", {
    flag: "tool-names",
    about:
      "How tools are named in lists: as manifests name them (`files.write_file`), or in letters, digits, `_` and `-` alone (`files__write_file`), which is all that model providers take. Calls may use either.",
  }),
  own_tools: row<"all" | "none" | string[]>({
    type: "all, none or list of tools",
    schema: z.union([z.enum(["all", "none"]), z.array(z.string().regex(/^svc[._][a-z_]+$/)).max(100)]),
    default: "all",
    fromText: (text) => (text === "all" || text === "none" ? text : readList(text)),
    about: "Which of the service's own tools agents are shown on `/mcp`, such as `[svc.await_approval]`.",
  }),
  ask_reason: switchRow({
    flag: "ask-reason",
    about:
      "Adds an optional argument `svc_reason` to each tool, in which an agent says why it makes the call; it is taken out before the call is judged and forwarded.",
  }),
  approvals: section("How a call waits for approval.", {
    wait: durationRow(0, 1_000, {
      shown_default: "not at all",
      about:
        "How long the gateway holds a call that needs approval, for clients that can show a person the card's address (console_url, with a console that asks for a login); others are told to wait and call again.",
    }),
  }),
  runs: section("Which run a call belongs to that names none.", {
    by: choiceRow(["session", "principal", "call"], "session", {
      about:
        "session: each session has a run, and a client without sessions one for its principal; principal: one run for all that a principal does; call: one for each call.",
    }),
    idle: durationRow(30 * 60_000, 1_000, {
      about: "After how long without a call a principal's next call begins a new run.",
    }),
  }),
  permissions: row<string[] | null>({
    type: "list of permissions",
    schema: z.array(textSchema.max(LIMITS.permission_chars)).max(LIMITS.permissions),
    default: null,
    shown_default: "every permission that the manifests declare and the key allows",
    fromText: readList,
    about: "The scope of the runs that the gateway opens.",
  }),
  upstreams: row<UpstreamSpec[]>({
    type: "list of upstreams",
    schema: upstreamsSchema,
    default: [],
    about:
      "The tool servers: `{name, command, args, env, cwd}` or `{name, url, headers}`, and `namespace`, `timeout` (60s), `passthrough` (a list of resources, prompts, completions, sampling, elicitation, roots), `isolation` (principal, session or shared: who has a connection of its own), `max_connections` (64) and `idle` (30m), after which a connection that is not used ends.",
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
