/** Upstreams with their own sign-in: who is connected, links to connect, and ending a connection. */
import * as z from "zod";
import { isPersonal } from "../../config/sections/gateway.ts";
import { allRows } from "../../govern/port/pages.ts";
import { type CallerPrincipal, hasRole, seesTenant, tenantBinding } from "../../govern/roles.ts";
import { canConsent } from "../../govern/upstreams/consent.ts";
import type { UpstreamConsentDoc } from "../../govern/upstreams/consent-doc.ts";
import { forbiddenError } from "../../kernel/errors.ts";
import { nullableSchema } from "../../rules/nullable-schema.ts";
import type { ServiceApp } from "../app.ts";
import { defineOperation } from "../pipeline/operation.ts";
import { boundedText, noFields } from "../schemas.ts";
import { offerConnectLink } from "./connect.ts";
import { followHolder } from "./consent-holders.ts";
import {
  authorizedUpstreams,
  connectionKey,
  consentUpstream,
  endConsent,
  missingConsent,
  missingOwnConsent,
  resealConsents,
} from "./upstream-access.ts";

const off = ({ vault }: ServiceApp): string | null =>
  vault === null ? "no upstream with `auth: {type: oauth}` is configured here; it needs token_key" : null;

const connectionShape = z.strictObject({
  id: z.string(),
  upstream: z.string(),
  name: z.string().meta({ description: "who is connected" }),
  principal: nullableSchema(z.string()).meta({ description: "null for the service" }),
  tenant: nullableSchema(z.string()),
  scopes: z.array(z.string()),
  issuer: z.string(),
  connected_ms: z.int(),
  connected_by: z.string(),
  expires_ms: nullableSchema(z.int()).meta({ description: "end of the access token, which is refreshed" }),
});
export type ConnectionView = z.output<typeof connectionShape>;

function connectionView(doc: UpstreamConsentDoc): ConnectionView[] {
  const { id, upstream, name, holder, tenant, tokens } = doc;
  if (tokens === null) return [];
  const { scopes, issuer, connected_ms, connected_by, expires_ms } = tokens;
  const principal = holder?.principal ?? null;
  return [{ id, upstream, name, principal, tenant, scopes, issuer, connected_ms, connected_by, expires_ms }];
}

const isMine = (person: CallerPrincipal, { holder }: UpstreamConsentDoc): boolean =>
  holder?.principal === person.id;

export const listUpstreams = defineOperation({
  id: "list_upstreams",
  summary: "List the upstreams that people connect, and who is connected; an agent sees itself",
  role: "auditor",
  any_role: true,
  within_tenant: true,
  input: noFields,
  output: z.strictObject({
    upstreams: z.array(
      z.strictObject({
        name: z.string(),
        type: z.enum(["oauth", "exchange"]).meta({ description: "how the gateway signs in" }),
        per: z.enum(["principal", "service"]).meta({ description: "who consents" }),
      }),
    ),
    connections: z.array(connectionShape),
  }),
  async run({ app, principal }) {
    const upstreams = authorizedUpstreams(app).map((spec) => ({
      name: spec.name,
      type: spec.auth.type,
      per: isPersonal(spec) ? ("principal" as const) : ("service" as const),
    }));
    for (const spec of authorizedUpstreams(app)) await followHolder(app, spec.name, principal);
    const connections: ConnectionView[] = [];
    const all = hasRole(principal, "auditor");
    for await (const { doc } of allRows(app.core.store, "upstream_consents"))
      if (all || isMine(principal, doc) || canConsent(principal, doc))
        connections.push(...connectionView(doc));
    return { upstreams, connections };
  },
});

export const connectUpstream = defineOperation({
  id: "connect_upstream",
  summary: "Get a link to connect an upstream: for yourself, or as an admin for the service",
  role: "agent",
  any_role: true,
  within_tenant: true,
  input: z.strictObject({ upstream: boundedText(64) }),
  output: z.strictObject({
    url: z.string().meta({ description: "works once, for ten minutes" }),
    expires_ms: z.int(),
  }),
  feature: off,
  errors: { not_found: "no upstream with this name has its own sign-in" },
  async run({ app, principal }, { upstream }) {
    const spec = consentUpstream(app, upstream);
    const missing = isPersonal(spec)
      ? await missingOwnConsent(app, spec, principal, null)
      : await missingConsent(app, spec, null, null);
    const scopes = missing?.scopes ?? [];
    if (isPersonal(spec)) return offerConnectLink(app, upstream, principal, scopes);
    if (!hasRole(principal, "admin") || tenantBinding(principal) !== null)
      throw forbiddenError("only an admin of the entire service connects this upstream, for everybody");
    return offerConnectLink(app, upstream, null, scopes);
  },
});

export const disconnectUpstream = defineOperation({
  id: "disconnect_upstream",
  summary: "End a connection, delete its tokens and revoke them; yours, or anybody's as an admin",
  role: "agent",
  any_role: true,
  within_tenant: true,
  input: z.strictObject({ connection_id: z.string().regex(/^ups_[0-9a-f]{32}$/, "must look like ups_<id>") }),
  output: z.strictObject({ id: z.string(), upstream: z.string(), name: z.string() }),
  feature: off,
  errors: { not_found: "unknown connection" },
  async run({ app, principal }, { connection_id }) {
    const may = (doc: UpstreamConsentDoc) =>
      canConsent(principal, doc) ||
      (hasRole(principal, "admin") && seesTenant(principal, doc.tenant) && doc.holder !== null);
    const how = { by: principal.name, why: "revoked", may };
    const { id, upstream, name } = await endConsent(app, connectionKey(connection_id), how);
    return { id, upstream, name };
  },
});

export const rotateTokens = defineOperation({
  id: "rotate_tokens",
  summary: "Encrypt all stored tokens again, with the current token_key",
  role: "admin",
  input: noFields,
  output: z.strictObject({ encrypted: z.int().meta({ description: "texts that had another key" }) }),
  feature: off,
  async run({ app }) {
    return { encrypted: await resealConsents(app) };
  },
});
