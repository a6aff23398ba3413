/**
 * The one place where parts are put together into a running service: engine, credentials, side channels
 * and background work. The server and the gateway both start from here and add their own surface.
 */
import { AuthFailureCounter } from "../../alerts/auth-failures.ts";
import type { Authenticator } from "../../auth/authenticate.ts";
import { KeyFile } from "../../auth/key-file.ts";
import { CaptureRecorder } from "../../capture/recorder.ts";
import { keyFileOf, type Settings } from "../../config/settings.ts";
import { startAnchoring } from "../../evidence/anchoring.ts";
import { startStreams } from "../../evidence/stream/stream.ts";
import type { Env } from "../../kernel/env.ts";
import { messageOf, ProblemsError } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { redactSecrets } from "../../model/detect/secrets.ts";
import { isProbe } from "../../model/roles.ts";
import { approvalRequested, planProposed } from "../../notify/events.ts";
import type { Notifier } from "../../notify/notifier.ts";
import { watchJobs } from "../../rollback/job.ts";
import { createLogger } from "../../telemetry/log.ts";
import type { Metrics } from "../../telemetry/metrics.ts";
import { createTracer, type Tracer } from "../../telemetry/trace.ts";
import type { App } from "../app.ts";
import { sendAlerts } from "../background/alerting.ts";
import { timeLeft } from "../background/background.ts";
import { dueDigests, inDigest } from "../background/flood-digest.ts";
import { forgetReplies, Sweep } from "../background/sweep.ts";
import { openIdentity } from "../door/identity.ts";
import { OpenRequests, RECOUNT_MS } from "../door/open-requests.ts";
import { Quotas } from "../door/quotas.ts";
import { anchoringParts } from "../operations/anchors.ts";
import { resumeContainments } from "../operations/contain/job.ts";
import { refuse } from "../operations/reload.ts";
import { commandTools } from "../operations/rollback/job-tools.ts";
import { appMetrics } from "./metrics-source.ts";
import { openNotifier } from "./notifier.ts";
import { type AppOptions, openApp } from "./open-app.ts";
import { PolicyWarnings } from "./policy-warnings.ts";
import { SideChannels } from "./side-channels.ts";

const SWEEP_MS = 1_000;
const FORGET_MS = 60_000;

/** An app that others call: with credentials, people to tell, and work of its own between calls. */
export interface Service extends App {
  auth: Authenticator;
  metrics: Metrics;
  notifier: Notifier;
  /** Writes captured calls; null while capture is off. */
  capture: CaptureRecorder | null;
}

export async function openService(
  settings: Settings,
  env: Env,
  options: Pick<AppOptions, "log" | "store"> = {},
): Promise<Service> {
  const log = options.log ?? createLogger(settings.log, { redact: redactSecrets });
  const channels = new SideChannels(log);
  const watch = { committed: (_ms: number) => {}, failed: (_operation: string) => {} };
  const app = await openApp(settings, env, { ...options, log, listeners: channels, watch }).catch((error) =>
    tellKeysToo(error, settings, env),
  );
  try {
    const service = await complete(app, channels);
    watch.committed = service.metrics.ledgerAppend;
    watch.failed = service.metrics.storeError;
    return service;
  } catch (error) {
    await app.close();
    throw error;
  }
}

/** Rules that do not load end the start before the keys are read: what is wrong with those is told at once. */
async function tellKeysToo(error: unknown, settings: Settings, env: Env): Promise<never> {
  const path = keyFileOf(settings);
  if (!(error instanceof ProblemsError) || path === null) throw error;
  const keys = await KeyFile.open(path, { env }).then(
    () => [],
    (why: unknown) => (why instanceof ProblemsError ? why.problems : [messageOf(why)]),
  );
  throw new ProblemsError([...error.problems, ...keys]);
}

