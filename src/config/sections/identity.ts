/** Authentication settings: the console, OpenID Connect, the gateway's keys, chat users. */
import * as z from "zod";
import { PRINCIPAL_ROLES, type PrincipalRole, tenantBindingProblem } from "../../govern/roles.ts";
import {
  choiceRow,
  pathRow,
  readJsonText,
  settingRow,
  settingSection,
  switchRow,
  textRow,
  textSchema,
  urlSchema,
} from "../setting-row.ts";
import { scopesSchema } from "./upstream-auth.ts";

const CONSOLE_MODES = ["off", "open", "login"] as const;
/** An open console never acts as admin. */
const OPEN_CONSOLE_ROLES = ["auditor", "approver", "operator"] as const;
type OpenConsoleRole = (typeof OPEN_CONSOLE_ROLES)[number];

const openRole = z
  .string()
  .transform((text, context) => {
    if ((OPEN_CONSOLE_ROLES as readonly string[]).includes(text)) return text as OpenConsoleRole;
    const why =
      text === "admin" ? "an open console never acts as admin" : "is not a role of the open console";
    context.addIssue({ code: "custom", message: `${why}; use auditor, approver or operator` });
    return z.NEVER;
  })
  .meta({ enum: [...OPEN_CONSOLE_ROLES] });

const roleMap = z.record(z.string().min(1), z.enum(PRINCIPAL_ROLES));
const tenantMap = z.record(
  z.string().min(1),
  textSchema.refine((tenant) => tenantBindingProblem(tenant) === null, "must be a name without * ? { }"),
);
const permissionMap = z.record(z.string().min(1), z.array(textSchema).max(1_000));
const audience = z
  .union([textSchema, z.array(textSchema).min(1).max(32)])
  .transform((value) => (typeof value === "string" ? [value] : value));

