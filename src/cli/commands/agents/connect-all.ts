/**
 * `svc connect --all`: connects every coding agent that was found, and every MCP server that a client starts, after one
 * question that lists the changes.
 */
import { dirname, join, resolve } from "node:path";
import { HOOK_CLIENTS, type HookClient } from "../../../hook/clients/clients.ts";
import { userHooksFile } from "../../../hook/clients/install.ts";
import { listAgents } from "../../../hook/inventory.ts";
import { hooksFolder } from "../../../hook/settings.ts";
import { workspaceOf } from "../../../hook/workspace/registered.ts";
import { invalidError } from "../../../kernel/errors.ts";
import { canAsk, confirmShown } from "../../confirm.ts";
import type { CommandContext } from "../../context.ts";
import { escapeControls } from "../../io.ts";
import { connectHooks } from "./connect-hooks.ts";
import { connectServers, describeServer, findServers } from "./connect-servers.ts";
import { homeOf } from "./hook-places.ts";

export async function connectAll(context: CommandContext, flags: Record<string, unknown>): Promise<void> {
  const { io } = context;
  const folder = resolve(io.cwd, (flags["dir"] as string | undefined) ?? hooksFolder(io.env));
  const found = listAgents({ home: homeOf(io), env: io.env, folder });
  const here = workspaceOf(io.cwd);
  const clients = HOOK_CLIENTS.filter(
    (client) =>
      found.some((row) => row.client === client) &&
      !found.some(
        (row) =>
          row.client === client &&
          row.governed !== "no" &&
          (row.workspace === here || (row.workspace === null && flags["user"] === true)),
      ),
  );
  const servers = findServers(io, join(dirname(folder), "gateways"));
  if (clients.length === 0)
    io.out(
      found.length === 0 ? "no coding agent was found" : "every coding agent that was found is connected",
    );
  for (const server of servers) io.out(describeServer(server));
  if (clients.length === 0 && servers.every((server) => "left" in server)) return;
  for (const client of clients) io.out(changeOf(context, client, flags["user"] === true ? null : here));
  if (flags["yes"] !== true && !canAsk(io))
    throw invalidError("--all: without a terminal, confirm the changes above with --yes");
  await confirmShown(io, "Connect them", flags["yes"] === true ? true : undefined);
  for (const client of clients) await connectHooks(context, client, { ...flags, hooks: true });
  if ((await connectServers(context, servers)) > 0) context.done(1);
}

const changeOf = ({ io }: CommandContext, client: HookClient, workspace: string | null): string =>
  `${client}: adds the hook to ${escapeControls(userHooksFile(client, io.env, homeOf(io)))} and registers ${
    workspace === null ? "all workspaces" : escapeControls(workspace)
  }`;
