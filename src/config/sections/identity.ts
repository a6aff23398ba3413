/** The rows of who may come in: the console, OpenID Connect, the gateway's keys, chat users. */
import * as z from "zod";
import { boundProblem, ROLES, type Role } from "../../model/roles.ts";
import { choiceRow, pathRow, readJsonText, row, section, textRow, textSchema, urlSchema } from "../row.ts";

const CONSOLE_MODES = ["off", "open", "login"] as const;
/** Open mode never acts as admin. */
const OPEN_CONSOLE_ROLES = ["auditor", "approver", "operator"] as const;
type OpenConsoleRole = (typeof OPEN_CONSOLE_ROLES)[number];

const openRole = z
  .string()
  .transform((text, context) => {
    if ((OPEN_CONSOLE_ROLES as readonly string[]).includes(text)) return text as OpenConsoleRole;
    const why =
      text === "admin" ? "an open console never acts as admin" : "is not a role of the open console";
    context.addIssue({ code: "custom", message: `${why}; write auditor, approver or operator` });
    return z.NEVER;
  })
  .meta({ enum: [...OPEN_CONSOLE_ROLES] });

const roleMap = z.record(z.string().min(1), z.enum(ROLES));
const tenantMap = z.record(
  z.string().min(1),
  textSchema.refine((tenant) => boundProblem(tenant) === null, "must be a name without * ? { }"),
);
const permissionMap = z.record(z.string().min(1), z.array(textSchema).max(1_000));
const audience = z
  .union([textSchema, z.array(textSchema).min(1).max(32)])
  .transform((value) => (typeof value === "string" ? [value] : value));

export const IDENTITY_ROWS = {
  console: section(
    "The web console. `console: login` is short for `console: {mode: login}`.",
    {
      mode: choiceRow(CONSOLE_MODES, "off", {
        env: "SVC_CONSOLE",
        flag: "console",
        flag_inside: true,
        about: "off; open (no login, this machine only); login (API key or OIDC token).",
      }),
      role: row<OpenConsoleRole>({
        type: OPEN_CONSOLE_ROLES.join(", "),
        schema: openRole,
        default: "operator",
        env: "SVC_CONSOLE_ROLE",
        flag: "role",
        about: "The role of everybody who uses an open console.",
      }),
    },
    { shorthand: "mode" },
  ),
  console_url: row<string | null>({
    type: "URL",
    schema: urlSchema.transform((url) => url.replace(/\/+$/, "")),
    default: null,
    env: "SVC_CONSOLE_URL",
    about:
      "The base of console links in notifications, and of the address to which an issuer sends people back.",
  }),
  oidc: section("Bearer tokens of an OpenID Connect issuer, beside the API keys.", {
    issuer: row<string | null>({
      type: "URL",
      schema: urlSchema,
      default: null,
      env: "SVC_OIDC_ISSUER",
      about: "The issuer, exactly as its tokens spell it.",
    }),
    audience: row<string[]>({
      type: "text or list of texts",
      schema: audience,
      default: [],
      env: "SVC_OIDC_AUDIENCE",
      about: "What the token's aud claim must hold (any one of a list).",
    }),
    role_map: row<Record<string, Role>>({
      type: "mapping of group to role",
      schema: roleMap,
      default: {},
      env: "SVC_OIDC_ROLE_MAP",
      fromText: readJsonText,
      about: "The role of each group; in the environment a JSON object.",
    }),
    tenant_map: row<Record<string, string>>({
      type: "mapping of group to tenant",
      schema: tenantMap,
      default: {},
      env: "SVC_OIDC_TENANT_MAP",
      fromText: readJsonText,
      about: "Binds the tokens of a group to a tenant: every role holds within it only.",
    }),
    groups_claim: row<string>({
      type: "text",
      schema: textSchema,
      default: "groups",
      env: "SVC_OIDC_GROUPS_CLAIM",
      about: "The claim that lists the groups; a path of names joined by dots reaches into objects.",
    }),
    client_id: textRow({
      env: "SVC_OIDC_CLIENT_ID",
      about: "The console's client id at the issuer; turns on signing in there from the login page.",
    }),
    client_secret: textRow({
      secret: true,
      env: "SVC_OIDC_CLIENT_SECRET",
      about: "That client's secret, where the issuer gave it one.",
    }),
    max_permissions: row<Record<string, string[]> | null>({
      type: "mapping of group to list of globs",
      schema: permissionMap,
      default: null,
      fromText: readJsonText,
      shown_default: "every permission that the manifests declare",
      about: "What an agent of each group may request.",
    }),
  }),
  auth: section("The credentials of the gateway's HTTP endpoints.", {
    keys: pathRow({
      about:
        "The gateway's API key file; `keys` where this is not given. `--keys` and `SVC_KEYS` win over it.",
    }),
  }),
  chat: section("Approving from a chat service; both keys are needed.", {
    signing_secret: textRow({
      secret: true,
      env: "SVC_CHAT_SIGNING_SECRET",
      about: "The secret with which the chat service signs its requests.",
    }),
    users: row<Record<string, string> | null>({
      type: "mapping of chat user id to key name",
      schema: z.record(z.string().min(1), textSchema),
      default: null,
      env: "SVC_CHAT_USERS",
      fromText: readJsonText,
      about: "Who each chat user is; in the environment a JSON object.",
    }),
  }),
} as const;
