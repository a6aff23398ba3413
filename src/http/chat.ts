/**
 * Approving from a chat service: a button press arrives as a signed form post. The signature is over the
 * bytes as sent, may be five minutes old at most, and counts once over all processes; the person behind
 * the chat user acts with the role of the key that the settings name for it, and no more.
 */
import type { FastifyInstance, FastifyRequest } from "fastify";
import * as z from "zod";
import type { App } from "../app/app.ts";
import { decideRequest } from "../app/operations/approvals.ts";
import type { Authenticator } from "../auth/authenticate.ts";
import { forbidden, invalid, SvcError } from "../kernel/errors.ts";
import { hmacHex, sameSecret, sha256Hex } from "../kernel/hash.ts";
import { parseJson } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";

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

export function chatRoutes(server: FastifyInstance, app: App, auth: Pick<Authenticator, "named">): void {
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
      // The chat service tells of every press; this one only opened the card in a browser.
      if (action.action_id === "svc_open") return { text: "" };
      const name = Object.hasOwn(users, user.id) ? users[user.id] : undefined;
      const principal = name === undefined ? undefined : auth.named(name);
      if (principal === undefined) throw forbidden("this chat user is not mapped to a key that works");
      request.principal = principal;
      app.quotas?.admit(principal);
      const verb = action.action_id === "svc_approve" ? "approve" : "deny";
      const headers = { idempotency_key: undefined, if_match: undefined, accept: undefined };
      const call = { app, principal, signal: new AbortController().signal, headers };
      const decided = await decideRequest(call, action.value, { decision: verb, note: "from chat" });
      const isOpen = decided.status === "pending" || decided.status === "escalated";
      // One vote of several: the request is not decided, and must not read as if it were.
      const what = isOpen
        ? `${decided.status}, with a vote of ${principal.name}`
        : `${decided.status} by ${principal.name}`;
      return { text: `request ${decided.id}: ${what}` };
    });
  });
}

async function checkSignature(
  app: App,
  request: FastifyRequest,
  body: string,
  secret: string,
): Promise<void> {
  const refused = new SvcError("unauthenticated", "the chat request's signature is not valid");
  const timestamp = request.headers["x-slack-request-timestamp"];
  const signature = request.headers["x-slack-signature"];
  if (typeof timestamp !== "string" || typeof signature !== "string" || !/^\d{1,12}$/.test(timestamp))
    throw refused;
  const { env, store } = app.core;
  if (Math.abs(env.now() - Number(timestamp) * 1_000) > MAX_AGE_MS) throw refused;
  if (!sameSecret(signature, `v0=${hmacHex(secret, `v0:${timestamp}:${body}`)}`)) throw refused;
  const key = `chat:${sha256Hex(signature)}`;
  const fresh = await store.transact({
    needs: [["replies", key]],
    run(tx) {
      if (tx.get("replies", key) !== undefined) return false;
      tx.put("replies", key, { run_id: "", request_hash: "", body: null, at_ms: env.now() });
      return true;
    },
  });
  if (!fresh) throw refused;
}

function readPayload(body: string): z.output<typeof actionsPayload> {
  const fields = new URLSearchParams(body).getAll("payload");
  if (fields.length !== 1 || fields[0]!.length > LIMITS.body_bytes)
    throw invalid("one form field named payload is needed");
  const parsed = actionsPayload.safeParse(parseJson(fields[0]!));
  if (!parsed.success) throw invalid("payload: is not a button press of an approval message");
  return parsed.data;
}
