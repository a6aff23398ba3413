/** The same hundred rules in policy engines that aren't our dependencies, each set up as its own documentation says. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { messageOf } from "../src/kernel/errors.ts";
import { installed } from "./peer-install.ts";

const RULES = 100;
const MEASURE_MS = 300;
const toolOf = (i: number): string => (i === 0 ? "payments.refund" : `tool${i}.x`);
const TOOLS = Array.from({ length: RULES }, (_, i) => toolOf(i));
const CALL = { tool: "payments.refund", amount: 20 };

type Decision = () => unknown;
type Load = (name: string) => unknown;

interface Enforcer {
  enforce(...of: unknown[]): Promise<boolean>;
}
interface Oso {
  loadStr(policy: string): Promise<void>;
  isAllowed(actor: unknown, action: unknown, resource: unknown): Promise<boolean>;
}
interface PolicyEngine {
  loadPolicy(policy: object): void;
  evaluatePolicy(agent: string, context: object): { allowed: boolean; action: string };
}
interface AuditLogger {
  log(entry: { agentId: string; action: string; decision: string }): object;
}

interface Engine {
  package: string;
  version: string;
  /** Made ready once; the decision is true where the call may pass. */
  prepare(load: Load): Promise<Decision> | Decision;
}

const AGENT_GOVERNANCE = { package: "@microsoft/agent-governance-sdk", version: "4.0.0" };

/** Flat rules compare for equality alone, so the rules are a policy document, whose conditions know `>`. */
function agentGovernance(load: Load): {
  decide: () => { allowed: boolean; action: string };
  audit: AuditLogger;
} {
  const sdk = load(AGENT_GOVERNANCE.package) as {
    PolicyEngine: new () => PolicyEngine;
    AuditLogger: new () => AuditLogger;
  };
  const engine = new sdk.PolicyEngine();
  engine.loadPolicy({
    apiVersion: "governance.toolkit/v1",
    name: "bench",
    scope: "global",
    default_action: "allow",
    rules: TOOLS.map((tool) => ({
      name: tool,
      condition: `tool == '${tool}' and amount > 500`,
      ruleAction: "deny",
    })),
  });
  return { decide: () => engine.evaluatePolicy("did:bench", { ...CALL }), audit: new sdk.AuditLogger() };
}

const ENGINES: Record<string, Engine> = {
  casbin: {
    package: "casbin",
    version: "5.51.1",
    async prepare(load) {
      const { newEnforcer, newModelFromString, StringAdapter } = load("casbin") as {
        newEnforcer(model: unknown, adapter: unknown): Promise<Enforcer>;
        newModelFromString(text: string): unknown;
        StringAdapter: new (text: string) => unknown;
      };
      const model = newModelFromString(`
[request_definition]
r = tool, args
[policy_definition]
p = tool, when, eft
[policy_effect]
e = !some(where (p.eft == deny))
[matchers]
m = r.tool == p.tool && eval(p.when)`);
      const rules = TOOLS.map((tool) => `p, ${tool}, r.args.amount > 500, deny`);
      const enforcer = await newEnforcer(model, new StringAdapter(rules.join("\n")));
      return () => enforcer.enforce(CALL.tool, { amount: CALL.amount });
    },
  },
  "@casl/ability": {
    package: "@casl/ability",
    version: "7.0.1",
    prepare(load) {
      const { createMongoAbility, subject } = load("@casl/ability") as {
        createMongoAbility(rules: object[]): { can(action: string, on: unknown): boolean };
        subject(type: string, of: object): unknown;
      };
      const denials = TOOLS.map((tool) => ({
        inverted: true,
        action: "call",
        subject: "Tool",
        conditions: { tool, amount: { $gt: 500 } },
      }));
      const ability = createMongoAbility([{ action: "call", subject: "Tool" }, ...denials]);
      return () => ability.can("call", subject("Tool", { ...CALL }));
    },
  },
  oso: {
    package: "oso",
    version: "0.27.3",
    async prepare(load) {
      const { Oso } = load("oso") as { Oso: new () => Oso };
      const oso = new Oso();
      const denials = TOOLS.map((tool) => `denied("${tool}", args) if args.amount > 500;`);
      await oso.loadStr(["allow(_actor, action, args) if not denied(action, args);", ...denials].join("\n"));
      return () => oso.isAllowed("bot", CALL.tool, { amount: CALL.amount });
    },
  },
  "@microsoft/agent-governance-sdk": {
    ...AGENT_GOVERNANCE,
    prepare(load) {
      const { decide } = agentGovernance(load);
      return () => decide().allowed;
    },
  },
  "@microsoft/agent-governance-sdk, audit log on": {
    ...AGENT_GOVERNANCE,
    prepare(load) {
      const { decide, audit } = agentGovernance(load);
      return () => {
        const { allowed, action } = decide();
        audit.log({ agentId: "did:bench", action: CALL.tool, decision: action });
        return allowed;
      };
    },
  },
};

async function perSecond(decision: Decision): Promise<number> {
  const start = performance.now();
  let n = 0;
  for (; performance.now() - start < MEASURE_MS; n++) {
    const answer = decision();
    if (answer instanceof Promise) await answer;
  }
  return (n * 1_000) / (performance.now() - start);
}

/** Those that can be had here, by what they are called in the table. */
export async function installedEngines(folder: string): Promise<Record<string, () => Promise<number>>> {
  const versions = new Map(Object.values(ENGINES).map((engine) => [engine.package, engine.version]));
  const folders = new Map(
    await Promise.all(
      [...versions].map(async ([name, version]) => [name, await installed(folder, name, version)] as const),
    ),
  );
  const engines: Record<string, () => Promise<number>> = {};
  for (const [name, engine] of Object.entries(ENGINES)) {
    const own = folders.get(engine.package);
    if (!own) continue;
    try {
      const decision = await engine.prepare(createRequire(join(own, "peers.js")));
      if ((await decision()) !== true) throw new Error("it denies what the rules allow");
      engines[name] = () => perSecond(decision);
    } catch (error) {
      console.error(`not compared: ${name}: ${messageOf(error)}`);
    }
  }
  return engines;
}
