/** `svc actor <name>`: permissions, past calls and open items of an agent. */
import { formatCountOf } from "../../../kernel/text/phrases.ts";
import { type ActorView, getActor } from "../../../operations/actors/actor.ts";
import { type CommandFlags, globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";
import { KEY_SETTING, openLocalKeys } from "../../local-keys.ts";
import type { OperationClient } from "../../operation-client.ts";

export const registerActor: RegisterCommand = (program, context) => {
  globalOptions(program.command("actor <name>").description("Show what an agent can do and did"))
    .option("--keys <file>", "API key file")
    .option("--json", "print JSON")
    .action(async (actor: string, flags: CommandFlags) => {
      const show = async (door: OperationClient) => {
        openLocalKeys(door);
        const view = await door.perform(getActor, { actor });
        if (flags["json"]) return context.io.out(JSON.stringify(view, null, 2));
        for (const line of describeActor(view)) context.io.out(line);
      };
      await context.withDoor(flags, show, KEY_SETTING);
    });
};

const HALTED_WORDS = { yes: "halted", in_part: "halted in part", no: "not halted" } as const;

function describeActor(view: ActorView): string[] {
  const { calls, permissions, runs, requests, grants, halts, standing, drills, alerts, incidents } = view;
  const total = (name: "allowed" | "would_block" | "waiting" | "refused" | "failed") =>
    calls.hours.reduce((sum, hour) => sum + hour[name], 0);
  const names = (list: readonly string[]) =>
    list.length === 0 ? "none" : list.map(escapeControls).join(", ");
  const at = (ms: number) => new Date(ms).toISOString();
  const section = (title: string, rows: readonly string[][]) =>
    rows.length === 0 ? [] : [`${title}:`, ...alignColumns(rows).map((line) => `  ${line}`)];
  return [
    `${escapeControls(view.actor)}: ${HALTED_WORDS[view.halted]}`,
    `calls in 24 hours: ${total("allowed")} allowed, ${total("refused")} refused, ${total("waiting")} held for approval, ${total("would_block")} would block, ${total("failed")} failed`,
    `undone: ${calls.undone}; undos that failed: ${calls.undo_failed}`,
    `permissions used: ${names(permissions.used)}`,
    `permissions unused: ${names(permissions.unused)}`,
    ...section(
      "incidents",
      incidents.map(({ id, status, opened_ms }) => [id, status, at(opened_ms)]),
    ),
    ...section(
      "halts",
      halts.map(({ id, reason }) => [id, escapeControls(reason)]),
    ),
    ...section(
      "alerts",
      alerts.map(({ kind, message }) => [kind, escapeControls(message)]),
    ),
    ...section(
      "open requests",
      requests.map(({ id, tool, status }) => [id, escapeControls(tool), status]),
    ),
    ...section(
      "grants",
      grants.map(({ id, tool, uses, max_uses, expires_ms }) => [
        id,
        escapeControls(tool),
        `${uses} of ${formatCountOf(max_uses, "use")}`,
        at(expires_ms),
      ]),
    ),
    ...section(
      "steps that are not undone",
      standing.map(({ run_id, step, tool, status }) => [run_id, `#${step}`, escapeControls(tool), status]),
    ),
    ...section(
      "drills of its tools",
      drills.map(({ tool, passed, at_ms }) => [
        escapeControls(tool),
        passed ? "passed" : "failed",
        at(at_ms),
      ]),
    ),
    ...section(
      "runs",
      runs.map(({ run_id, state, steps, created_ms }) => [
        run_id,
        state,
        formatCountOf(steps, "step"),
        at(created_ms),
      ]),
    ),
  ];
}
