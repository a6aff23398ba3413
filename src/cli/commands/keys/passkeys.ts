/** `svc passkeys list|revoke`: lists and revokes passkeys. People add them in the console. */
import { listPasskeys, revokePasskey } from "../../../operations/signing/passkeys.ts";
import { globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";

export const registerPasskeys: RegisterCommand = (program, context) => {
  const { io } = context;
  const group = program.command("passkeys").description("List and revoke passkeys");

  globalOptions(group.command("list").description("List your passkeys; as an admin, those of everybody"))
    .option("--json", "print JSON")
    .action((flags: Record<string, unknown>) =>
      context.withDoor(flags, async (door) => {
        const { passkeys } = await door.perform(listPasskeys, {});
        if (flags["json"]) return io.out(JSON.stringify({ passkeys }));
        if (passkeys.length === 0) return io.err("no passkeys; people add them in the console");
        const rows = passkeys.map(({ id, name, status, code, alg }) => [
          id,
          escapeControls(name),
          status,
          code,
          alg,
        ]);
        for (const row of alignColumns(rows)) io.out(row);
      }),
    );

  globalOptions(group.command("revoke <id>").description("Revoke a passkey")).action(
    (passkey_id: string, flags: Record<string, unknown>) =>
      context.withDoor(flags, async (door) => {
        const { name, code } = await door.perform(revokePasskey, { passkey_id });
        io.out(`revoked passkey ${code} of ${escapeControls(name)}`);
      }),
  );
};
