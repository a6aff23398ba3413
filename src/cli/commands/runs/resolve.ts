/** `svc resolve <run> <step>`: records the outcome of a step whose outcome is unknown. */
import { invalidError, messageOf } from "../../../kernel/errors.ts";
import { type JsonValue, parseJson } from "../../../kernel/json/json.ts";
import { resolveOutcome } from "../../../operations/runs/intents-and-outcomes.ts";
import { textOrAnswer } from "../../ask-missing.ts";
import { globalOptions, type RegisterCommand } from "../../context.ts";

export const registerResolve: RegisterCommand = (program, context) => {
  globalOptions(program.command("resolve <run> <step>").description("Record the outcome of a step"))
    .option("--status <status>", "succeeded or failed (required; on a terminal, svc asks)")
    .option("--note <text>", "how you know (required; on a terminal, svc asks)")
    .option("--result <json>", "the call's result, which the undo of a succeeded step may need")
    .option("--actor <name>", "who reports it (default: cli)")
    .action(async (run: string, step: string, flags: Record<string, string>) => {
      if (!/^\d{1,9}$/.test(step)) throw invalidError("step: must be a step number, such as 0");
      const { io } = context;
      const status = await textOrAnswer(io, flags["status"], {
        option: "--status <status>",
        question: "Did the call take effect? Type succeeded or failed",
      });
      const note = await textOrAnswer(io, flags["note"], {
        option: "--note <text>",
        question: "How do you know? It is recorded",
      });
      const input = {
        run_id: run,
        step: Number(step),
        status: status as "succeeded" | "failed",
        note,
        ...(flags["result"] === undefined ? {} : { result: readResult(flags["result"]) }),
      };
      await context.withDoor({ ...flags, as: flags["actor"] }, async (door) => {
        const done = await door.perform(resolveOutcome, input);
        io.out(`step ${done.step} of ${run}: ${done.status}`);
      });
    });
};

function readResult(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch (error) {
    throw invalidError(`--result: ${messageOf(error)}`);
  }
}
