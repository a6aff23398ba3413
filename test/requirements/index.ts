/**
 * The catalogue: every statement of the interface as an id, so that a test can say what it verifies and
 * the gate can tell what nobody verifies yet.
 */
import { beyondAdapters } from "./beyond-adapters.ts";
import { beyondCards } from "./beyond-cards.ts";
import { beyondContain, beyondLease, beyondRunState } from "./beyond-contain.ts";
import { beyondDrills } from "./beyond-drills.ts";
import {
  beyondCheckpoints,
  beyondOversight,
  beyondPaper,
  beyondProbe,
  beyondStream,
  beyondTraces,
} from "./beyond-evidence.ts";
import { beyondFirst } from "./beyond-first.ts";
import {
  beyondGatewayCalls,
  beyondGatewayNames,
  beyondGatewayUpstreams,
  beyondGatewayWaiting,
} from "./beyond-gateway.ts";
import { beyondHooks } from "./beyond-hooks.ts";
import { beyondLibrary } from "./beyond-library.ts";
import { beyondPackage } from "./beyond-package.ts";
import {
  beyondClaims,
  beyondDiff,
  beyondErrors,
  beyondFlows,
  beyondHints,
  beyondIdle,
  beyondPlayground,
  beyondSuggest,
} from "./beyond-policy.ts";

import { beyondPython } from "./beyond-python.ts";
import { beyondFloods, beyondGrants, beyondOversightFloods, beyondPlans } from "./beyond-questions.ts";
import { beyondReach } from "./beyond-reach.ts";
import {
  beyondBackup,
  beyondBeside,
  beyondHolds,
  beyondQuotas,
  beyondReplica,
  beyondStandby,
} from "./beyond-scale.ts";
import { beyondTenants } from "./beyond-tenants.ts";
import { beyondBefore, beyondConflict, beyondHorizon, beyondPacks, beyondRefund } from "./beyond-undo.ts";
import { beyond2Agents } from "./beyond2-agents.ts";
import { beyond2Lines } from "./beyond2-call-lines.ts";
import { beyond2Clients } from "./beyond2-clients.ts";
import { beyond2Cluster } from "./beyond2-cluster.ts";
import { beyond2Authors, beyond2Demo, beyond2Polish, beyond2Previews } from "./beyond2-demo.ts";
import { beyond2Docs } from "./beyond2-docs.ts";
import { beyond2Drafts } from "./beyond2-drafts.ts";
import { beyond2Effects } from "./beyond2-effects.ts";
import { beyond2Incidents } from "./beyond2-incidents.ts";
import { beyond2Approvers, beyond2Passkeys, beyond2Signed } from "./beyond2-passkeys.ts";
import { beyond2Proxy } from "./beyond2-proxy.ts";
import { beyond2Phone, beyond2Push } from "./beyond2-push.ts";
import { beyond2Record } from "./beyond2-record.ts";
import { beyond2Services } from "./beyond2-services.ts";
import { beyond2Sockets } from "./beyond2-sockets.ts";
import { beyond2Standards } from "./beyond2-standards.ts";
import { beyond2Trees } from "./beyond2-trees.ts";
import { beyond2Upstreams } from "./beyond2-upstreams.ts";
import { beyond2Values } from "./beyond2-values.ts";
import {
  contractApproval,
  contractCombining,
  contractPolicyRules,
  contractPolicySections,
} from "./contract-decisions.ts";
import {
  contractLedger,
  contractLibrary,
  contractManifest,
  contractResources,
  contractStart,
  contractValues,
} from "./contract-foundation.ts";
import { contractReadings } from "./contract-readings.ts";
import {
  contractBodies,
  contractEvidence,
  contractGateway,
  contractNotifications,
  contractWorkers,
} from "./contract-surfaces.ts";
import { coreManifest, corePlan, corePolicy, coreRecord, coreReport } from "./core-documents.ts";
import {
  coreApprovalRequest,
  coreHalt,
  coreIntent,
  coreKey,
  coreOutcome,
  corePurpose,
  coreRun,
  coreStep,
} from "./core-resources.ts";
import {
  coreAdminRoutes,
  coreAgentRoutes,
  coreApprovalRoutes,
  coreConventions,
  coreOpenRoutes,
  coreOperatorRoutes,
  coreReadRoutes,
} from "./core-routes.ts";
import { coreAuthentication, coreErrors, coreEvents, coreLimits, coreVersioning } from "./core-rules.ts";
import {
  coreApprovalStates,
  coreCompensationApproval,
  coreHaltStates,
  coreRollbackRules,
  coreStepStates,
} from "./core-states.ts";
import { coreCommandLine, coreConsole, coreGateway, coreSettings } from "./core-surfaces.ts";
import {
  opsAnchoring,
  opsAnchorRecord,
  opsBundle,
  opsEvidenceEndpoints,
  opsHoldRecord,
  opsPeriodReport,
  opsRetentionEndpoints,
  opsRetentionPolicy,
  opsRetentionStates,
} from "./ops-evidence.ts";
import {
  opsAlertRecord,
  opsAlerts,
  opsChannels,
  opsEgress,
  opsErrors,
  opsLimits,
  opsLogs,
  opsMetrics,
  opsNotificationEvents,
  opsTraces,
} from "./ops-running.ts";
import {
  opsCapture,
  opsCaptureEndpoints,
  opsCaptureStates,
  opsImpactEndpoints,
  opsImpactReport,
  opsReplayEndpoints,
  opsReplayReport,
  opsSandboxLimits,
  opsSimulationEndpoints,
  opsSimulationReport,
  opsSpeculationEndpoints,
  opsSpeculationResult,
} from "./ops-sandbox.ts";
import type { Requirement } from "./types.ts";

