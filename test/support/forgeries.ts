/**
 * The forging server: everything that a server, or somebody in its place, can hand over instead of what the approvers
 * signed. A surface with an approvers file must refuse each of them.
 */
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { keyedHash, sha256Hex } from "../../src/kernel/hash.ts";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import { type AssertionLies, SoftPasskey } from "./passkeys.ts";
import { LEDGER, SIGN_AT } from "./signing.ts";
import { tempDir } from "./tmp.ts";

/** The call as the surface asked the server for it. */
export interface AskedCall {
  run_id: string;
  tool: string;
  args: JsonValue;
}

interface Lies {
  /** What the server answers to the intent. */
  decision: { approval_id?: string };
  /** What it answers when it is asked for the signatures. */
  evidence(asked: AskedCall): object;
}

/** What a surface under test does. The server's lies come from `lies`. */
export interface ForgedSurface {
  lies: Lies;
  /** Opens a run. A call answers whether the tool ran, and why not. */
  open(): Promise<(amount: number) => Promise<{ ran: boolean; why: string }>>;
}

const ann = new SoftPasskey(SIGN_AT);
const bob = new SoftPasskey(SIGN_AT, { alg: "EdDSA" });
const SOME_APPROVAL = "apr_00000000-0000-4000-8000-000000000001";
const thief = new SoftPasskey(SIGN_AT);

/** Writes an approvers file for the tools. Ann is in the group; Bob is not. */
export function forgedApprovers(tool: string, change: object = {}): string {
  const file = join(tempDir("forgeries"), "approvers.json");
  writeApprovers(file, tool, change);
  return file;
}

export function writeApprovers(file: string, tool: string, change: object = {}): void {
  const approvers = [
    { name: "ann", groups: ["finance"], keys: [ann.entry()] },
    { name: "bob", groups: [], keys: [bob.entry()] },
  ];
  const require = [{ tool, groups: ["finance"], quorum: 1 }];
  const where = { version: 1, ledger: LEDGER, rp_id: new URL(SIGN_AT).hostname, origins: [SIGN_AT] };
  writeFileSync(file, JSON.stringify({ ...where, approvers, require, ...change }));
}

let n = 0;

/** The request for a call. Each call of a test has another amount. */
const requestOf = ({ run_id, args }: AskedCall) =>
  `apr_${sha256Hex(run_id + JSON.stringify(args)).slice(0, 32)}`;
const nextAmount = () => ++n;

/** What an approver's passkey really signed, and the salt to go with it. `lies` change what the passkey is asked at. */
function signed(asked: AskedCall, by = ann, more: object = {}, lies: AssertionLies = {}): object {
  const { run_id, tool, args } = asked;
  const payload = {
    v: 1,
    ledger: LEDGER,
    kind: "approval",
    id: requestOf(asked),
    decision: "approve",
    by: by === bob ? "bob" : "ann",
    run_id,
    actor: "agent",
    tool,
    args_hash: keyedHash("salt", args),
    card_hash: `sha256:${"c".repeat(64)}`,
    policy_hash: `sha256:${"d".repeat(64)}`,
    expires_ms: Date.now() + 3_600_000,
    nonce: `nonce-${n++}`,
    ...more,
  };
  return by.sign({ payload }, lies);
}

/** The signed content, with these members changed afterwards. */
function changedAfter(asked: AskedCall, members: object, signedWith: object = {}): object {
  const one = signed(asked, ann, signedWith) as { payload: object };
  return evidence({ ...one, payload: { ...one.payload, ...members } });
}

const evidence = (...signatures: object[]) => ({ salt: "salt", signatures });
const honest = (asked: AskedCall) => evidence(signed(asked));

type Forgery = (surface: ForgedSurface, file: string, tool: string) => Promise<{ ran: boolean; why: string }>;

/** One call with these lies. */
const with_ =
  (forged: (asked: AskedCall) => object): Forgery =>
  async ({ lies, open }) => {
    Object.assign(lies, { decision: { approval_id: SOME_APPROVAL }, evidence: forged });
    return (await open())(nextAmount());
  };

/** Another user of the machine changes the approvers file while it is in use. The old one stays active. */
const swapped =
  (change: object, forged: (asked: AskedCall) => object): Forgery =>
  async ({ lies, open }, file, tool) => {
    const make = await open();
    writeApprovers(file, tool, change);
    chmodSync(file, 0o666);
    Object.assign(lies, { decision: { approval_id: SOME_APPROVAL }, evidence: forged });
    return make(nextAmount()).finally(() => chmodSync(file, 0o644));
  };

