/** Checks the gateway: how its tools are named, and that each tool server starts and lists its tools. */
import { readTools } from "../../gateway/init/read-tools.ts";
import { messageOf } from "../../kernel/errors.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import { PACKAGE_VERSION } from "../../service/version.ts";
import {
  type CheckContext,
  type DoctorFinding,
  failFinding,
  firstNames,
  okFinding,
  warnFinding,
} from "./finding.ts";

const GATEWAY = "gateway";

const namesOf = (tools: readonly { name: string }[]): string =>
  tools.length === 0 ? "" : ` (${firstNames(tools.map(({ name }) => name))})`;

export async function checkGateway({ settings, egress }: CheckContext): Promise<DoctorFinding[]> {
  const { upstreams, tool_names } = settings;
  if (upstreams.length === 0) return [];
  const naming =
    tool_names === "underscores"
      ? okFinding(GATEWAY, "tools are listed under names that every model provider accepts")
      : warnFinding(
          GATEWAY,
          "tools are listed with dots in their names (svc.plan_rollback), which model providers reject",
          "set tool_names: underscores; calls, manifests and policies can keep the dotted names",
        );
  const seen = await Promise.all(
    upstreams.map(async (spec): Promise<DoctorFinding> => {
      if ("url" in spec) return okFinding(GATEWAY, `upstream ${spec.name}: uses HTTP and was not contacted`);
      try {
        const tools = await readTools(spec, egress, PACKAGE_VERSION);
        return okFinding(
          GATEWAY,
          `upstream ${spec.name}: started, listed ${formatCountOf(tools.length, "tool")}${namesOf(tools)}, and stopped`,
        );
      } catch (error) {
        const fix = "run its command by hand and check its stderr; until then its tools are missing";
        return failFinding(GATEWAY, `upstream ${spec.name}: ${messageOf(error)}`, fix);
      }
    }),
  );
  return [naming, ...seen];
}
