/** `svc.contain`: contains an agent through the upstreams, and answers with the report once there is one. */
import * as z from "zod";
import { contain, containInput, getContain } from "../../app/operations/contain.ts";
import { givenId } from "../../app/operations/schemas.ts";
import { invalid } from "../../kernel/errors.ts";
import { type OwnCall, operate, ownTool } from "./own-tool.ts";

/** Clients give a call up after a minute; a long containment is asked for again by its id. */
const WAIT_MS = 40_000;
const LOOK_MS = 250;

export const containTool = ownTool({
  name: "svc.contain",
  description:
    "Contain an agent: halt it, disable its keys, deny its requests, take back what it was lent, undo its standing steps newest first, write evidence. Without confirm: true it only says what would be done. With contain_id alone: the report of a containment that was begun before.",
  role: "admin",
  read_only: false,
  input: z.strictObject({
    ...containInput.partial({ actor: true, reason: true }).shape,
    contain_id: givenId("ctn_<uuid>").optional(),
  }),
  async run(call, { contain_id, actor, reason, ...input }) {
    if (contain_id !== undefined) return ended(call, contain_id);
    if (actor === undefined) throw invalid("actor: whom to contain is required");
    if (reason === undefined) throw invalid("reason: why is required");
    const answer = await operate(call, contain, { actor, reason, ...input });
    return "job" in answer ? ended(call, answer.job.id) : answer;
  },
});

/** The job with its report, or as far as it is by then. */
async function ended(call: OwnCall, contain_id: string): Promise<object> {
  const { env } = call.services.app.core;
  const until = env.now() + WAIT_MS;
  for (;;) {
    const answer = await operate(call, getContain, { contain_id });
    if (answer.job.state !== "running" || env.now() >= until || call.signal.aborted) return answer;
    await env.sleep(LOOK_MS, call.signal).catch(() => {});
  }
}
