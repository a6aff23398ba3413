/** Every page and every form of the console, in the order of the navigation. */
import type { ConsoleRoute } from "./ctx.ts";
import { alertRoutes } from "./pages/alerts.ts";
import { anchorRoutes } from "./pages/anchors.ts";
import { approvalRoutes } from "./pages/approvals.ts";
import { containRoutes } from "./pages/contain.ts";
import { delegationRoutes } from "./pages/delegations.ts";
import { documentRoutes } from "./pages/documents.ts";
import { drillRoutes } from "./pages/drills.ts";
import { evidenceRoutes } from "./pages/evidence.ts";
import { alikeRoutes } from "./pages/grant-alike.ts";
import { grantRoutes } from "./pages/grants.ts";
import { haltRoutes } from "./pages/halts.ts";
import { holdRoutes } from "./pages/holds.ts";
import { impactRoutes } from "./pages/impact.ts";
import { keyRoutes } from "./pages/keys.ts";
import { oversightRoutes } from "./pages/oversight.ts";
import { overviewRoutes } from "./pages/overview.ts";
import { planRoutes } from "./pages/plans.ts";
import { policyRoutes } from "./pages/policy.ts";
import { registryRoutes } from "./pages/registry.ts";
import { replayRoutes } from "./pages/replay.ts";
import { runRoutes } from "./pages/run.ts";
import { runsRoutes } from "./pages/runs.ts";
import { searchRoutes } from "./pages/search.ts";
import { settingsRoutes } from "./pages/settings.ts";
import { toolsRoutes } from "./pages/tools.ts";

export const ROUTES: readonly ConsoleRoute[] = [
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
  ...toolsRoutes,
  ...drillRoutes,
  ...registryRoutes,
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
];
