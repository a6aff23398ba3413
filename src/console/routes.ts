/** All pages and forms of the console, in the order of the navigation. */
import type { ConsoleRoute } from "./page-context.ts";
import { alertRoutes } from "./pages/alerts.ts";
import { approvalRoutes } from "./pages/approvals/approvals.ts";
import { delegationRoutes } from "./pages/approvals/delegations.ts";
import { planRoutes } from "./pages/approvals/plans.ts";
import { containRoutes } from "./pages/contain.ts";
import { documentRoutes } from "./pages/documents.ts";
import { anchorRoutes } from "./pages/evidence/anchors.ts";
import { evidenceRoutes } from "./pages/evidence/evidence.ts";
import { holdRoutes } from "./pages/evidence/holds.ts";
import { oversightRoutes } from "./pages/evidence/oversight.ts";
import { grantRoutes } from "./pages/grants/grants.ts";
import { alikeRoutes } from "./pages/grants/similar-grant.ts";
import { haltRoutes } from "./pages/halts.ts";
import { actorRoutes } from "./pages/incidents/actor.ts";
import { incidentRoutes } from "./pages/incidents/incident.ts";
import { incidentListRoutes } from "./pages/incidents/incident-list.ts";
import { keyRoutes } from "./pages/keys.ts";
import { overviewRoutes } from "./pages/overview.ts";
import { passkeyRoutes } from "./pages/passkeys.ts";
import { impactRoutes } from "./pages/policy/impact.ts";
import { policyRoutes } from "./pages/policy/policy.ts";
import { replayRoutes } from "./pages/policy/replay.ts";
import { pushRoutes } from "./pages/push.ts";
import { runRoutes } from "./pages/runs/run.ts";
import { runsRoutes } from "./pages/runs/runs.ts";
import { searchRoutes } from "./pages/runs/search.ts";
import { settingsRoutes } from "./pages/settings.ts";
import { signRoutes } from "./pages/sign.ts";
import { drillRoutes } from "./pages/tools/drills.ts";
import { registryRoutes } from "./pages/tools/registry.ts";
import { toolsRoutes } from "./pages/tools/tools.ts";
import { upstreamRoutes } from "./pages/tools/upstreams.ts";

export const CONSOLE_ROUTES: readonly ConsoleRoute[] = [
  ...overviewRoutes,
  ...searchRoutes,
  ...approvalRoutes,
  ...delegationRoutes,
  ...oversightRoutes,
  ...grantRoutes,
  ...planRoutes,
  ...alikeRoutes,
  ...runsRoutes,
  ...runRoutes,
  ...replayRoutes,
  ...alertRoutes,
  ...incidentListRoutes,
  ...incidentRoutes,
  ...actorRoutes,
  ...toolsRoutes,
  ...drillRoutes,
  ...registryRoutes,
  ...upstreamRoutes,
  ...policyRoutes,
  ...impactRoutes,
  ...evidenceRoutes,
  ...haltRoutes,
  ...containRoutes,
  ...anchorRoutes,
  ...documentRoutes,
  ...settingsRoutes,
  ...holdRoutes,
  ...keyRoutes,
  ...passkeyRoutes,
  ...pushRoutes,
  ...signRoutes,
];
