/** The gateway's side: how its tools are named, and whether each tool server comes up and shows its tools. */

import { VERSION } from "../../app/wiring/version.ts";
import { readTools } from "../../gateway/init/read-tools.ts";
import { messageOf } from "../../kernel/errors.ts";
import { plural } from "../../kernel/words.ts";
import { type DoctorFinding, fail, firstNames, ok, type World, warn } from "./finding.ts";

const GATEWAY = "gateway";

const namesOf = (tools: readonly { name: string }[]): string =>
  tools.length === 0 ? "" : ` (${firstNames(tools.map(({ name }) => name))})`;

export async function checkGateway({ settings, egress }: World): Promise<DoctorFinding[]> {
  const { upstreams, tool_names } = settings;
  if (upstreams.length === 0) return [];
  const naming =
    tool_names === "underscores"
      ? ok(GATEWAY, "tools are listed under names that every model provider takes")
      : warn(
          GATEWAY,
          "tools are listed with dots in their names (svc.plan_rollback), which model providers refuse",
          "set tool_names: underscores; calls, manifests and policies may keep the dotted names",
        );
  const seen = await Promise.all(
    upstreams.map(async (spec): Promise<DoctorFinding> => {
      if ("url" in spec)
        return ok(GATEWAY, `upstream ${spec.name}: is reached over HTTP, and was not contacted`);
      try {
        const tools = await readTools(spec, egress, VERSION);
        return ok(
          GATEWAY,
          `upstream ${spec.name}: started, listed ${plural(tools.length, "tool")}${namesOf(tools)}, and stopped`,
        );
      } catch (error) {
        const fix =
          "run its command by hand: what is wrong is on its stderr; until then its tools are missing";
        return fail(GATEWAY, `upstream ${spec.name}: ${messageOf(error)}`, fix);
      }
    }),
  );
  return [naming, ...seen];
}
