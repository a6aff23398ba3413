/** A server with every kind of signed approval, and what somebody might do to its bundles. */

import type { SigningKey } from "../../../src/evidence/signing.ts";
import type { StateStore } from "../../../src/govern/port/store.ts";
import { assertionHash } from "../../../src/govern/signing/payload.ts";
import { toCanonicalJson } from "../../../src/kernel/json/canonical.ts";
import type { JsonObject, JsonValue } from "../../../src/kernel/json/json.ts";
import { MemoryStore } from "../../../src/store/memory/store.ts";
import { LEDGER, SIGN_AT, SIGNED_POLICY, type SigningServer, signingServer } from "../../support/signing.ts";
import { bundleOf, laidOut } from "./bundles.ts";
import { leafOf, plainRoot } from "./oracle.ts";
import { rehash } from "./tamper.ts";

export interface SignedWorld {
  s: SigningServer;
  store: StateStore;
  /** A run with an approval, an offer, a pre-approval, a break-glass and a plan. */
  run_id: string;
}

/** People of three algorithms, who made every kind of signed decision. */
export async function signedWorld(config = ""): Promise<SignedWorld> {
  const store = new MemoryStore();
  const s = await signingServer({ store, config, policy: `${SIGNED_POLICY}retention: {default_days: 30}\n` });
  await s.enrol("ann", "ES256");
  await s.enrol("bob", "RS256");
  await s.enrol("admin", "EdDSA");
  const run_id = "signed";
  const call = async (key: string, method: string, path: string, body: object) => {
    const answer = await s.call(key, method, path, body);
    if (answer.status >= 400) throw new Error(`${path}: ${answer.text}`);
    return answer;
  };
  const ask = async (amount: number) => {
    const body = { tool: "pay.refund", args: { amount }, reason: "because" };
    const asked = await call("agent", "POST", `/v1/runs/${run_id}/intents`, body);
    return /apr_[0-9a-f-]{36}/.exec(asked.text)?.[0] ?? "";
  };
  const expires_at = new Date(s.env.now() + 3_600_000).toISOString();
  await call("agent", "POST", "/v1/runs", { run_id, permissions: ["pay"] });

  const first = await ask(1);
  const signature = await s.signed("ann", { kind: "approval", id: first, decision: "approve" });
  await call("ann", "POST", `/v1/approvals/${first}/approve`, { signature, note: "fine by me" });
  await ask(1);

  const second = await ask(2);
  const offer = { args: { amount: 20 } };
  const offered = await s.signed("bob", { kind: "offer", id: second, decision: "offer", body: { offer } });
  await call("bob", "POST", `/v1/approvals/${second}/deny`, { offer, signature: offered });

  const third = await ask(3);
  const body = { reason: "nobody else" };
  const glass = await s.signed("admin", { kind: "break_glass", id: third, decision: "approve", body });
  await call("admin", "POST", `/v1/approvals/${third}/break-glass`, { ...body, signature: glass });

  const ahead = { tool: "pay.refund", args: { amount: 4 } };
  const given = await s.signed("ann", { kind: "pre_approval", id: run_id, decision: "approve", body: ahead });
  await call("ann", "POST", `/v1/runs/${run_id}/approvals`, { ...ahead, signature: given });

  const calls = [5, 6].map((amount) => ({ tool: "pay.refund", args: { amount } }));
  const planned = (await call("agent", "POST", `/v1/runs/${run_id}/plans`, { reason: "both", calls })).body;
  const plan = await s.signed("bob", { kind: "plan", id: planned.id, decision: "approve" });
  await call("bob", "POST", `/v1/plans/${planned.id}/approve`, { signature: plan });

  const match = { tool: "pay.refund", actor: "nobody" };
  const terms = { match, rules: ["refunds"], max_uses: 2, expires_at, reason: "the sale" };
  const grant = await s.signed("ann", { kind: "grant", decision: "grant", body: terms });
  await call("ann", "POST", "/v1/grants", { ...terms, signature: grant });

  const lent = { to: "bob", expires_at, reason: "away" };
  const delegation = await s.signed("ann", { kind: "delegation", decision: "delegate", body: lent });
  await call("ann", "POST", "/v1/delegations", { ...lent, signature: delegation });
  return { s, store, run_id };
}

/** The approvers file of the world's people. */
export function approversOf({ people }: SigningServer, change: object = {}): JsonObject {
  const approvers = Object.entries(people).map(([name, one]) => ({ name, groups: [], keys: [one.entry()] }));
  return {
    version: 1,
    ledger: LEDGER,
    rp_id: new URL(SIGN_AT).hostname,
    origins: [SIGN_AT],
    approvers,
    require: [],
    ...change,
  } as unknown as JsonObject;
}

