/**
 * Composes a running service: engine, credentials, side channels and background work. The server and the gateway both
 * start from here and add their own surface.
 */
import { AuthFailureCounter } from "../alerts/auth-failures.ts";
import type { RequestAuthenticator } from "../auth/authenticate.ts";
import { KeyFile } from "../auth/key-file.ts";
import { CaptureRecorder } from "../capture/recorder.ts";
import { keyFileOf, type LoadedSettings } from "../config/settings.ts";
import { startAnchoring } from "../evidence/anchors/anchoring.ts";
import { startStreams } from "../evidence/stream/stream.ts";
import { isProbe } from "../govern/roles.ts";
import type { RuntimeEnv } from "../kernel/env.ts";
import { messageOf, ProblemsError } from "../kernel/errors.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import { approvalRequested, planProposed } from "../notify/events.ts";
import type { EventNotifier } from "../notify/notifier.ts";
import type { ServiceApp } from "../operations/app.ts";
import { sendAlerts } from "../operations/background/alerting.ts";
import { dueDigests, inDigest } from "../operations/background/approval-digest.ts";
import { stopTimeLeft } from "../operations/background/background.ts";
import { deleteOldReplies, ExpiryJob } from "../operations/background/expire.ts";
import { resumeContainments } from "../operations/contain/job.ts";
import { anchoringDeps } from "../operations/evidence/anchors.ts";
import { sweepIncidents } from "../operations/incidents/sweep.ts";
import { openIdentity } from "../operations/pipeline/identity.ts";
import { OpenRequests, RECOUNT_MS } from "../operations/pipeline/open-requests.ts";
import { CallerQuotas } from "../operations/pipeline/quotas.ts";
import { endPushOfKeys } from "../operations/push/devices.ts";
import { mayEndRequest, PushMessages } from "../operations/push/personal.ts";
import { throwReloadConflict } from "../operations/reload.ts";
import { commandTools } from "../operations/rollback/job-tools.ts";
import { sweepConsents } from "../operations/upstreams/upstream-access.ts";
import { type JobTools, watchJobs } from "../rollback/job.ts";
import { redactSecrets } from "../rules/detect/secrets.ts";
import { createLogger } from "../telemetry/log.ts";
import type { ServiceMetrics } from "../telemetry/metrics.ts";
import { createTracer, type SpanTracer } from "../telemetry/trace.ts";
import { appMetrics } from "./metrics-source.ts";
import { openNotifier } from "./notifier.ts";
import { type AppOptions, openApp } from "./open-app.ts";
import { PolicyWarnings } from "./policy-warnings.ts";
import { SideChannels } from "./side-channels.ts";

const SWEEP_MS = 1_000;
const FORGET_MS = 60_000;
const HELD_MS = 5_000;

/** An app that serves callers: with credentials, notifications and background work. */
export interface RunningService extends ServiceApp {
  auth: RequestAuthenticator;
  metrics: ServiceMetrics;
  notifier: EventNotifier;
  /** Writes captured calls; null while capture is off. */
  capture: CaptureRecorder | null;
}

interface ServiceOptions extends Pick<AppOptions, "log" | "store"> {
  /** Adds to the tools that undo steps in this process. */
  equip?: (app: ServiceApp, tools: JobTools | null) => JobTools | null;
}

export async function openService(
  settings: LoadedSettings,
  env: RuntimeEnv,
  options: ServiceOptions = {},
): Promise<RunningService> {
  const log = options.log ?? createLogger(settings.log, { redact: redactSecrets });
  const channels = new SideChannels(log);
  const watch = { committed: (_ms: number) => {}, failed: (_operation: string) => {} };
  const app = await openApp(settings, env, { ...options, log, listeners: channels, watch }).catch((error) =>
    tellKeysToo(error, settings, env),
  );
  try {
    const service = await complete(app, channels, options.equip);
    watch.committed = service.metrics.ledgerAppend;
    watch.failed = service.metrics.storeError;
    return service;
  } catch (error) {
    await app.close();
    throw error;
  }
}

/** Adds the key file's problems to the error. Rules that fail to load stop the start before the keys are read. */
async function tellKeysToo(error: unknown, settings: LoadedSettings, env: RuntimeEnv): Promise<never> {
  const path = keyFileOf(settings);
  if (!(error instanceof ProblemsError) || path === null) throw error;
  const keys = await KeyFile.open(path, { env }).then(
    () => [],
    (why: unknown) => (why instanceof ProblemsError ? why.problems : [messageOf(why)]),
  );
  throw new ProblemsError([...error.problems, ...keys]);
}

async function complete(
  app: ServiceApp,
  channels: SideChannels,
  equip: ServiceOptions["equip"] = (_, tools) => tools,
): Promise<RunningService> {
  const { settings, core, egress, log, background } = app;
  const { env } = core;
  const failures = new AuthFailureCounter();
  const identity = await openIdentity({ settings, env, egress, log, failed: failures.failed });
  const { notifier, tracer, capture, metrics } = addEars(app, channels);
  app.refusedCredentials = failures;
  core.today = identity.today;
  app.jobTools = equip(app, commandTools(app, identity.today));
  applyQuotas(app);
  startWork(app, notifier, failures);
  background.every(FORGET_MS, "removing the devices of ended keys", () =>
    endPushOfKeys(app, (holder) => identity.auth.hasEnded(holder)),
  );
  const { close } = app;
  return Object.assign(app, {
    auth: identity.auth,
    keys: identity.manager,
    today: identity.today,
    principalNamed: identity.principalNamed,
    metrics,
    notifier,
    capture,
    /** Logs every reload, whether a request or a signal caused it. */
    async reload() {
      try {
        // Keys first: if they fail to load, the rules stay unchanged.
        const keys = await identity.auth.reload().catch(throwReloadConflict);
        const { manifests, policy } = await app.rules.reload().catch(throwReloadConflict);
        const loaded = { manifests: manifests.all.length, policy: policy.hash, keys };
        log.info("reloaded", loaded);
        return loaded;
      } catch (error) {
        log.warn("reload refused", { error: messageOf(error) });
        throw error;
      }
    },
    async close(until = performance.now() + SERVICE_LIMITS.stop_ms) {
      identity.close();
      const { tell_ms } = SERVICE_LIMITS;
      await background.stop(stopTimeLeft(until - tell_ms));
      // Flush the side channels before closing the egress connections they use.
      await Promise.all([notifier.drain(tell_ms), tracer?.close(tell_ms), capture?.drain(tell_ms)]);
      await close(until);
      await log.flush();
    },
  });
}

