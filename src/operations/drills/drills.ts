/** Drills: test undos with a harmless example of each call, where the configuration allows it. */

import * as z from "zod";
import { forbiddenError, invalidError, messageOf } from "../../kernel/errors.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import { drillShape } from "../../rules/undo-proof.ts";
import type { ServiceApp } from "../app.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { boundedText, noFields, toolSchema } from "../schemas.ts";
import { allDrills, drillableManifests, isDrillDue } from "./drill-results.ts";
import { runDrill } from "./run-drill.ts";

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

export const startDrills = defineOperation({
  id: "start_drills",
  summary: "Test undos: make a harmless example of each call through an upstream, undo it and verify",
  role: "operator",
  input: z.strictObject({
    tools: z
      .array(toolSchema)
      .max(1_000)
      .optional()
      .meta({ description: "default: every tool with a drill" }),
    due: z.boolean().optional().meta({ description: "only tools without a recent successful drill" }),
    upstream: boundedText(256).optional().meta({ description: "optional if there is only one" }),
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
    const manifests = await chooseDrills(app, input, found.offers);
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

/** Drills make real calls, so they run only in the environments that the configuration lists. */
export function mayDrillHere({ settings, core }: ServiceApp): boolean {
  return core.environment !== null && settings.drills.environments.includes(core.environment);
}

export function assertEnvironment(app: ServiceApp): void {
  if (mayDrillHere(app)) return;
  const { core } = app;
  const here = core.environment === null ? "none is set here" : `this one is ${core.environment}`;
  throw forbiddenError(`drills run only in the environments listed under drills.environments; ${here}`);
}

/** Manifests of the requested tools. Throws with the reason if one of them cannot be drilled. */
export async function chooseDrills(
  { core }: ServiceApp,
  { tools, due }: { tools?: readonly string[] | undefined; due?: boolean | undefined },
  offers: (tool: string) => boolean,
): Promise<ToolManifest[]> {
  const able = drillableManifests(core);
  let manifests = able.filter(({ tool }) => offers(tool));
  if (tools !== undefined && tools.length > 0) {
    manifests = [...new Set(tools)].map((name) => {
      const manifest = able.find(({ tool }) => tool === name);
      if (manifest === undefined)
        throw invalidError(`tools: ${whyNot(core.rules().manifests.active(name), name)}`);
      if (!offers(name)) throw invalidError(`tools: ${name} is not offered by this upstream`);
      return manifest;
    });
  }
  if (due !== true) return manifests;
  const late: ToolManifest[] = [];
  for (const manifest of manifests) if (await isDrillDue(core, manifest)) late.push(manifest);
  return late;
}

function whyNot(manifest: ToolManifest | undefined, name: string): string {
  if (manifest === undefined) return `no manifest is registered for ${name}`;
  if (manifest.compensation !== null) return `the manifest of ${name} declares no drill`;
  return manifest.effect === "irreversible"
    ? `${name} is irreversible: there is no undo to test`
    : `${name} has no undo to test`;
}

export const listDrills = defineOperation({
  id: "list_drills",
  summary: "List the last drill of each tool, newest first",
  role: "auditor",
  within_tenant: true,
  input: noFields,
  output: z.strictObject({
    drills: z.array(drillShape),
  }),
  async run({ app }) {
    return { drills: await allDrills(app.core) };
  },
});