interface Carried {
  payload: Record<string, JsonValue>;
  assertion: { id: string; rawId: string; type: string; response: Record<string, string> };
  public_key: string;
  alg: string;
  subject?: { calls: JsonObject[] };
}
type SignedBundle = JsonObject & { signatures: Carried[]; records: JsonObject[] };
type Change = (bundle: SignedBundle, s: SigningServer) => void;

/** Replaces an assertion, and the records that name it, as somebody with the signing key of the bundle would. */
function rename(bundle: SignedBundle, one: Carried, change: () => void): void {
  const before = assertionHash(one.assertion as never);
  change();
  const after = assertionHash(one.assertion as never);
  retell(bundle, (record) => {
    const detail = record["detail"];
    if (typeof detail === "string") record["detail"] = detail.replace(before, after);
  });
}

/** Changes records of a whole ledger, and links them again. */
function retell(bundle: SignedBundle, change: (record: JsonObject) => void): void {
  let prev = "0".repeat(64);
  bundle.records = bundle.records.map((record) => {
    const line = rehash(toCanonicalJson(record), (fields) => {
      change(fields as JsonObject);
      fields["prev"] = prev;
    });
    const made = JSON.parse(line) as JsonObject;
    prev = made["hash"] as string;
    return made;
  });
}

const ofKind = ({ signatures }: SignedBundle, kind: string) =>
  signatures.find(({ payload }) => payload["kind"] === kind)!;
const bytes = (text: string) => Buffer.from(text, "base64url");
const changeByte = (text: string, at: number) => {
  const data = bytes(text);
  data[at < 0 ? data.length + at : at]! ^= 1;
  return data.toString("base64url");
};
const recordOf = (bundle: SignedBundle, one: Carried, event = "approved") =>
  bundle.records.find(
    (record) =>
      record["event"] === event && String(record["detail"]).endsWith(assertionHash(one.assertion as never)),
  )!;

