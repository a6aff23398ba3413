/** Drills: proving undos by making and undoing a harmless example of each call, where that is allowed. */
import * as z from "zod";
import { forbidden, invalid, messageOf } from "../../kernel/errors.ts";
import type { Manifest } from "../../model/manifest/types.ts";
import type { App } from "../app.ts";
import { operation } from "../door/operation.ts";
import { allDrills, drillable, isDue } from "./drills/proofs.ts";
import { runDrill } from "./drills/run-drill.ts";
import { noFields, nullable, text, tool } from "./schemas.ts";

const NO_UPSTREAMS =
  "no upstreams are configured here, so nothing can be drilled: run svc drill on a gateway, or svc.drill in the library";

const jobShape = z.strictObject({
  id: z.string(),
  state: z.enum(["running"]),
  started_ms: z.int(),
  by: z.string(),
  upstream: z.string(),
  tools: z.array(z.string()),
});

export const startDrills = operation({
  id: "start_drills",
  summary: "Prove undos: make a harmless example of each call through an upstream, undo it and read back",
  role: "operator",
  input: z.strictObject({
    tools: z.array(tool).max(1_000).optional().meta({ description: "without it every tool with a drill" }),
    due: z.boolean().optional().meta({ description: "only those without a fresh proof" }),
    upstream: text(256).optional().meta({ description: "may be left out where there is one alone" }),
  }),
  output: z.strictObject({ job: jobShape }),
  errors: {
    not_found: "no upstreams are configured here, or none has this name",
    forbidden: "this environment is not listed under drills.environments",
  },
  feature: (app) => (app.drills === undefined ? NO_UPSTREAMS : null),
  async run({ app, principal }, input) {
    const { core } = app;
    const found = app.drills!(input.upstream);
    assertEnvironment(app);
    const manifests = await chosen(app, input, found.offers);
    const job = {
      id: `drl_${core.env.uuid()}`,
      state: "running" as const,
      started_ms: core.env.now(),
      by: principal.name,
      upstream: found.upstream,
      tools: manifests.map(({ tool }) => tool),
    };
    const work = async () => {
      for (const manifest of manifests) {
        if (app.background.signal.aborted) return;
        await runDrill(app, manifest, principal.name, found.tools);
      }
    };
    app.background.track(
      work().catch((error: unknown) => app.log.warn("a drill broke off", { error: messageOf(error) })),
    );
    return { job };
  },
});

/** Calls are made for real: nowhere but where the configuration says that they may be. */
export function mayDrillHere({ settings, core }: App): boolean {
  return core.environment !== null && settings.drills.environments.includes(core.environment);
}

export function assertEnvironment(app: App): void {
  if (mayDrillHere(app)) return;
  const { core } = app;
  const here = core.environment === null ? "none is set here" : `this one is ${core.environment}`;
  throw forbidden(`drills run only in the environments listed under drills.environments; ${here}`);
}

/** The tools that were asked for; one that cannot be drilled is an error that says why. */
export async function chosen(
  { core }: App,
  { tools, due }: { tools?: readonly string[] | undefined; due?: boolean | undefined },
  offers: (tool: string) => boolean,
): Promise<Manifest[]> {
  const able = drillable(core);
  let manifests = able.filter(({ tool }) => offers(tool));
  if (tools !== undefined && tools.length > 0) {
    manifests = [...new Set(tools)].map((name) => {
      const manifest = able.find(({ tool }) => tool === name);
      if (manifest === undefined)
        throw invalid(`tools: ${whyNot(core.rules().manifests.active(name), name)}`);
      if (!offers(name)) throw invalid(`tools: ${name} is not offered by this upstream`);
      return manifest;
    });
  }
  if (due !== true) return manifests;
  const late: Manifest[] = [];
  for (const manifest of manifests) if (await isDue(core, manifest)) late.push(manifest);
  return late;
}

function whyNot(manifest: Manifest | undefined, name: string): string {
  if (manifest === undefined) return `no manifest is registered for ${name}`;
  if (manifest.compensation !== null) return `the manifest of ${name} declares no drill`;
  return manifest.effect === "irreversible"
    ? `${name} is irreversible: there is no undo to prove`
    : `${name} has no undo to prove`;
}

export const listDrills = operation({
  id: "list_drills",
  summary: "The last drill of each tool, newest first",
  role: "auditor",
  within_tenant: true,
  input: noFields,
  output: z.strictObject({
    drills: z.array(
      z.strictObject({
        tool: z.string(),
        manifest_hash: z.string(),
        at_ms: z.int(),
        passed: z.boolean(),
        problem: nullable(z.string()),
        run_id: nullable(z.string()),
        by: nullable(z.string()),
      }),
    ),
  }),
  async run({ app }) {
    return { drills: await allDrills(app.core) };
  },
});
