/** `svc.contain`: contains an agent through the upstreams and returns the report when it is ready. */
import * as z from "zod";
import { invalidError } from "../../kernel/errors.ts";
import { containAgent, containInput, getContain } from "../../operations/contain/contain.ts";
import { givenId } from "../../operations/schemas.ts";
import { type OwnCall, ownTool, performOperation } from "./own-tool.ts";

/** Clients time out after a minute. The report of a longer containment is available by its id. */
const WAIT_MS = 40_000;
const LOOK_MS = 250;

export const containTool = ownTool({
  name: "svc.contain",
  description:
    "Contain an agent: halt it, disable its keys, deny its requests, revoke its delegations, undo its standing steps newest first, write evidence. Without confirm: true it only shows a preview. With only contain_id: the report of an earlier containment.",
  role: "admin",
  read_only: false,
  input: z.strictObject({
    ...containInput.partial({ actor: true, reason: true }).shape,
    contain_id: givenId("ctn_<uuid>").optional(),
  }),
  async run(call, { contain_id, actor, reason, ...input }) {
    if (contain_id !== undefined) return ended(call, contain_id);
    if (actor === undefined) throw invalidError("actor: required, the agent to contain");
    if (reason === undefined) throw invalidError("reason: required");
    const answer = await performOperation(call, containAgent, { actor, reason, ...input });
    return "job" in answer ? ended(call, answer.job.id) : answer;
  },
});

/** The job with its report, or its current state after the wait. */
async function ended(call: OwnCall, contain_id: string): Promise<object> {
  const { env } = call.services.app.core;
  const until = env.now() + WAIT_MS;
  for (;;) {
    const answer = await performOperation(call, getContain, { contain_id });
    if (answer.job.state !== "running" || env.now() >= until || call.signal.aborted) return answer;
    await env.sleep(LOOK_MS, call.signal).catch(() => {});
  }
}