/** Lies of somebody who holds no approver's passkey, but the ledger and the signing key. None may pass. */
export const SIGNED_LIES: Readonly<Record<string, Change>> = {
  "a signature left out": ({ signatures }) => void signatures.splice(1, 1),
  "all signatures left out": (bundle) => void delete (bundle as JsonObject)["signatures"],
  "a signature that no record names": (bundle, s) => {
    const soft = s.people["ann"]!;
    const { payload } = bundle.signatures[0]!;
    const { clientExtensionResults: _, ...assertion } = soft.sign({ payload }).assertion;
    bundle.signatures.push({ ...bundle.signatures[0]!, assertion: assertion as never });
  },
  "a signature made in another site's frame": (bundle, s) => {
    const one = ofKind(bundle, "approval");
    const { payload } = one;
    const { assertion } = s.people["ann"]!.sign({ payload }, { cross_origin: true });
    const { clientExtensionResults: _, ...framed } = assertion;
    rename(bundle, one, () => {
      one.assertion = framed as never;
    });
  },
  "a signature twice": ({ signatures }) => void signatures.push(signatures[0]!),
  "other arguments in the record": (bundle) => {
    const record = recordOf(bundle, ofKind(bundle, "approval"));
    const seq = record["seq"];
    retell(bundle, (one) => {
      if (one["seq"] === seq) one["args_hash"] = `sha256:${"0".repeat(64)}`;
    });
  },
  "another tool in the record": (bundle) => {
    const seq = recordOf(bundle, ofKind(bundle, "pre_approval"))["seq"];
    retell(bundle, (one) => {
      if (one["seq"] === seq) one["tool"] = "pay.free";
    });
  },
  "another person in the record": (bundle) => {
    const seq = recordOf(bundle, ofKind(bundle, "offer"))["seq"];
    retell(bundle, (one) => {
      if (one["seq"] === seq) one["actor"] = "ann";
    });
  },
  "a record of a later time": (bundle) => {
    const seq = recordOf(bundle, ofKind(bundle, "approval"))["seq"];
    retell(bundle, (one) => {
      if (one["seq"] === seq) one["ts_ms"] = Number(one["ts_ms"]) + 1_000_000_000;
    });
  },
  "one signature for two approvals": (bundle) => {
    const [one, other] = [ofKind(bundle, "approval"), ofKind(bundle, "break_glass")];
    const from = recordOf(bundle, one);
    const seq = recordOf(bundle, other)["seq"];
    bundle.signatures = bundle.signatures.filter((each) => each !== other);
    retell(bundle, (record) => {
      if (record["seq"] !== seq) return;
      for (const name of ["detail", "args_hash", "tool", "actor"]) record[name] = from[name]!;
    });
  },
  "a signed grant as an approval": (bundle) => {
    const hash = assertionHash(ofKind(bundle, "grant").assertion as never);
    const seq = recordOf(bundle, ofKind(bundle, "break_glass"))["seq"];
    bundle.signatures = bundle.signatures.filter((each) => each !== ofKind(bundle, "break_glass"));
    retell(bundle, (record) => {
      if (record["seq"] === seq) record["detail"] = `request x; signed ${hash}`;
    });
  },
  "a planned call that the plan has not": (bundle) => {
    const seq = recordOf(bundle, ofKind(bundle, "plan"))["seq"];
    retell(bundle, (one) => {
      if (one["seq"] === seq) one["args_hash"] = `sha256:${"1".repeat(64)}`;
    });
  },
  "another plan than the signed one": (bundle) => {
    ofKind(bundle, "plan").subject!.calls.push({ tool: "pay.free", args_hash: "x" });
  },
  "no plan with the signature": (bundle) => void delete ofKind(bundle, "plan").subject,
  "a swapped grant": (bundle) => {
    const hash = assertionHash(ofKind(bundle, "grant").assertion as never);
    retell(bundle, (one) => {
      if (String(one["detail"]).endsWith(hash)) one["detail"] = `grt_other: pay.*; signed ${hash}`;
    });
  },
  "a payload changed": ({ signatures }) => {
    signatures[0]!.payload["card_hash"] = `sha256:${"2".repeat(64)}`;
  },
  "a denial as an approval": ({ signatures }) => {
    signatures[0]!.payload["decision"] = "deny";
  },
  "a further member of the payload": ({ signatures }) => {
    signatures[0]!.payload["note"] = "x";
  },
  "a further member of the assertion": (bundle) => {
    const one = bundle.signatures[0]!;
    rename(bundle, one, () => {
      (one.assertion as never as JsonObject)["note"] = "x";
    });
  },
  "another key": (bundle, s) => {
    const one = ofKind(bundle, "approval");
    one.public_key = s.people["bob"]!.spki.toString("base64");
  },
  "another algorithm": (bundle) => {
    ofKind(bundle, "approval").alg = "EdDSA";
  },
  "an unknown algorithm": (bundle) => {
    ofKind(bundle, "approval").alg = "none";
  },
  "a changed ES256 signature": (bundle) => change(bundle, "approval", "signature", -1),
  "a changed RS256 signature": (bundle) => change(bundle, "offer", "signature", 9),
  "a changed EdDSA signature": (bundle) => change(bundle, "break_glass", "signature", 9),
  "a cut signature": (bundle) => {
    const one = ofKind(bundle, "offer");
    const { response } = one.assertion;
    rename(bundle, one, () => {
      response["signature"] = bytes(response["signature"]!).subarray(0, -1).toString("base64url");
    });
  },
  "changed authenticator data": (bundle) => change(bundle, "approval", "authenticatorData", 35),
  "another relying party": (bundle) => change(bundle, "approval", "authenticatorData", 0),
  "no verification of the person": (bundle) => {
    const one = ofKind(bundle, "approval");
    const { response } = one.assertion;
    rename(bundle, one, () => {
      const data = bytes(response["authenticatorData"]!);
      data[32] = 0x01;
      response["authenticatorData"] = data.toString("base64url");
    });
  },
  "changed client data": (bundle) => change(bundle, "break_glass", "clientDataJSON", -4),
  "an imitation of a signature in a note": (bundle) => {
    const seq = bundle.records.find((record) => record["event"] === "approved")!["seq"];
    retell(bundle, (one) => {
      if (one["seq"] === seq) one["detail"] = `request x: fine; signed ${"a".repeat(64)}`;
    });
  },
};

function change(bundle: SignedBundle, kind: string, part: string, at: number): void {
  const one = ofKind(bundle, kind);
  const { response } = one.assertion;
  rename(bundle, one, () => {
    response[part] = changeByte(response[part]!, at);
  });
}

/** Every lie, in a bundle that somebody with the ledger and its signing key made. */
export async function liesOf({ s, store }: SignedWorld, key: SigningKey): Promise<[string, string][]> {
  const good = await bundleOf(store, key);
  return Object.entries(SIGNED_LIES).map(([name, lie]) => {
    const bundle = JSON.parse(good) as SignedBundle;
    lie(bundle, s);
    return [name, signedAgain(bundle, key)];
  });
}

/** Computes head, tree and signature of changed records again. */
function signedAgain(bundle: SignedBundle, key: SigningKey): string {
  const { records } = bundle;
  const leaves = records.map((record) => leafOf(toCanonicalJson(record)));
  const facts = {
    format: "svc-bundle",
    version: 1,
    kind: "ledger",
    run_id: null,
    exported_ms: bundle["exported_ms"]!,
    head: records.at(-1)!["hash"]!,
    count: records.length,
    first_seq: 0,
    last_seq: records.length - 1,
    tree: { size: records.length, root: plainRoot(leaves) },
    key_id: key.key_id,
  };
  return laidOut({ ...bundle, ...facts, signature: key.sign("bundle", facts) } as unknown as JsonObject);
}
