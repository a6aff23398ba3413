/** Checks authentication: the key file, its mode and entries, and the OIDC issuer. */

import { stat } from "node:fs/promises";
import { canRequestAndApprove, type KeyEntry, keyExpiry } from "../../auth/key-entry.ts";
import { KeyFile, modeWarning } from "../../auth/key-file.ts";
import { OidcVerifier } from "../../auth/oidc.ts";
import { SecurityEventReceiver } from "../../auth/security-events.ts";
import { IssuerSignIn } from "../../auth/sign-in.ts";
import { keyFileOf } from "../../config/settings.ts";
import { isExpired } from "../../govern/expiry.ts";
import { messageOf } from "../../kernel/errors.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import {
  type CheckContext,
  type DoctorFinding,
  failFinding,
  failFindings,
  firstNames,
  okFinding,
  warnFinding,
} from "./finding.ts";

const CAEP = "caep";
const KEYS = "keys";
const OIDC = "oidc";

export async function checkKeys({ settings, env }: CheckContext): Promise<DoctorFinding[]> {
  const path = keyFileOf(settings);
  if (path === null) {
    if (settings.oidc.issuer !== null)
      return [okFinding(KEYS, "no key file: only tokens of the OIDC issuer are accepted")];
    const fix = "create a key with svc keys add <name> --role admin --keys keys.json, and set SVC_KEYS";
    return [
      warnFinding(KEYS, "no keys and no OIDC issuer are configured, so a server rejects every request", fix),
    ];
  }
  let entries: readonly KeyEntry[];
  try {
    entries = (await KeyFile.open(path, { env })).ring.entries;
  } catch (error) {
    return failFindings(KEYS, error, "fix the key file; list its entries with svc keys list");
  }
  const findings = [okFinding(KEYS, `${formatCountOf(entries.length, "key")} in ${path}`)];
  const mode = modeWarning((await stat(path)).mode);
  if (mode !== undefined) findings.push(warnFinding(KEYS, `${path}: ${mode}`, `chmod 600 ${path}`));
  return [...findings, ...entryFindings(entries, env.now())];
}

interface EntryRule {
  broken(entry: KeyEntry, now: number): boolean;
  /** Text after `<n> keys `. */
  what: string;
  fix: string;
}

const RULES: readonly EntryRule[] = [
  {
    broken: canRequestAndApprove,
    what: "can request a call and also approve it",
    fix: "give agents and people separate keys, or set approvals.four_eyes: true in the policy",
  },
  { broken: (entry, now) => isExpired(keyExpiry(entry), now), what: "expired", fix: "delete or renew them" },
  {
    broken: (entry) => entry.roles.includes("agent") && entry.max_permissions.length === 0,
    what: "of agents cannot request any permission",
    fix: "set max_permissions on them",
  },
];

/** Problems of enabled keys. Disabled keys do no harm. */
function entryFindings(entries: readonly KeyEntry[], now: number): DoctorFinding[] {
  const enabled = entries.filter(({ disabled }) => !disabled);
  const findings = RULES.flatMap(({ broken, what, fix }) => {
    const names = enabled.filter((entry) => broken(entry, now)).map(({ name }) => name);
    return names.length === 0
      ? []
      : [warnFinding(KEYS, `${formatCountOf(names.length, "key")} ${what}: ${firstNames(names)}`, fix)];
  });
  if (!enabled.some((entry) => entry.roles.includes("admin") && !isExpired(keyExpiry(entry), now))) {
    const fix = "create one: svc keys add <name> --role admin";
    findings.push(
      warnFinding(
        KEYS,
        "no enabled key has the admin role, so nobody can halt or manage keys over HTTP",
        fix,
      ),
    );
  }
  return findings;
}

/**
 * Runs OIDC discovery to check that the server can verify tokens. Sends none of the service's data.
 */
export async function checkOidc({ settings, egress, env }: CheckContext): Promise<DoctorFinding[]> {
  const { issuer, audience, role_map, tenant_map, groups_claim, max_permissions } = settings.oidc;
  if (issuer === null) return [];
  const findings: DoctorFinding[] = [];
  const refused = await egress.check(issuer);
  const verifier = new OidcVerifier(
    { issuer, audience, role_map, tenant_map, groups_claim, max_permissions },
    { egress, env },
  );
  const problem = refused?.message ?? (await verifier.doctor());
  if (problem === undefined)
    findings.push(okFinding(OIDC, `${new URL(issuer).host} answers discovery and serves its keys`));
  else
    findings.push(
      failFinding(OIDC, `discovery failed: ${problem}`, "until it works, requests with tokens fail with 503"),
    );
  const { client_id, client_secret } = settings.oidc;
  if (client_id !== null && problem === undefined) {
    const signIn = new IssuerSignIn({ issuer, client_id, client_secret, groups_claim }, { egress, verifier });
    const missing = await signIn.check().then(() => null, messageOf);
    if (missing !== null)
      findings.push(
        failFinding(
          OIDC,
          missing,
          "people cannot sign in to the console; fix the configuration of the issuer",
        ),
      );
  }
  if (max_permissions === null && Object.values(role_map).includes("agent")) {
    const text = "agents with a token can request every permission that the manifests declare";
    findings.push(warnFinding(OIDC, text, "set oidc.max_permissions to cap them by group"));
  }
  return findings;
}

/** Fetches the keys of the security events' transmitter. */
export async function checkSecurityEvents({ settings, egress, env }: CheckContext): Promise<DoctorFinding[]> {
  const { issuer, audience, jwks_url } = settings.caep;
  if (issuer === null || audience === null || jwks_url === null) return [];
  const refused = await egress.check(jwks_url);
  const receiver = new SecurityEventReceiver({ issuer, audience, jwks_url }, { egress, env });
  const problem = refused?.message ?? (await receiver.doctor());
  if (problem === undefined)
    return [okFinding(CAEP, `${new URL(jwks_url).host} serves the keys of security events`)];
  const fix = "until it works, security events are refused with 503 and halt nobody";
  return [failFinding(CAEP, `the keys of security events cannot be fetched: ${problem}`, fix)];
}
