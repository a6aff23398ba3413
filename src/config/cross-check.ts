/** Rules between settings, one table entry each. */
import { isLoopbackHost } from "./loopback.ts";
import { needsConsent } from "./sections/gateway.ts";
import type { LoadedSettings } from "./settings.ts";

interface Verdicts {
  refuse(key: string, message: string): void;
  warn(key: string, message: string): void;
}

interface Rule {
  /** Key at whose location the problem is reported. */
  readonly key: string;
  readonly broken: (settings: LoadedSettings) => boolean;
  readonly message: string;
  readonly only_warn?: boolean;
}

const RULES: readonly Rule[] = [
  {
    key: "console.mode",
    broken: ({ console, listen }) => console.mode === "open" && !isLoopbackHost(listen.host),
    message: "an open console has no login, so it needs a loopback listen.host; use login, or 127.0.0.1",
  },
  {
    key: "store",
    broken: ({ store, database_url }) => store === "postgres" && database_url === null,
    message: "the postgres store needs SVC_DATABASE_URL (or database_url)",
  },
  {
    key: "database_read_url",
    broken: ({ store, database_read_url }) => store !== "postgres" && database_read_url !== null,
    message: "only the postgres store has replicas to read from (store: postgres)",
  },
  {
    key: "oidc.issuer",
    broken: ({ oidc }) => oidc.issuer !== null && oidc.audience.length === 0 && oidc.client_id === null,
    message:
      "an issuer needs an audience (oidc.audience or SVC_OIDC_AUDIENCE), or tokens for other services would be accepted",
  },
  {
    key: "oidc.audience",
    broken: ({ oidc }) => oidc.issuer === null && oidc.audience.length > 0,
    message: "an audience needs an issuer (oidc.issuer or SVC_OIDC_ISSUER)",
  },
  {
    key: "oidc.client_id",
    broken: ({ oidc }) => oidc.issuer === null && oidc.client_id !== null,
    message: "a client id needs an issuer (oidc.issuer or SVC_OIDC_ISSUER)",
  },
  {
    key: "oidc.client_secret",
    broken: ({ oidc }) => oidc.client_id === null && oidc.client_secret !== null,
    message: "a client secret needs a client id (oidc.client_id or SVC_OIDC_CLIENT_ID)",
  },
  {
    key: "oidc.client_id",
    broken: ({ oidc, console }) => oidc.client_id !== null && console.mode !== "login",
    message: "a client id has no effect unless the console requires a login (console: login)",
    only_warn: true,
  },
  {
    key: "oidc.client_id",
    broken: ({ oidc, console, console_url, listen }) =>
      oidc.client_id !== null &&
      console.mode === "login" &&
      console_url === null &&
      !isLoopbackHost(listen.host),
    message: "signing in from other machines needs console_url (SVC_CONSOLE_URL), the URL that users open",
    only_warn: true,
  },
  {
    key: "chat.signing_secret",
    broken: ({ chat }) => chat.signing_secret !== null && chat.users === null,
    message: "chat actions stay off until chat.users (SVC_CHAT_USERS) maps each chat user to a key",
    only_warn: true,
  },
  {
    key: "chat.users",
    broken: ({ chat }) => chat.signing_secret === null && chat.users !== null,
    message: "chat actions stay off until chat.signing_secret (SVC_CHAT_SIGNING_SECRET) is set",
    only_warn: true,
  },
  {
    key: "oidc.issuer",
    broken: ({ oidc }) =>
      oidc.issuer?.startsWith("http:") === true && !isLoopbackHost(new URL(oidc.issuer).hostname),
    message: "the issuer's keys are fetched over plain http, where an attacker can replace them; use https",
    only_warn: true,
  },
  {
    key: "passkeys.rp_id",
    broken: ({ console_url, passkeys: { rp_id } }) =>
      rp_id !== null && console_url !== null && !isHostBelow(new URL(console_url).hostname, rp_id),
    message: "console_url must be on this host or below it",
  },
  {
    key: "push.key",
    broken: ({ push }) =>
      push.key !== null &&
      (!/^[A-Za-z0-9_-]+=*$/.test(push.key) || Buffer.from(push.key, "base64url").length !== 32),
    message: "must be 32 bytes as base64url",
  },
  {
    key: "approve_url",
    broken: ({ console_url, approve_url }) => approve_url !== null && console_url === null,
    message: "needs console_url (SVC_CONSOLE_URL), the first URL of the console",
  },
  {
    key: "approve_url",
    broken: ({ approve_url }) => approve_url !== null && !isSecureUrl(approve_url),
    message: "must be https (or localhost), or browsers offer no passkeys there",
  },
  {
    key: "approve_url",
    broken: ({ approve_url, console_url, passkeys: { rp_id } }) =>
      approve_url !== null &&
      console_url !== null &&
      !isHostBelow(new URL(approve_url).hostname, rp_id ?? new URL(console_url).hostname),
    message: "must be on the host of passkeys.rp_id or below it",
  },
  {
    key: "gateway_url",
    broken: ({ oidc, gateway_url }) =>
      oidc.issuer !== null &&
      gateway_url?.startsWith("http:") === true &&
      !isLoopbackHost(new URL(gateway_url).hostname),
    message: "tokens for the gateway are sent over plain http, where an attacker can read them; use https",
    only_warn: true,
  },
  {
    key: "token_key",
    broken: ({ token_key, upstreams }) => token_key === null && upstreams.some(needsConsent),
    message:
      "an upstream with `auth: {type: oauth}` needs token_key (SVC_TOKEN_KEY), a file with 32 random bytes",
  },
  {
    key: "token_key_previous",
    broken: ({ token_key, token_key_previous }) => token_key === null && token_key_previous !== null,
    message: "needs token_key (SVC_TOKEN_KEY), the current key",
  },
  {
    key: "console_url",
    broken: ({ console, console_url, upstreams }) =>
      upstreams.some(needsConsent) && (console.mode !== "login" || console_url === null),
    message:
      "people consent to upstreams with `auth: {type: oauth}` in the console; set `console: login` and console_url",
  },
  {
    key: "console_url",
    broken: ({ console_url, upstreams }) =>
      console_url !== null &&
      upstreams.some(needsConsent) &&
      !isSecureUrl(console_url) &&
      !isLoopbackHost(new URL(console_url).hostname),
    message: "must be https, because issuers send codes there",
  },
  {
    key: "oidc.issuer",
    broken: ({ oidc, upstreams }) =>
      oidc.issuer === null && upstreams.some((one) => "url" in one && one.auth?.type === "exchange"),
    message: "an upstream with `auth: {type: exchange}` needs the callers' tokens; set oidc.issuer",
  },
  {
    key: "caep",
    broken: ({ caep: { issuer, audience, jwks_url } }) => {
      const missing = [issuer, audience, jwks_url].filter((value) => value === null).length;
      return missing === 1 || missing === 2;
    },
    message: "security events need caep.issuer, caep.audience and caep.jwks_url; set all three, or none",
  },
  {
    key: "caep.jwks_url",
    broken: ({ caep: { jwks_url } }) =>
      jwks_url?.startsWith("http:") === true && !isLoopbackHost(new URL(jwks_url).hostname),
    message: "the keys of security events must be served over https, or an attacker can replace them",
  },
  {
    key: "oidc.role_map",
    broken: ({ oidc }) => oidc.issuer !== null && Object.keys(oidc.role_map).length === 0,
    message: "no group has a role, so every token is rejected (403)",
    only_warn: true,
  },
];

const isHostBelow = (host: string, domain: string): boolean => host === domain || host.endsWith(`.${domain}`);

const isSecureUrl = (url: string): boolean => {
  const { protocol, hostname } = new URL(url);
  return protocol === "https:" || hostname === "localhost" || hostname.endsWith(".localhost");
};

export function settingsRules(settings: LoadedSettings, verdicts: Verdicts): void {
  for (const rule of RULES) {
    if (!rule.broken(settings)) continue;
    if (rule.only_warn) verdicts.warn(rule.key, rule.message);
    else verdicts.refuse(rule.key, rule.message);
  }
}
