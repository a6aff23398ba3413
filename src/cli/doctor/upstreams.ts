/**
 * Checks sign-in at upstreams: that each one's issuer can be discovered and accepts this gateway, and that `token_key`
 * is private and decrypts the stored tokens.
 */
import { stat } from "node:fs/promises";
import { isAbsolute, relative, resolve } from "node:path";
import { TokenVault } from "../../auth/token-vault.ts";
import { UpstreamOAuth } from "../../auth/upstream-oauth.ts";
import { needsConsent } from "../../config/sections/gateway.ts";
import type { LoadedSettings } from "../../config/settings.ts";
import { createEgress, type EgressClient } from "../../egress/egress.ts";
import { allRows } from "../../govern/port/pages.ts";
import type { StateStore } from "../../govern/port/store.ts";
import { sealedTextsOf } from "../../govern/upstreams/consent.ts";
import { messageOf } from "../../kernel/errors.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import { CALLBACK_PATH, CLIENT_PATH } from "../../operations/upstreams/connect.ts";
import { type AuthorizedUpstream, authorizedUpstreams } from "../../operations/upstreams/upstream-access.ts";
import {
  type CheckContext,
  type DoctorFinding,
  failFinding,
  failFindings,
  okFinding,
  warnFinding,
} from "./finding.ts";

const SIGN_IN = "upstreams";
const TOKEN_KEY = "token_key";
const CREATE_KEY = "create the key with: openssl rand -out <file> 32";

/** Discovers the issuer of each upstream. Every URL of its documents passes the egress rules. */
export async function checkUpstreamSignIns({ settings, egress }: CheckContext): Promise<DoctorFinding[]> {
  const upstreams = authorizedUpstreams({ settings });
  if (upstreams.length === 0) return [];
  const strict = createEgress({ ...settings.egress, block_private: true });
  try {
    return await Promise.all(upstreams.map((spec) => checkSignIn(spec, settings, { egress, strict })));
  } finally {
    await strict.close();
  }
}

async function checkSignIn(
  spec: AuthorizedUpstream,
  settings: LoadedSettings,
  { egress, strict }: { egress: EgressClient; strict: EgressClient },
): Promise<DoctorFinding> {
  const oauth = new UpstreamOAuth(spec, egress, strict);
  try {
    if (!needsConsent(spec)) {
      const issuer = spec.auth.issuer ?? settings.oidc.issuer!;
      await oauth.checkExchange(issuer);
      return okFinding(SIGN_IN, `${spec.name}: ${new URL(issuer).host} exchanges the tokens of callers`);
    }
    const redirect_uri = `${settings.console_url}${CALLBACK_PATH}`;
    const document_base = `${settings.console_url}${CLIENT_PATH}`;
    const { issuer, client } = await oauth.checkConsent({ document_base, redirect_uri });
    const how = client === "configured" ? `${client}, with the redirect URI ${redirect_uri}` : client;
    return okFinding(
      SIGN_IN,
      `${spec.name}: people sign in at ${new URL(issuer).host}; the client is ${how}`,
    );
  } catch (error) {
    const fix =
      "fix the upstream, its auth settings or the egress rules; until then nobody can connect to it";
    return failFinding(SIGN_IN, `${spec.name}: ${messageOf(error)}`, fix);
  }
}

/** Checks the key files themselves. */
export async function checkTokenKey({ settings }: CheckContext): Promise<DoctorFinding[]> {
  const { token_key: current, token_key_previous: previous, data, store } = settings;
  if (current === null) return [];
  try {
    vaultOf(current, previous);
  } catch (error) {
    return failFindings(TOKEN_KEY, error, CREATE_KEY);
  }
  const findings = [okFinding(TOKEN_KEY, `${current} holds a key`)];
  for (const path of previous === null ? [current] : [current, previous]) {
    if (((await stat(path)).mode & 0o027) !== 0)
      findings.push(
        warnFinding(TOKEN_KEY, `${path} can be read or changed by other accounts`, `chmod 600 ${path}`),
      );
    if (store !== "postgres" && isWithin(data, path))
      findings.push(
        warnFinding(
          TOKEN_KEY,
          `${path} is in the data directory, so every backup holds the tokens with their key`,
          "move it to another directory, and set token_key",
        ),
      );
  }
  return findings;
}

/** Checks that the stored tokens can be decrypted, and whether the previous key is still needed. */
export async function tokenFindings(store: StateStore, settings: LoadedSettings): Promise<DoctorFinding[]> {
  const { token_key: current, token_key_previous: previous } = settings;
  if (current === null) return [];
  let vault: TokenVault;
  try {
    vault = vaultOf(current, previous);
  } catch {
    // The check of the key files reports it.
    return [];
  }
  let [unreadable, old] = [0, 0];
  for await (const { doc } of allRows(store, "upstream_consents"))
    for (const sealed of sealedTextsOf(doc))
      if (!vault.knows(sealed)) unreadable++;
      else if (!vault.isCurrent(sealed)) old++;
  if (unreadable > 0)
    return [
      failFinding(
        TOKEN_KEY,
        `${formatCountOf(unreadable, "stored text is", "stored texts are")} encrypted with another key`,
        "set that key as token_key_previous and run svc upstreams rotate; without it, people have to connect again",
      ),
    ];
  if (old > 0)
    return [
      warnFinding(
        TOKEN_KEY,
        `${formatCountOf(old, "stored text needs", "stored texts need")} token_key_previous`,
        "run svc upstreams rotate",
      ),
    ];
  return previous === null
    ? []
    : [warnFinding(TOKEN_KEY, "nothing is encrypted with token_key_previous", "remove token_key_previous")];
}

function vaultOf(current: string, previous: string | null): TokenVault {
  return new TokenVault({ current, previous }, (length) => new Uint8Array(length));
}

function isWithin(directory: string, path: string): boolean {
  const way = relative(resolve(directory), resolve(path));
  return !way.startsWith("..") && !isAbsolute(way);
}