export type { Issue, Requirement, Source } from "./types.ts";

const SECTIONS = [
  beyondGatewayNames,
  beyondGatewayCalls,
  beyondGatewayUpstreams,
  beyondGatewayWaiting,
  beyondReach,
  beyondPackage,
  beyondFirst,
  beyond2Demo,
  beyond2Polish,
  beyond2Previews,
  beyond2Authors,
  beyondClaims,
  beyondDiff,
  beyondErrors,
  beyondPython,
  beyondIdle,
  beyondPlayground,
  beyondSuggest,
  beyondTenants,
  beyondQuotas,
  beyondReplica,
  beyondBeside,
  beyondHolds,
  beyondBackup,
  beyondStandby,
  beyondCards,
  beyondFlows,
  beyondHints,
  beyondBefore,
  beyondConflict,
  beyondHorizon,
  beyondPacks,
  beyondRefund,
  contractApproval,
  contractPolicyRules,
  contractPolicySections,
  contractCombining,
  contractStart,
  contractResources,
  contractManifest,
  contractLedger,
  contractValues,
  contractLibrary,
  contractReadings,
  contractBodies,
  contractWorkers,
  contractGateway,
  contractEvidence,
  contractNotifications,
  coreManifest,
  corePolicy,
  corePlan,
  coreReport,
  coreRecord,
  corePurpose,
  coreRun,
  coreStep,
  coreIntent,
  coreOutcome,
  coreApprovalRequest,
  coreKey,
  coreHalt,
  coreConventions,
  coreAgentRoutes,
  coreReadRoutes,
  coreApprovalRoutes,
  coreOperatorRoutes,
  coreAdminRoutes,
  coreOpenRoutes,
  coreAuthentication,
  coreEvents,
  coreErrors,
  coreLimits,
  coreVersioning,
  coreStepStates,
  coreApprovalStates,
  coreCompensationApproval,
  coreHaltStates,
  coreRollbackRules,
  coreConsole,
  coreGateway,
  coreCommandLine,
  coreSettings,
  opsBundle,
  opsAnchorRecord,
  opsHoldRecord,
  opsRetentionPolicy,
  opsPeriodReport,
  opsRetentionStates,
  opsEvidenceEndpoints,
  opsAnchoring,
  opsRetentionEndpoints,
  opsAlertRecord,
  opsEgress,
  opsChannels,
  opsAlerts,
  opsNotificationEvents,
  opsTraces,
  opsMetrics,
  opsLogs,
  opsErrors,
  opsLimits,
  opsCapture,
  opsSimulationReport,
  opsReplayReport,
  opsImpactReport,
  opsSpeculationResult,
  opsCaptureStates,
  opsCaptureEndpoints,
  opsSimulationEndpoints,
  opsReplayEndpoints,
  opsImpactEndpoints,
  opsSpeculationEndpoints,
  opsSandboxLimits,
  beyondCheckpoints,
  beyondOversight,
  beyondStream,
  beyondTraces,
  beyondProbe,
  beyondPaper,
  beyondGrants,
  beyondPlans,
  beyondFloods,
  beyondOversightFloods,
  beyondHooks,
  beyondLibrary,
  beyondContain,
  beyondLease,
  beyondRunState,
  beyondDrills,
  beyondAdapters,
  beyond2Agents,
  beyond2Clients,
  beyond2Docs,
  beyond2Drafts,
  beyond2Effects,
  beyond2Services,
  beyond2Incidents,
  beyond2Record,
  beyond2Proxy,
  beyond2Passkeys,
  beyond2Cluster,
  beyond2Push,
  beyond2Phone,
  beyond2Sockets,
  beyond2Signed,
  beyond2Approvers,
  beyond2Standards,
  beyond2Upstreams,
  beyond2Trees,
  beyond2Lines,
  beyond2Values,
] as const;

export type RequirementId = (typeof SECTIONS)[number][number]["id"];

export const REQUIREMENTS: readonly Requirement<RequirementId>[] = SECTIONS.flat();
