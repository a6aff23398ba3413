/** Connects to a tool server once, to list its tools. */
import type { UpstreamSpec } from "../../config/sections/gateway.ts";
import type { EgressClient } from "../../egress/egress.ts";
import { systemEnv } from "../../kernel/env.ts";
import { messageOf, SvcError } from "../../kernel/errors.ts";
import { createLogger } from "../../telemetry/log.ts";
import { buildCatalog, type ToolRoute } from "../catalog/catalog.ts";
import { UpstreamServer } from "../upstream/upstream.ts";

export async function readTools(
  spec: UpstreamSpec,
  egress: EgressClient,
  version: string,
): Promise<ToolRoute[]> {
  const log = createLogger({ level: "error" }, { sink: { write: () => {}, flush: async () => {} } });
  const parts = { env: systemEnv, log, send: egress.fetch, version };
  const upstream = new UpstreamServer(spec, parts, { changed: () => {}, notification: () => {} });
  try {
    await upstream.start();
    if (!upstream.ok) throw new SvcError("unavailable", `cannot read the tools: ${upstream.problem}`);
    const { offers, problems } = buildCatalog([upstream]);
    if (problems.length > 0) throw new SvcError("invalid", problems.join("; "));
    return [...offers.values()].flat();
  } catch (error) {
    if (error instanceof SvcError) throw error;
    throw new SvcError("unavailable", `cannot read the tools: ${messageOf(error)}`);
  } finally {
    await upstream.close();
  }
}

/** Suggests a short name for an upstream from its URL or command. */
export function suggestName(target: { url?: string; words: readonly string[] }): string {
  const source =
    target.url === undefined ? commandName(target.words) : new URL(target.url).hostname.split(".").at(-2);
  const name = (source ?? "tools")
    .replace(/^@?[^/]*\//, "")
    .replace(/@[^@]*$/, "")
    .replace(/\.(?:m?js|ts|py)$/, "")
    .replace(/^(?:mcp-)?server-|^mcp-|-mcp(?:-server)?$/g, "")
    .replace(/[^A-Za-z0-9_-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+|(?<!-)-+$/g, "")
    .slice(0, 64);
  return name === "" || name === "svc" ? "tools" : name;
}

const RUNNERS = /^(?:npx|node|bunx|bun|deno|uvx|uv|python3?|pipx|run|docker|tsx)$/;

/** Path segments that most packages have and that do not identify one. */
const EVERYWHERE =
  /^(?:\.{0,2}|dist|build|out|lib|src|bin|esm|cjs|(?:index|main|server|cli|app|run)(?:\.\w+)?)$/;

/** The first word that is neither an option nor a program that runs others. */
function commandName(words: readonly string[]): string | undefined {
  const found = words.find((word) => !word.startsWith("-") && !RUNNERS.test(word.split("/").at(-1)!));
  if (found === undefined || found.startsWith("@")) return found;
  const parts = found.split("/");
  return parts.findLast((part) => !EVERYWHERE.test(part)) ?? parts.at(-1);
}