/** Every row gets no call through. */
const FORGERIES: Readonly<Record<string, Forgery>> = {
  "a plain allow": async ({ lies, open }) => {
    Object.assign(lies, { decision: {}, evidence: () => ({}) });
    return (await open())(nextAmount());
  },
  "an approval that nobody gave": with_((asked) => {
    const lie = signed(asked, thief) as { assertion: object };
    return evidence({ ...lie, assertion: { ...lie.assertion, id: ann.id, rawId: ann.id } });
  }),
  "an approval of a stranger": with_((asked) => evidence(signed(asked, thief))),
  "an approval of somebody outside the group": with_((asked) => evidence(signed(asked, bob))),
  "swapped arguments": with_((asked) => evidence(signed({ ...asked, args: { amount: 2, other: true } }))),
  "another tool": with_((asked) => evidence(signed({ ...asked, tool: "pay.other" }))),
  "another run": with_((asked) => evidence(signed({ ...asked, run_id: "another" }))),
  "another run's salt": with_((asked) => ({ ...(honest(asked) as object), salt: "of another run" })),
  "a stripped signature": with_((asked) => {
    const { payload, assertion } = signed(asked) as { payload: object; assertion: { response: object } };
    return evidence({
      payload,
      assertion: { ...assertion, response: { ...assertion.response, signature: "" } },
    });
  }),
  "no signature at all": with_(() => evidence()),
  "a card that changed after it was shown": with_((asked) =>
    changedAfter(asked, { card_hash: `sha256:${"e".repeat(64)}` }),
  ),
  "an end that was put off after signing": with_((asked) =>
    changedAfter(asked, { expires_ms: Date.now() + 3_600_000 }, { expires_ms: Date.now() - 120_000 }),
  ),
  "another tenant's approval": with_((asked) =>
    evidence(signed({ ...asked, run_id: "theirs" }, ann, { tenant: "theirs" })),
  ),
  "another tenant's approval that was moved here": with_((asked) =>
    changedAfter(asked, { tenant: "ours", run_id: asked.run_id }, { tenant: "theirs", run_id: "theirs" }),
  ),
  "a signature for another relying party": with_((asked) =>
    evidence(signed(asked, ann, {}, { rp_id: "example.org" })),
  ),
  "a signature at another origin": with_((asked) =>
    evidence(signed(asked, ann, {}, { origin: "https://svc.example.org" })),
  ),
  "a signature without the person verified": with_((asked) =>
    evidence(signed(asked, ann, {}, { flags: 0x01 })),
  ),
  "a signed undo, grant or passkey": with_((asked) =>
    evidence(...["compensation", "grant", "delegation"].map((kind) => signed(asked, ann, { kind }))),
  ),
  "a key that was revoked": async (surface, file, tool) => {
    const approvers = [{ name: "ann", groups: ["finance"], keys: [ann.entry(true)] }];
    writeApprovers(file, tool, { approvers });
    return with_(honest)(surface, file, tool);
  },
  "an approvers file that others swapped": swapped(
    { approvers: [{ name: "ann", groups: ["finance"], keys: [thief.entry()] }] },
    (asked) => evidence(signed(asked, thief)),
  ),
  "a list of required tools that others emptied": swapped({ require: [] }, () => ({})),
  "a denial": with_((asked) => evidence(signed(asked, ann, { decision: "deny" }))),
  "an approval that ended": with_((asked) =>
    evidence(signed(asked, ann, { expires_ms: Date.now() - 120_000 })),
  ),
  "another ledger": with_((asked) => evidence(signed(asked, ann, { ledger: "example.com/other" }))),
  replay: async ({ lies, open }) => {
    const kept = new Map<string, object>();
    const once = (asked: AskedCall) => {
      const key = asked.run_id + JSON.stringify(asked.args);
      const found = kept.get(key) ?? honest(asked);
      kept.set(key, found);
      return found;
    };
    Object.assign(lies, { decision: { approval_id: SOME_APPROVAL }, evidence: once });
    const make = await open();
    const amount = nextAmount();
    expect(await make(amount)).toEqual({ ran: true, why: "" });
    return make(amount);
  },
  "a lowered quorum": async (surface, file, tool) => {
    writeApprovers(file, tool, { require: [{ tool, groups: [], quorum: 2 }] });
    return with_((asked) => evidence(signed(asked)))(surface, file, tool);
  },
  "one person twice for a quorum of two": async (surface, file, tool) => {
    writeApprovers(file, tool, { require: [{ tool, groups: [], quorum: 2 }] });
    return with_((asked) => evidence(signed(asked), signed(asked)))(surface, file, tool);
  },
};

export const FORGERY_NAMES = Object.keys(FORGERIES);

/** Plays one forgery; the tool must not run. */
export async function playForgery(
  name: string,
  surface: ForgedSurface,
  { file, tool }: { file: string; tool: string },
): Promise<void> {
  writeApprovers(file, tool);
  const { ran, why } = await FORGERIES[name]!(surface, file, tool);
  // A process that starts with a file that others can write refuses the file.
  const reason = /the approvers file requires signatures|can be written by others/;
  expect([name, ran, why]).toEqual([name, false, expect.stringMatching(reason)]);
  expect(why.includes("used before")).toBe(name === "replay");
}

/** A real signature passes, also with a quorum of two. */
export async function playHonestly(
  surface: ForgedSurface,
  { file, tool }: { file: string; tool: string },
): Promise<void> {
  writeApprovers(file, tool);
  Object.assign(surface.lies, { decision: { approval_id: SOME_APPROVAL }, evidence: honest });
  expect(await (await surface.open())(nextAmount())).toEqual({ ran: true, why: "" });
  writeApprovers(file, tool, { require: [{ tool, groups: [], quorum: 2 }] });
  surface.lies.evidence = (asked) => evidence(signed(asked), signed(asked, bob));
  expect(await (await surface.open())(nextAmount())).toEqual({ ran: true, why: "" });
}
