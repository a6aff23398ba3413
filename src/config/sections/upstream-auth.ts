/** How the gateway signs in to an upstream: with OAuth consent, or by exchanging the caller's token. */
import * as z from "zod";
import { textSchema, urlSchema } from "../setting-row.ts";

export interface OAuthUpstreamAuth {
  type: "oauth";
  /** Whether each principal consents, or an admin does for the service. */
  per: "principal" | "service";
  /** Scopes to ask for. Null asks for what the upstream names. */
  scopes: string[] | null;
  issuer: string | null;
  client_id: string | null;
  client_secret: string | null;
}
export interface ExchangeUpstreamAuth {
  type: "exchange";
  scopes: string[] | null;
  /** Null for the issuer of the callers' tokens. */
  issuer: string | null;
  client_id: string;
  client_secret: string | null;
}
export type UpstreamAuth = OAuthUpstreamAuth | ExchangeUpstreamAuth;

/** OAuth scopes to ask for. */
export const scopesSchema = z
  .array(z.string().regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/, "is not a scope"))
  .max(100);
const scopes = scopesSchema.nullable().default(null);
const issuer = urlSchema.nullable().default(null);
const secret = textSchema.nullable().default(null);

const oauth = z
  .strictObject({
    type: z.literal("oauth"),
    per: z.enum(["principal", "service"]).default("principal"),
    scopes,
    issuer,
    client_id: textSchema.nullable().default(null),
    client_secret: secret,
  })
  .superRefine(({ client_id, client_secret, issuer }, context) => {
    const refuse = (path: string, message: string) =>
      context.addIssue({ code: "custom", path: [path], message });
    if (client_secret !== null && client_id === null) refuse("client_secret", "needs client_id");
    if (client_id !== null && issuer === null)
      refuse("client_id", "needs issuer, so that no other server gets these credentials");
  });

const exchange = z.strictObject({
  type: z.literal("exchange"),
  scopes,
  issuer,
  client_id: textSchema,
  client_secret: secret,
});

export const upstreamAuthSchema = z.discriminatedUnion("type", [oauth, exchange]);
