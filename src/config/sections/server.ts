/** Server settings: files, store, and listening address. */
import { isIP } from "node:net";
import * as z from "zod";
import { STORE_KINDS } from "../../store/open.ts";
import { maskConnection, maskUrl } from "../mask.ts";
import {
  choiceRow,
  durationRow,
  isRemote,
  locatePath,
  numberRow,
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

const hostSchema = z
  .string()
  .transform((text) => text.replace(/^\[(.*)\]$/, "$1"))
  .refine(
    (host) => isIP(host) !== 0 || /^(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?$/.test(host),
    {
      message: "is not a host name or an IP address; use it without a scheme or a port",
    },
  );

const namesSchema = z.array(textSchema).max(1_000);

const databaseUrl = textSchema.refine(
  (text) => /^postgres(?:ql)?:\/\//.test(text),
  "is not a URL that begins with postgres://",
);

export const SERVER_ROWS = {
  manifests: pathRow({
    type: "path or URL",
    env: "SVC_MANIFESTS",
    flag: "manifests",
    about: "Tool manifests: a file, a directory of .yaml files, or an http(s) URL.",
    mask: (path) => (path !== null && isRemote(path) ? maskUrl(path) : path),
  }),
  policy: pathRow({ env: "SVC_POLICY", flag: "policy", about: "Policy file." }),
  keys: pathRow({ env: "SVC_KEYS", flag: "keys", about: "API key file (JSON)." }),
  data: settingRow<string>({
    type: "path",
    schema: pathSchema,
    default: "data",
    env: "SVC_DATA",
    flag: "data",
    about: "Data directory: ledger, run state, captures and copies of remote manifests.",
    locate: locatePath,
  }),
  store: choiceRow(STORE_KINDS, "files", {
    env: "SVC_STORE",
    flag: "store",
    about: "Kind of store for ledger and state.",
  }),
  database_url: settingRow<string | null>({
    type: "connection URL",
    schema: databaseUrl,
    default: null,
    env: "SVC_DATABASE_URL",
    flag: "database-url",
    flag_inside: true,
    secret: true,
    about: "PostgreSQL database. Of several hosts (`a:5432,b:5432`), the one that accepts writes is used.",
    mask: (url) => (url === null ? null : maskConnection(url)),
  }),
  database_read_url: settingRow<string | null>({
    type: "connection URL",
    schema: databaseUrl,
    default: null,
    env: "SVC_DATABASE_READ_URL",
    secret: true,
    about: "Streaming replica of that database, for search, reports and the console's lists.",
    mask: (url) => (url === null ? null : maskConnection(url)),
  }),
  max_lag: durationRow(10_000, 100, {
    about: "Maximum lag of the replica. Beyond it, the primary is used.",
  }),
  listen: settingSection(
    "Listening address of the server or the gateway. A gateway without it serves one stdio session.",
    {
      host: settingRow<string>({
        type: "host name or IP address",
        schema: hostSchema,
        default: "127.0.0.1",
        env: "SVC_HOST",
        flag: "host",
        about: "Address to bind.",
      }),
      port: numberRow(z.number().int().min(0).max(65_535), 8787, {
        type: "0 to 65535",
        env: "PORT",
        flag: "port",
        about: "Port. 0 picks any free one and prints it.",
      }),
      allowed_hosts: settingRow<string[]>({
        type: "list of host names",
        schema: namesSchema,
        default: [],
        fromText: readList,
        about: "Host header values that the gateway accepts, in addition to the bound address and localhost.",
      }),
      allowed_origins: settingRow<string[]>({
        type: "list of origins",
        schema: z.array(urlSchema).max(1_000),
        default: [],
        fromText: readList,
        about: "Browser origins that can use the gateway, such as https://app.example.com.",
      }),
    },
  ),
  environment: textRow({
    env: "SVC_ENVIRONMENT",
    about: "Name of this deployment (prod, staging). Policies, halts, risk and traces use it.",
  }),
  signing_key: pathRow({
    env: "SVC_SIGNING_KEY",
    about: "Private Ed25519 key (svc keygen) that signs bundles, anchors and archives.",
  }),
  token_key: pathRow({
    env: "SVC_TOKEN_KEY",
    about:
      "File with 32 random bytes that encrypts people's tokens of upstreams (`openssl rand -out <file> 32`).",
  }),
  token_key_previous: pathRow({
    env: "SVC_TOKEN_KEY_PREVIOUS",
    about: "The key before `token_key`, until `svc upstreams rotate` has encrypted all tokens again.",
  }),
  ledger_origin: settingRow<string | null>({
    type: "text without spaces",
    schema: textSchema
      .max(255)
      .refine(
        (text) => /^[!-*,-~]+$/.test(text),
        "must be printable characters without spaces and plus signs, such as example.com/ledger",
      ),
    default: null,
    shown_default: "svc/<id of the signing key>",
    env: "SVC_LEDGER_ORIGIN",
    about: "Name of the ledger in its checkpoints. Witnesses identify the ledger by it, so never change it.",
  }),
  kill_file: pathRow({
    env: "SVC_KILL_FILE",
    about: "While this file exists, every new call is blocked.",
  }),
  archive_root: pathRow({
    about: "Retention archives can only be written below this directory.",
  }),
  registry: settingSection("Registry directories. Without them, registry routes return 404.", {
    manifests: pathRow({
      env: "SVC_REGISTRY_MANIFESTS",
      about: "Directory of draft and published manifests.",
    }),
    policies: pathRow({ env: "SVC_REGISTRY_POLICIES", about: "Directory of policy versions." }),
    loosening: choiceRow(["one_admin", "second_admin"], "one_admin", {
      about:
        "With `second_admin`, another admin must also activate a version that is looser than the active one.",
    }),
  }),
  metrics_public: switchRow({
    env: "SVC_METRICS_PUBLIC",
    about: "Serves /metrics without authentication.",
  }),
  secure_cookies: switchRow({
    env: "SVC_SECURE_COOKIES",
    about: "Marks console cookies as HTTPS-only.",
  }),
} as const;
