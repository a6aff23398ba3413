/** The rows of the server itself: its files, its store, where it listens. */
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
  row,
  section,
  switchRow,
  textRow,
  textSchema,
  urlSchema,
} from "../row.ts";

const hostSchema = z
  .string()
  .transform((text) => text.replace(/^\[(.*)\]$/, "$1"))
  .refine(
    (host) => isIP(host) !== 0 || /^(?!-)[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?$/.test(host),
    {
      message: "is not a host name or an IP address; write it without a scheme or a port",
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
    about: "The tool manifests: a file, a folder of .yaml files, or an http(s) URL.",
    mask: (path) => (path !== null && isRemote(path) ? maskUrl(path) : path),
  }),
  policy: pathRow({ env: "SVC_POLICY", flag: "policy", about: "The policy file." }),
  keys: pathRow({ env: "SVC_KEYS", flag: "keys", about: "The API key file (JSON)." }),
  data: row<string>({
    type: "path",
    schema: pathSchema,
    default: "data",
    env: "SVC_DATA",
    flag: "data",
    about: "The data folder: ledger, run state, captures and copies of remote manifests.",
    locate: locatePath,
  }),
  store: choiceRow(STORE_KINDS, "files", {
    env: "SVC_STORE",
    flag: "store",
    about: "Where ledger and state are kept.",
  }),
  database_url: row<string | null>({
    type: "connection URL",
    schema: databaseUrl,
    default: null,
    env: "SVC_DATABASE_URL",
    flag: "database-url",
    flag_inside: true,
    secret: true,
    about:
      "The PostgreSQL database of the postgres store. Several hosts (`a:5432,b:5432`): the one that takes writes.",
    mask: (url) => (url === null ? null : maskConnection(url)),
  }),
  database_read_url: row<string | null>({
    type: "connection URL",
    schema: databaseUrl,
    default: null,
    env: "SVC_DATABASE_READ_URL",
    secret: true,
    about: "A streaming replica of that database, for search, reports and the console's lists.",
    mask: (url) => (url === null ? null : maskConnection(url)),
  }),
  max_lag: durationRow(10_000, 100, {
    about: "How far the replica may be behind; past that the primary is asked.",
  }),
  listen: section("Where the server or the gateway listens. A gateway without it serves one stdio session.", {
    host: row<string>({
      type: "host name or IP address",
      schema: hostSchema,
      default: "127.0.0.1",
      env: "SVC_HOST",
      flag: "host",
      about: "The address to bind.",
    }),
    port: numberRow(z.number().int().min(0).max(65_535), 8787, {
      type: "0 to 65535",
      env: "PORT",
      flag: "port",
      about: "The port; 0 takes any free one and prints it.",
    }),
    allowed_hosts: row<string[]>({
      type: "list of host names",
      schema: namesSchema,
      default: [],
      fromText: readList,
      about:
        "Names, beside the bound address and localhost, that a request's Host header may carry at the gateway.",
    }),
    allowed_origins: row<string[]>({
      type: "list of origins",
      schema: z.array(urlSchema).max(1_000),
      default: [],
      fromText: readList,
      about: "Browser origins that may talk to the gateway, such as https://app.example.com.",
    }),
  }),
  environment: textRow({
    env: "SVC_ENVIRONMENT",
    about: "The name of this deployment (prod, staging); policies, halts, risk and traces use it.",
  }),
  signing_key: pathRow({
    env: "SVC_SIGNING_KEY",
    about: "The private Ed25519 key (svc keygen) that signs bundles, anchors and archives.",
  }),
  ledger_origin: row<string | null>({
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
    about: "The ledger's name in its checkpoints; witnesses know it by this name, so it never changes.",
  }),
  kill_file: pathRow({
    env: "SVC_KILL_FILE",
    about: "While this file exists, every new call is blocked.",
  }),
  archive_root: pathRow({
    about: "Retention archives may be written only below this folder.",
  }),
  registry: section("Folders of the registry; without them its routes answer 404.", {
    manifests: pathRow({ env: "SVC_REGISTRY_MANIFESTS", about: "Drafts and published manifests." }),
    policies: pathRow({ env: "SVC_REGISTRY_POLICIES", about: "The versions of the policy." }),
    loosening: choiceRow(["one_admin", "second_admin"], "one_admin", {
      about:
        "With second_admin a version that is looser anywhere waits until another admin activates it, too.",
    }),
  }),
  metrics_public: switchRow({
    env: "SVC_METRICS_PUBLIC",
    about: "Serves /metrics without a credential.",
  }),
  secure_cookies: switchRow({
    env: "SVC_SECURE_COOKIES",
    about: "Marks console cookies as HTTPS-only.",
  }),
} as const;