export const IDENTITY_ROWS = {
  console: settingSection(
    "The web console. `console: login` is short for `console: {mode: login}`.",
    {
      mode: choiceRow(CONSOLE_MODES, "off", {
        env: "SVC_CONSOLE",
        flag: "console",
        flag_inside: true,
        about: "`off`, `open` (no login, this machine only) or `login` (API key or OIDC token).",
      }),
      role: settingRow<OpenConsoleRole>({
        type: OPEN_CONSOLE_ROLES.join(", "),
        schema: openRole,
        default: "operator",
        env: "SVC_CONSOLE_ROLE",
        flag: "role",
        about: "Role of all users of an open console.",
      }),
    },
    { shorthand: "mode" },
  ),
  console_url: settingRow<string | null>({
    type: "URL",
    schema: urlSchema.transform((url) => url.replace(/(?<!\/)\/+$/, "")),
    default: null,
    env: "SVC_CONSOLE_URL",
    about: "Base URL of the console, for links in notifications and for the redirect URL of SSO.",
  }),
  approve_url: settingRow<string | null>({
    type: "URL",
    schema: urlSchema.transform((url) => url.replace(/(?<!\/)\/+$/, "")),
    default: null,
    about: "Second URL of the console for signing with a passkey: https, at or below `passkeys.rp_id`.",
  }),
  passkeys: settingSection("Passkeys that sign approvals. They need `console_url`.", {
    enrol: choiceRow(["confirmed", "self"], "confirmed", {
      about:
        "`confirmed`: another admin, or an active passkey, confirms a new one. `self`: it is active at once.",
    }),
    rp_id: settingRow<string | null>({
      type: "host name",
      schema: textSchema.regex(/^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/, "must be a host name in lower case"),
      default: null,
      shown_default: "the host of `console_url`",
      about: "Relying party of the passkeys: the console's host or a parent domain. Never change it.",
    }),
  }),
  push: settingSection(
    "Push messages to the browsers of people who decide. They need `console_url` or `contact`.",
    {
      contact: settingRow<string | null>({
        type: "mailto: or https: URL",
        schema: textSchema.regex(
          /^(?:mailto:[^\s@<>]+@[^\s@<>]+|https:\/\/[^\s<>]+)$/,
          "must be a mailto: or https: URL",
        ),
        default: null,
        shown_default: "`console_url`, if it is https",
        about: "Whom a push service can write to about this service. It is sent with every message.",
      }),
      key: textRow({
        secret: true,
        env: "SVC_PUSH_KEY",
        about: "Private VAPID key, 32 bytes as base64url. The default is made once and kept in the store.",
      }),
      allow_private: switchRow({
        about: "Allows push services at private addresses. For tests.",
      }),
    },
  ),
  oidc: settingSection("Bearer tokens of an OpenID Connect issuer, in addition to API keys.", {
    issuer: settingRow<string | null>({
      type: "URL",
      schema: urlSchema,
      default: null,
      env: "SVC_OIDC_ISSUER",
      about: "Issuer URL, exactly as in its tokens.",
    }),
    audience: settingRow<string[]>({
      type: "text or list of texts",
      schema: audience,
      default: [],
      env: "SVC_OIDC_AUDIENCE",
      about: "Required audience of tokens. For a list, one match is enough.",
    }),
    role_map: settingRow<Record<string, PrincipalRole>>({
      type: "mapping of group to role",
      schema: roleMap,
      default: {},
      env: "SVC_OIDC_ROLE_MAP",
      fromText: readJsonText,
      about: "Role of each group. In the environment, a JSON object.",
    }),
    tenant_map: settingRow<Record<string, string>>({
      type: "mapping of group to tenant",
      schema: tenantMap,
      default: {},
      env: "SVC_OIDC_TENANT_MAP",
      fromText: readJsonText,
      about: "Tenant of each group. Tokens of the group are limited to that tenant in every role.",
    }),
    scopes: settingRow<string[]>({
      type: "text or list of texts",
      schema: z.union([
        z
          .string()
          .transform((text) => text.split(" "))
          .pipe(scopesSchema),
        scopesSchema,
      ]),
      default: [],
      env: "SVC_OIDC_SCOPES",
      about: "Scopes that MCP clients ask for when they sign in, separated by spaces. Some issuers need one.",
    }),
    groups_claim: settingRow<string>({
      type: "text",
      schema: textSchema,
      default: "groups",
      env: "SVC_OIDC_GROUPS_CLAIM",
      about: "Claim that lists the groups. Use dots to reach into objects, such as `realm_access.roles`.",
    }),
    client_id: textRow({
      env: "SVC_OIDC_CLIENT_ID",
      about: "Client id of the console at the issuer. Enables SSO on the login page.",
    }),
    client_secret: textRow({
      secret: true,
      env: "SVC_OIDC_CLIENT_SECRET",
      about: "Secret of that client, if the issuer requires one.",
    }),
    max_permissions: settingRow<Record<string, string[]> | null>({
      type: "mapping of group to list of globs",
      schema: permissionMap,
      default: null,
      fromText: readJsonText,
      shown_default: "every permission that the manifests declare",
      about: "Permissions that agents of each group can request.",
    }),
  }),
  caep: settingSection("Security events (CAEP) of an identity provider. Requires all three keys.", {
    issuer: settingRow<string | null>({
      type: "URL",
      schema: urlSchema,
      default: null,
      env: "SVC_CAEP_ISSUER",
      about: "Issuer of the events, exactly as in them.",
    }),
    audience: textRow({ env: "SVC_CAEP_AUDIENCE", about: "Required audience of the events." }),
    jwks_url: settingRow<string | null>({
      type: "URL",
      schema: urlSchema,
      default: null,
      env: "SVC_CAEP_JWKS_URL",
      about: "URL of the keys that sign the events.",
    }),
  }),
  auth: settingSection("Credentials of the gateway's HTTP endpoints.", {
    keys: pathRow({
      about: "API key file of the gateway. The default is `keys`. `--keys` and `SVC_KEYS` override it.",
    }),
  }),
  chat: settingSection("Approving from a chat service. Requires both keys.", {
    signing_secret: textRow({
      secret: true,
      env: "SVC_CHAT_SIGNING_SECRET",
      about: "Secret that signs the requests of the chat service.",
    }),
    users: settingRow<Record<string, string> | null>({
      type: "mapping of chat user id to key name",
      schema: z.record(z.string().min(1), textSchema),
      default: null,
      env: "SVC_CHAT_USERS",
      fromText: readJsonText,
      about: "Key name of each chat user. In the environment, a JSON object.",
    }),
  }),
} as const;