async function complete(app: App, channels: SideChannels): Promise<Service> {
  const { settings, core, egress, log, background } = app;
  const { env } = core;
  const failures = new AuthFailureCounter();
  const identity = await openIdentity({ settings, env, egress, log, failed: failures.failed });
  const { notifier, tracer, capture, metrics } = addEars(app, channels);
  app.refusedCredentials = failures;
  core.today = identity.today;
  app.jobTools = commandTools(settings, background.signal, identity.today);
  applyQuotas(app);
  startWork(app, notifier, failures);
  const { close } = app;
  return Object.assign(app, {
    auth: identity.auth,
    keys: identity.manager,
    today: identity.today,
    principalNamed: identity.principalNamed,
    metrics,
    notifier,
    capture,
    /** Whoever asks for it, a person or a signal, it is in the log. */
    async reload() {
      try {
        // Keys first: a reload that is refused over them changes no rules.
        const keys = await identity.auth.reload().catch(refuse);
        const { manifests, policy } = await app.rules.reload().catch(refuse);
        const loaded = { manifests: manifests.all.length, policy: policy.hash, keys };
        log.info("reloaded", loaded);
        return loaded;
      } catch (error) {
        log.warn("reload refused", { error: messageOf(error) });
        throw error;
      }
    },
    async close(until = performance.now() + LIMITS.stop_ms) {
      identity.close();
      const { tell_ms } = LIMITS;
      await background.stop(timeLeft(until - tell_ms));
      // What is still to be told goes out before the door through which it leaves is closed.
      await Promise.all([notifier.drain(tell_ms), tracer?.close(tell_ms), capture?.drain(tell_ms)]);
      await close(until);
      await log.flush();
    },
  });
}

/** Who hears of what the engine decides and records. */
function addEars(app: App, channels: SideChannels) {
  const { settings, core, log } = app;
  const notifier = openNotifier(app);
  channels.add({
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

/** What goes on between calls, at its own pace. */
function startWork(app: App, notifier: Notifier, failures: AuthFailureCounter): void {
  const { core, background } = app;
  const sweep = new Sweep(app);
  background.every(LIMITS.key_reload_ms, "reloading changed files", () => reloadChanged(app));
  const warnings = new PolicyWarnings(app);
  background.track(warnings.look());
  background.every(LIMITS.key_reload_ms, "looking for rules that never apply", () => warnings.look());
  background.every(SWEEP_MS, "ageing approvals", () => ageApprovals(app, sweep, notifier));
  background.every(SWEEP_MS, "ageing plans", () => sweep.endPlans());
  background.every(SWEEP_MS, "counting refused credentials", () => failures.flush(core));
  background.every(LIMITS.alert_poll_ms, "sending alerts", () => sendAlerts(app));
  background.every(LIMITS.lease_heartbeat_ms, "carrying on containments", () =>
    resumeContainments(app, app.today),
  );
  background.every(FORGET_MS, "forgetting old answers", () => forgetReplies(app));
  tellOutside(app);
  if (app.jobTools !== null) background.track(watchJobs(core, app.jobTools, background.signal));
}

function applyQuotas(app: App): void {
  const { settings, core, background } = app;
  if (settings.quotas.length === 0) return;
  app.quotas = new Quotas(settings.quotas, core.env);
  if (settings.quotas.every(({ open_approvals }) => open_approvals === undefined)) return;
  const open = new OpenRequests(core, app.quotas);
  app.openRequests = open;
  core.mayOpen = (run, id) => open.mayOpen(run, id);
  background.every(RECOUNT_MS, "counting open requests", () => open.recount());
}

/** People hear of what was passed on to them, and of what waits in a flood. */
async function ageApprovals(app: App, sweep: Sweep, notifier: Notifier): Promise<void> {
  const { escalated, together } = await sweep.approvals();
  for (const approval of escalated) notifier.notify(approvalRequested(approval));
  if (notifier.channels().length === 0) return;
  for (const event of await dueDigests(app.core, together)) notifier.notify(event);
}

function openTracer({ settings, core: { env }, egress, log }: App): Tracer | null {
  const { endpoint } = settings.otlp;
  if (endpoint === null) return null;
  return createTracer(
    { ...settings.otlp, endpoint, environment: settings.environment },
    { egress, env, log },
  );
}

/** What goes out beside the requests: anchors, and the ledger as a stream. */
function tellOutside(app: App): void {
  const { settings, core, egress, log, background, version } = app;
  const { interval_ms } = settings.anchor;
  background.track(startAnchoring({ ...anchoringParts(app), interval_ms, log }, background.signal));
  const { store, env, leases } = core;
  const parts = { store, env, leases, egress, log, version };
  background.track(startStreams(parts, settings.export.sinks, background.signal));
}

async function reloadChanged(app: App): Promise<void> {
  try {
    if (await app.rules.reloadIfChanged()) app.log.info("manifests and policy were reloaded");
  } catch (error) {
    app.log.warn("manifests or policy do not load; the old ones stay in force", { error: messageOf(error) });
  }
}
