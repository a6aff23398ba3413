/** `svc resolve <run> <step>`: an operator says what became of a step whose outcome is unknown. */
import { resolve } from "../../app/operations/journal.ts";
import { invalid, messageOf } from "../../kernel/errors.ts";
import { type Json, parseJson } from "../../kernel/json.ts";
import { globalOptions, type Register } from "../context.ts";

export const registerResolve: Register = (program, context) => {
  globalOptions(
    program.command("resolve <run> <step>").description("say what became of a step whose outcome is unknown"),
  )
    .requiredOption("--status <status>", "succeeded or failed")
    .requiredOption("--note <text>", "how you know")
    .option("--result <json>", "the call's result, which lets a succeeded step be rolled back")
    .option("--actor <name>", "who says so (default: cli)")
    .action(async (run: string, step: string, flags: Record<string, string>) => {
      if (!/^\d{1,9}$/.test(step)) throw invalid("step: must be a step number, such as 0");
      const input = {
        run_id: run,
        step: Number(step),
        status: flags["status"] as "succeeded" | "failed",
        note: flags["note"]!,
        ...(flags["result"] === undefined ? {} : { result: readResult(flags["result"]) }),
      };
      await context.withDoor({ ...flags, as: flags["actor"] }, async (door) => {
        const done = await door.perform(resolve, input);
        context.io.out(`step ${done.step} of ${run}: ${done.status}`);
      });
    });
};

function readResult(text: string): Json {
  try {
    return parseJson(text);
  } catch (error) {
    throw invalid(`--result: ${messageOf(error)}`);
  }
}
