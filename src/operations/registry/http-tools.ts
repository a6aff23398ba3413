/** The HTTP tools of the manifests, as a proxy on another machine needs them. */
import * as z from "zod";
import { canRequestPermission } from "../../govern/roles.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { noFields } from "../schemas.ts";

/** The `http` member of a manifest, with its defaults. */
const request = z.strictObject({
  scheme: z.enum(["https", "http"]),
  host: z.string(),
  method: z.string(),
  path: z.string(),
  body: z.enum(["json", "form", "opaque"]).optional(),
  websocket: z.literal(true).optional(),
});

export const listHttpTools = defineOperation({
  id: "list_http_tools",
  summary: "List the HTTP tools and the caller's permissions, for a proxy on another machine",
  role: "agent",
  within_tenant: true,
  input: noFields,
  output: z.strictObject({
    /** All of them, so that the proxy sees which hosts are named. */
    tools: z.array(z.strictObject({ tool: z.string(), http: request })),
    /** Permissions that a run of the caller can have. */
    permissions: z.array(z.string()),
    /** How long a call that waits for approval is held. */
    wait_ms: z.int(),
  }),
  async run({ app, principal }) {
    const { manifests } = app.core.rules();
    const max_permissions = principal.max_permissions ?? manifests.permissions;
    return {
      tools: manifests.all.flatMap((manifest) => {
        const { tool, http } = manifest;
        return http === undefined || manifests.active(tool) !== manifest ? [] : [{ tool, http }];
      }),
      permissions: manifests.permissions.filter((one) => canRequestPermission({ max_permissions }, one)),
      wait_ms: app.settings.approvals.wait_ms,
    };
  },
});
