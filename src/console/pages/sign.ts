/** What a form will sign: the page's script asks here, has the passkey sign it, and then sends the form. */
import { isSignatureRequired } from "../../govern/signing/draft.ts";
import type { GivenSignature } from "../../govern/signing/payload.ts";
import { invalidError, messageOf } from "../../kernel/errors.ts";
import { parseJson } from "../../kernel/json/json.ts";
import { DocumentContent } from "../../operations/pipeline/operation.ts";
import { openChallenge } from "../../operations/signing/challenges.ts";
import { type PageAnswer, type PageContext, postRoute } from "../page-context.ts";

type DecisionForm = "approval" | "break_glass" | "offer" | "plan" | "passkey";

export const signRoutes = [postRoute("/challenges/:kind/:id", openChallenge, challengeOf)];

export const jsonContent = (value: object): PageAnswer => ({
  content: new DocumentContent("application/json", JSON.stringify(value)),
});

/** Options of a form that asks this path what to sign. */
export const signedAt = (challenge: string) => ({ passkey: "sign" as const, challenge });

/** The end that was signed, for forms that would compute it from the time at which they are sent. */
export function signedExpiry({ signature }: { signature?: GivenSignature }): string | undefined {
  const end = signature?.payload.expires_ms;
  return end === undefined ? undefined : new Date(end).toISOString();
}

/** Options of a form that a passkey signs before it is sent. */
export const signedForm = (kind: DecisionForm, id: string) => signedAt(`/console/challenges/${kind}/${id}`);

/** The options of `signedForm` if the request needs a signature, else none. */
export const signedIfRequired = (
  { app }: PageContext,
  kind: DecisionForm,
  request: Parameters<typeof isSignatureRequired>[1] & { id: string },
) => (isSignatureRequired(app.core, request) ? signedForm(kind, request.id) : {});

/** A field that a script of the page fills with JSON. The operation that takes the value checks its form. */
export function scriptField<T>(ctx: PageContext, name: string): T {
  try {
    return parseJson(ctx.form.document(name)) as T;
  } catch (error) {
    throw invalidError(`${name}: ${messageOf(error)}; passkeys need JavaScript`);
  }
}

/** The signature that came with the form; none without one. */
export function givenSignature(ctx: PageContext): { signature?: GivenSignature } {
  if (ctx.form.document("signature") === "") return {};
  return { signature: scriptField(ctx, "signature") };
}

const BODIES: Partial<Record<string, (ctx: PageContext) => object>> = {
  break_glass: (ctx) => ({ reason: ctx.form.text("reason") }),
  offer: (ctx) => ({ offer: { args: scriptField(ctx, "args") } }),
};

const DECISIONS = { offer: "offer", passkey: "confirm" } as const;

async function challengeOf(ctx: PageContext): Promise<PageAnswer> {
  const { kind, id } = ctx.params;
  const decision = DECISIONS[kind as keyof typeof DECISIONS] ?? "approve";
  const body = BODIES[kind!]?.(ctx);
  const input = { kind: kind as DecisionForm, id: id!, decision, ...(body === undefined ? {} : { body }) };
  return jsonContent(await ctx.call(openChallenge, input));
}
