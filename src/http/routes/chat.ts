/**
 * Approvals from a chat service, where a button press arrives as a signed form post. The signature covers the bytes as
 * sent, expires after five minutes, and is accepted once across all processes. The settings map a chat user to a key,
 * and the user acts with the role of that key and nothing more.
 */

import type { FastifyInstance, FastifyRequest } from "fastify";
import * as z from "zod";
import type { RequestAuthenticator } from "../../auth/authenticate.ts";
import { forbiddenError, invalidError, messageWithLink, SvcError } from "../../kernel/errors.ts";
import { hmacHex, sameSecret, sha256Hex } from "../../kernel/hash.ts";
import { parseJson } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { ServiceApp } from "../../operations/app.ts";
import { decideRequest } from "../../operations/approvals/approvals.ts";
import { consumeToken } from "../../operations/sessions.ts";

const MAX_AGE_MS = 5 * 60_000;

const actionsPayload = z.looseObject({
  type: z.literal("block_actions"),
  user: z.looseObject({ id: z.string().min(1) }),
  actions: z
    .array(
      z.union([
        z.looseObject({
          action_id: z.enum(["svc_approve", "svc_deny"]),
          value: z.string().regex(/^apr_[0-9a-f-]{36}$/),
        }),
        z.looseObject({ action_id: z.literal("svc_open") }),
      ]),
    )
    .length(1),
});

export function chatRoutes(
  server: FastifyInstance,
  app: ServiceApp,
  auth: Pick<RequestAuthenticator, "named">,
): void {
  server.register(async (scope) => {
    scope.addContentTypeParser(
      "application/x-www-form-urlencoded",
      { parseAs: "string" },
      (_request, body, done) => done(null, body),
    );
    scope.post("/integrations/chat/actions", async (request) => {
      const { signing_secret, users } = app.settings.chat;
      if (signing_secret === null || users === null) {
        throw new SvcError(
          "not_enabled",
          "chat actions are not enabled: set SVC_CHAT_SIGNING_SECRET and SVC_CHAT_USERS",
        );
      }
      const body = typeof request.body === "string" ? request.body : "";
      await checkSignature(app, request, body, signing_secret);
      const { user, actions } = readPayload(body);
      const action = actions[0]!;
      // The chat service reports every press. This one only opened the card in a browser.
      if (action.action_id === "svc_open") return { text: "" };
      const name = Object.hasOwn(users, user.id) ? users[user.id] : undefined;
      const principal = name === undefined ? undefined : auth.named(name);
      if (principal === undefined) throw forbiddenError("this chat user is not mapped to a valid key");
      request.principal = principal;
      app.quotas?.admit(principal);
      const verb = action.action_id === "svc_approve" ? "approve" : "deny";
      const headers = { idempotency_key: undefined, if_match: undefined, accept: undefined };
      const call = { app, principal, signal: new AbortController().signal, headers };
      const given = { decision: verb, note: "from chat" } as const;
      const decided = await decideRequest(call, action.value, given).catch(signingLinkOf);
      if (typeof decided === "string") return { text: decided };
      const isOpen = decided.status === "pending" || decided.status === "escalated";
      // With several votes required, one vote leaves the request open, and the reply must say that.
      const what = isOpen
        ? `${decided.status}, with a vote of ${principal.name}`
        : `${decided.status} by ${principal.name}`;
      return { text: `request ${decided.id}: ${what}` };
    });
  });
}

/** The reply that sends a person to the page at which they can sign. Throws every other error. */
function signingLinkOf(error: unknown): string {
  if (error instanceof SvcError && error.cause_code === "passkey_required") return messageWithLink(error);
  throw error;
}

async function checkSignature(
  app: ServiceApp,
  request: FastifyRequest,
  body: string,
  secret: string,
): Promise<void> {
  const refused = new SvcError("unauthenticated", "the chat request's signature is not valid");
  const timestamp = request.headers["x-slack-request-timestamp"];
  const signature = request.headers["x-slack-signature"];
  if (typeof timestamp !== "string" || typeof signature !== "string" || !/^\d{1,12}$/.test(timestamp))
    throw refused;
  const { env } = app.core;
  if (Math.abs(env.now() - Number(timestamp) * 1_000) > MAX_AGE_MS) throw refused;
  if (!sameSecret(signature, `v0=${hmacHex(secret, `v0:${timestamp}:${body}`)}`)) throw refused;
  const key = `chat:${sha256Hex(signature)}`;
  const fresh = await consumeToken(app.core, key, "", env.now());
  if (!fresh) throw refused;
}

function readPayload(body: string): z.output<typeof actionsPayload> {
  const fields = new URLSearchParams(body).getAll("payload");
  if (fields.length !== 1 || fields[0]!.length > SERVICE_LIMITS.body_bytes)
    throw invalidError("exactly one form field named payload is required");
  const parsed = actionsPayload.safeParse(parseJson(fields[0]!));
  if (!parsed.success) throw invalidError("payload: is not a button press of an approval message");
  return parsed.data;
}
