/** `svc upstreams list|connect|revoke|rotate`: connections of people to tool servers. */
import {
  connectUpstream,
  disconnectUpstream,
  listUpstreams,
  rotateTokens,
} from "../../../operations/upstreams/upstreams.ts";
import { globalOptions, type RegisterCommand } from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";

export const registerUpstreams: RegisterCommand = (program, context) => {
  const { io } = context;
  const group = program.command("upstreams").description("Connect people to tool servers, list and revoke");

  globalOptions(group.command("list").description("List the connections of people to tool servers"))
    .option("--json", "print JSON")
    .action((flags: Record<string, unknown>) =>
      context.withDoor(flags, async (door) => {
        const answer = await door.perform(listUpstreams, {});
        if (flags["json"]) return io.out(JSON.stringify(answer));
        if (answer.connections.length === 0) return io.err("nobody is connected");
        const rows = answer.connections.map(({ id, upstream, name, tenant, scopes, connected_ms }) => [
          id,
          upstream,
          escapeControls(name),
          tenant ?? "-",
          escapeControls(scopes.join(" ")) || "-",
          new Date(connected_ms).toISOString(),
        ]);
        for (const row of alignColumns(rows)) io.out(row);
      }),
    );

  globalOptions(
    group.command("connect <upstream>").description("Print a link to connect a tool server"),
  ).action((upstream: string, flags: Record<string, unknown>) =>
    context.withDoor(flags, async (door) => {
      const { url } = await door.perform(connectUpstream, { upstream });
      io.out(url);
      io.err("the link works once, for ten minutes, signed in to the console");
    }),
  );

  globalOptions(group.command("revoke <id>").description("End a connection and revoke its tokens")).action(
    (connection_id: string, flags: Record<string, unknown>) =>
      context.withDoor(flags, async (door) => {
        const { upstream, name } = await door.perform(disconnectUpstream, { connection_id });
        io.out(`disconnected ${escapeControls(name)} from ${upstream}`);
      }),
  );

  globalOptions(
    group.command("rotate").description("Encrypt all stored tokens again, with the current token_key"),
  ).action((flags: Record<string, unknown>) =>
    context.withDoor(flags, async (door) => {
      const { encrypted } = await door.perform(rotateTokens, {});
      io.out(`encrypted ${encrypted} stored texts with the current key`);
    }),
  );
};
