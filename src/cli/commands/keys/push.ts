/** `svc push list|quiet|test|remove`: devices that get push messages. People add them in the console. */
import { changeDevice, listDevices, removeDevice, testDevice } from "../../../operations/push/devices.ts";
import {
  type CommandContext,
  type CommandFlags,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";

export const registerPush: RegisterCommand = (program, context) => {
  const { io } = context;
  const group = program.command("push").description("List and remove devices that get push messages");

  globalOptions(group.command("list").description("List your devices; as an admin, those of everybody"))
    .option("--json", "print JSON")
    .action((flags: CommandFlags) => list(context, flags));

  globalOptions(group.command("quiet <id>").description("Set the quiet hours of your device"))
    .option("--from <time>", "first minute without messages, such as 22:00")
    .option("--to <time>", "first minute with messages again, such as 07:00")
    .option("--zone <name>", "time zone, such as Europe/Berlin (default: this machine's)")
    .option("--off", "no quiet hours")
    .action((device_id: string, flags: CommandFlags) =>
      context.withDoor(flags, async (door) => {
        const quiet = flags["off"] === true ? null : quietOf(flags);
        const { label } = await door.perform(changeDevice, { device_id, quiet });
        const text =
          quiet === null ? "no quiet hours" : `quiet from ${quiet.from} to ${quiet.to}, ${quiet.zone}`;
        io.out(`${escapeControls(label)}: ${text}`);
      }),
    );

  globalOptions(group.command("test <id>").description("Send a test message to your device")).action(
    (device_id: string, flags: CommandFlags) =>
      context.withDoor(flags, async (door) => {
        const { ok, error } = await door.perform(testDevice, { device_id });
        if (ok) return io.out("the push service accepted the message");
        io.err(`not delivered: ${escapeControls(error ?? "")}`);
        context.done(1);
      }),
  );

  globalOptions(group.command("remove <id>").description("Send no more messages to a device")).action(
    (device_id: string, flags: CommandFlags) =>
      context.withDoor(flags, async (door) => {
        const { name, label } = await door.perform(removeDevice, { device_id });
        io.out(`removed ${escapeControls(label)} of ${escapeControls(name)}`);
      }),
  );
};

function list(context: CommandContext, flags: CommandFlags): Promise<void> {
  const { io } = context;
  return context.withDoor(flags, async (door) => {
    const { key, devices } = await door.perform(listDevices, {});
    if (flags["json"]) return io.out(JSON.stringify({ key, devices }));
    if (devices.length === 0) return io.err("no devices; people add them in the console");
    const rows = devices.map(({ id, name, label, service, quiet, current, last_error }) => [
      id,
      escapeControls(name),
      escapeControls(label),
      service,
      quiet === null ? "" : `quiet ${quiet.from}-${quiet.to} ${quiet.zone}`,
      current ? escapeControls(last_error ?? "") : "has to be turned on again",
    ]);
    for (const row of alignColumns(rows)) io.out(row);
  });
}

/** Missing times fail the operation's check, which names them. */
function quietOf(flags: CommandFlags): { from: string; to: string; zone: string } {
  const zone = flags["zone"] ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
  return { from: String(flags["from"] ?? ""), to: String(flags["to"] ?? ""), zone: String(zone) };
}