/** Subscribes notifications, traces, capture and metrics to the engine's events. */
function addEars(app: ServiceApp, channels: SideChannels) {
  const { settings, core, log } = app;
  const personal = new PushMessages(app);
  const notifier = openNotifier({ settings, core, egress: app.egress, log, personal });
  app.background.every(HELD_MS, "sending what quiet hours held back", () => personal.releaseHeld());
  channels.add({
    recorded(records) {
      if (records.some(({ event }) => mayEndRequest(event))) personal.requestsEnded();
    },
    approvalRequested: (approval) => {
      if (!isProbe(approval.internal.principal) && !inDigest(approval))
        notifier.notify(approvalRequested(approval));
    },
    planProposed: (plan) => notifier.notify(planProposed(plan)),
  });
  const tracer = openTracer(app);
  if (tracer !== null)
    channels.add({ recorded: (records, traceparent) => tracer.record(records, traceparent) });
  const capture = settings.capture.enabled ? new CaptureRecorder(core, settings.capture, log) : null;
  if (capture !== null) channels.add(capture);
  const metrics = appMetrics(app, { notifier, tracer });
  channels.add({
    intentDecided({ run, decision, took_ms }) {
      if (!isProbe(run.principal)) metrics.decision(decision.decision, took_ms);
    },
  });
  return { notifier, tracer, capture, metrics };
}

/** Starts the periodic background work. */
function startWork(app: ServiceApp, notifier: EventNotifier, failures: AuthFailureCounter): void {
  const { core, background } = app;
  const sweep = new ExpiryJob(app);
  background.every(SERVICE_LIMITS.key_reload_ms, "reloading changed files", () => reloadChanged(app));
  const warnings = new PolicyWarnings(app);
  background.track(warnings.look());
  background.every(SERVICE_LIMITS.key_reload_ms, "checking for rules that never apply", () =>
    warnings.look(),
  );
  background.every(SWEEP_MS, "ageing approvals", () => ageApprovals(app, sweep, notifier));
  background.every(SWEEP_MS, "ageing plans", () => sweep.endPlans());
  background.every(SWEEP_MS, "counting refused credentials", () => failures.flush(core));
  background.every(SERVICE_LIMITS.alert_poll_ms, "sending alerts", () => sendAlerts(app));
  background.every(SERVICE_LIMITS.lease_heartbeat_ms, "resuming containments", () =>
    resumeContainments(app, app.today),
  );
  background.every(SERVICE_LIMITS.alert_poll_ms, "sweeping incidents", () => sweepIncidents(app));
  background.every(FORGET_MS, "deleting old replies", () => deleteOldReplies(app));
  if (app.vault !== null)
    background.every(FORGET_MS, "ending consents of upstreams", () => sweepConsents(app));
  tellOutside(app);
  if (app.jobTools !== null) background.track(watchJobs(core, app.jobTools, background.signal));
}

function applyQuotas(app: ServiceApp): void {
  const { settings, core, background } = app;
  if (settings.quotas.length === 0) return;
  app.quotas = new CallerQuotas(settings.quotas, core.env);
  if (settings.quotas.every(({ open_approvals }) => open_approvals === undefined)) return;
  const open = new OpenRequests(core, app.quotas);
  app.openRequests = open;
  core.mayOpen = (run, id) => open.mayOpen(run, id);
  background.every(RECOUNT_MS, "counting open requests", () => open.recount());
}

/** Ages approval requests, and notifies approvers of escalations and digests. */
async function ageApprovals(app: ServiceApp, sweep: ExpiryJob, notifier: EventNotifier): Promise<void> {
  const { escalated, together } = await sweep.approvals();
  for (const approval of escalated) notifier.notify(approvalRequested(approval));
  if (!(await notifier.isHeard())) return;
  for (const event of await dueDigests(app.core, together)) notifier.notify(event);
}

function openTracer({ settings, core: { env }, egress, log }: ServiceApp): SpanTracer | null {
  const { endpoint } = settings.otlp;
  if (endpoint === null) return null;
  return createTracer(
    { ...settings.otlp, endpoint, environment: settings.environment },
    { egress, env, log },
  );
}

/** Starts anchoring and the ledger streams. */
function tellOutside(app: ServiceApp): void {
  const { settings, core, egress, log, background, version } = app;
  const { interval_ms } = settings.anchor;
  background.track(startAnchoring({ ...anchoringDeps(app), interval_ms, log }, background.signal));
  const { store, env, leases } = core;
  const parts = { store, env, leases, egress, log, version };
  background.track(startStreams(parts, settings.export.sinks, background.signal));
}

async function reloadChanged(app: ServiceApp): Promise<void> {
  try {
    if (await app.rules.reloadIfChanged()) app.log.info("manifests and policy were reloaded");
  } catch (error) {
    app.log.warn("manifests or policy do not load; the old ones stay active", { error: messageOf(error) });
  }
}
