/** Who may come in: the key file, its mode and its entries, and the OIDC issuer. */

import { stat } from "node:fs/promises";
import { asksAndApproves, type KeyEntry } from "../../auth/key-entry.ts";
import { KeyFile, modeWarning } from "../../auth/key-file.ts";
import { OidcVerifier } from "../../auth/oidc.ts";
import { IssuerSignIn } from "../../auth/sign-in.ts";
import { keyFileOf } from "../../config/settings.ts";
import { tryTimestamp } from "../../kernel/duration.ts";
import { messageOf } from "../../kernel/errors.ts";
import { plural } from "../../kernel/words.ts";
import { type DoctorFinding, fail, failures, firstNames, ok, type World, warn } from "./finding.ts";

const KEYS = "keys";
const OIDC = "oidc";

export async function checkKeys({ settings, env }: World): Promise<DoctorFinding[]> {
  const path = keyFileOf(settings);
  if (path === null) {
    if (settings.oidc.issuer !== null)
      return [ok(KEYS, "no key file: tokens of the OIDC issuer alone count")];
    const fix = "make a key with svc keys add, and set SVC_KEYS";
    return [warn(KEYS, "no keys and no OIDC issuer are configured, so a server refuses every request", fix)];
  }
  let entries: readonly KeyEntry[];
  try {
    entries = (await KeyFile.open(path, { env })).ring.entries;
  } catch (error) {
    return failures(KEYS, error, "correct the key file; svc keys list shows its entries");
  }
  const findings = [ok(KEYS, `${plural(entries.length, "key")} in ${path}`)];
  const mode = modeWarning((await stat(path)).mode);
  if (mode !== undefined) findings.push(warn(KEYS, `${path}: ${mode}`, `chmod 600 ${path}`));
  return [...findings, ...entryFindings(entries, env.now())];
}

interface EntryRule {
  broken(entry: KeyEntry, now: number): boolean;
  /** Behind `<n> keys `. */
  what: string;
  fix: string;
}

const RULES: readonly EntryRule[] = [
  {
    broken: asksAndApproves,
    what: "can ask for a call and also approve it",
    fix: "give agents and people separate keys, or set approvals.four_eyes: true in the policy",
  },
  { broken: (entry, now) => isExpired(entry, now), what: "expired", fix: "delete or renew them" },
  {
    broken: (entry) => entry.roles.includes("agent") && entry.max_permissions.length === 0,
    what: "of agents may request no permission at all",
    fix: "set max_permissions on them",
  },
];

/** What is wrong with entries that are switched on; a disabled key does no harm. */
function entryFindings(entries: readonly KeyEntry[], now: number): DoctorFinding[] {
  const enabled = entries.filter(({ disabled }) => !disabled);
  const findings = RULES.flatMap(({ broken, what, fix }) => {
    const names = enabled.filter((entry) => broken(entry, now)).map(({ name }) => name);
    return names.length === 0
      ? []
      : [warn(KEYS, `${plural(names.length, "key")} ${what}: ${firstNames(names)}`, fix)];
  });
  if (!enabled.some((entry) => entry.roles.includes("admin") && !isExpired(entry, now))) {
    const fix = "make one: svc keys add <name> --role admin";
    findings.push(
      warn(KEYS, "no enabled key has the admin role, so nobody can halt or manage keys over HTTP", fix),
    );
  }
  return findings;
}

function isExpired({ expires_at }: KeyEntry, now: number): boolean {
  return expires_at !== null && tryTimestamp(expires_at)! <= now;
}

/**
 * Discovery is a request, and the only one made without `--send-test` besides reading remote manifests:
 * it carries nothing of ours, and without it it is not known whether a token could be checked.
 */
export async function checkOidc({ settings, egress, env }: World): Promise<DoctorFinding[]> {
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
    findings.push(ok(OIDC, `${new URL(issuer).host} answers discovery and serves its keys`));
  else
    findings.push(fail(OIDC, `discovery failed: ${problem}`, "until it works, tokens are answered with 503"));
  const { client_id, client_secret } = settings.oidc;
  if (client_id !== null && problem === undefined) {
    const signIn = new IssuerSignIn({ issuer, client_id, client_secret, groups_claim }, { egress, verifier });
    const missing = await signIn.check().then(() => null, messageOf);
    if (missing !== null)
      findings.push(fail(OIDC, missing, "people cannot sign in at the console; have the issuer corrected"));
  }
  if (max_permissions === null && Object.values(role_map).includes("agent")) {
    const text = "agents with a token may request every permission that the manifests declare";
    findings.push(warn(OIDC, text, "set oidc.max_permissions to cap them by group"));
  }
  return findings;
}
