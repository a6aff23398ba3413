/** A small world for the adapters: notes that a governed agent writes, and a person who decides. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { open, type Run, type Svc } from "../../../src/index.ts";
import { sha256Hex } from "../../../src/kernel/hash.ts";
import { tempDir } from "../../support/tmp.ts";

const MANIFESTS = `
- {tool: notes_add, effect: compensable, permission: p, compensation: {tool: notes_remove, args: {id: $result.id}}}
- {tool: notes_send, effect: compensable, permission: p, compensation: {tool: notes_remove, args: {id: $result.id}}}
- {tool: notes_wipe, effect: irreversible, permission: p}
- {tool: notes_break, effect: idempotent, permission: p}
- {tool: notes_hang, effect: idempotent, permission: p}
- {tool: notes_remove, effect: idempotent, permission: p}
`;
const POLICY = `
version: 1
rules:
  - {id: send, match: {tool: notes_send}, action: require_approval, reason: a person looks at what is sent}
  - {id: wipe, match: {tool: notes_wipe}, action: deny, reason: nothing is wiped, hint: remove one note}
`;

interface Args {
  text?: string | undefined;
  id?: string | undefined;
}

export interface World {
  svc: Svc;
  /** Existing objects, by id. */
  notes: Map<string, string>;
  /** How often each tool's own code ran. */
  ran: Record<string, number>;
  code: Record<string, (args: Args) => Promise<unknown>>;
  run(): Promise<Run>;
  /** Decides with the person's own key. */
  decide(id: string, verb?: "approve" | "deny"): Promise<unknown>;
  /** The steps of a run: tool and status. */
  steps(run: Run): Promise<string[]>;
  close(): Promise<void>;
}

export async function openWorld(): Promise<World> {
  const folder = tempDir("adapters");
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text, { mode: 0o600 });
  const ann = { name: "ann", role: "approver", key_sha256: sha256Hex("ann"), max_permissions: [] };
  write("manifests.yaml", MANIFESTS);
  write("policy.yaml", POLICY);
  write("keys.json", JSON.stringify([ann]));
  write("svc.config.yaml", "manifests: manifests.yaml\npolicy: policy.yaml\nkeys: keys.json\n");
  const svc = await open({ config: join(folder, "svc.config.yaml"), data: join(folder, "data") });
  const notes = new Map<string, string>();
  const ran: World["ran"] = {};
  let last = 0;
  const counted = (name: string, work: (args: Args) => unknown) =>
    [
      name,
      async (args: Args) => {
        ran[name] = (ran[name] ?? 0) + 1;
        return work(args);
      },
    ] as const;
  const put = ({ text = "" }: Args) => {
    const id = `n${++last}`;
    notes.set(id, text);
    return { id };
  };
  return {
    svc,
    notes,
    ran,
    code: Object.fromEntries([
      counted("notes_add", put),
      counted("notes_send", put),
      counted("notes_wipe", () => notes.clear()),
      counted("notes_break", () => {
        throw new Error("the disk is full");
      }),
      counted("notes_hang", () => new Promise(() => {})),
      counted("notes_remove", ({ id = "" }) => notes.delete(id)),
    ]),
    run: () => svc.run({ actor: "bot", permissions: ["p"] }),
    decide: (id, verb = "approve") => svc.approvals[verb](id, { key: "ann", note: "seen" }),
    async steps(run) {
      const actions = [];
      for (let step = 0; ; step++) {
        const status = await run.status(step).catch(() => undefined);
        if (status === undefined) return actions;
        actions.push(status);
      }
    },
    close: () => svc.close(),
  };
}
