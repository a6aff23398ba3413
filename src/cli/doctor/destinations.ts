/** Checks all outgoing destinations against the egress rules, and sends test messages on request. */
import { isRemote } from "../../config/setting-row.ts";
import type { LoadedSettings } from "../../config/settings.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { ChannelDestination } from "../../notify/channel.ts";
import type { EventNotifier } from "../../notify/notifier.ts";
import { redactSecrets } from "../../rules/detect/secrets.ts";
import { openNotifier } from "../../service/notifier.ts";
import { silentLogger } from "../../telemetry/log.ts";
import { type CheckContext, type DoctorFinding, failFinding, okFinding, warnFinding } from "./finding.ts";

const EGRESS = "egress";
const CHANNEL = "send-test";

interface Place {
  /** Short name of the sender. */
  what: string;
  destination: ChannelDestination;
}

function notifierOf({ settings, egress, env }: CheckContext): EventNotifier {
  return openNotifier({ settings, egress, log: silentLogger, core: { env, redact: redactSecrets } });
}

function placesOf(settings: LoadedSettings, notifier: EventNotifier): Place[] {
  const url = (what: string, address: string | null): Place[] =>
    address === null ? [] : [{ what, destination: { kind: "url", url: address } }];
  const { manifests, anchor, otlp, oidc, caep, upstreams } = settings;
  return [
    ...notifier
      .destinations()
      .map(({ name, destination }) => ({ what: `notifications ${name}`, destination })),
    ...anchor.sinks.flatMap((sink) => (sink.type === "webhook" ? url("anchors", sink.url) : [])),
    ...url("traces", otlp.endpoint),
    ...url("manifests", manifests !== null && isRemote(manifests) ? manifests : null),
    ...url("OIDC issuer", oidc.issuer),
    ...url("keys of security events", caep.jwks_url),
    ...upstreams.flatMap((upstream) =>
      "url" in upstream ? url(`upstream ${upstream.name}`, upstream.url) : [],
    ),
  ];
}

/** Resolves names and checks addresses. Makes no connection. */
export async function checkDestinations(world: CheckContext): Promise<DoctorFinding[]> {
  const places = placesOf(world.settings, notifierOf(world));
  const { sentences } = world.egress.describe();
  const found = await Promise.all(places.map((place) => judge(world, place)));
  return [okFinding(EGRESS, sentences.join(" ")), ...found];
}

async function judge({ egress }: CheckContext, { what, destination }: Place): Promise<DoctorFinding> {
  const fix = "fix the URL, DNS, or the egress rules; until then nothing is delivered there";
  if (destination.kind === "url") {
    const refused = await egress.check(destination.url);
    if (refused !== null) return failFinding(EGRESS, `${what}: ${refused.message}`, fix);
    return okFinding(EGRESS, `${what}: ${new URL(destination.url).host} is allowed and resolves`);
  }
  const { host, port } = destination;
  try {
    await egress.checkHost(host, port);
    return okFinding(EGRESS, `${what}: ${host}:${port} is allowed and resolves`);
  } catch (error) {
    return failFinding(EGRESS, `${what}: ${messageOf(error)}`, fix);
  }
}

/** Sends one message through each channel. */
export async function sendTests(world: CheckContext): Promise<DoctorFinding[]> {
  const results = await notifierOf(world).sendTest("svc doctor");
  if (results.length === 0) {
    return [
      warnFinding(CHANNEL, "no notification channel is configured", "add one under notifications.channels"),
    ];
  }
  return results.map(({ channel, type, error }) =>
    error === null
      ? okFinding(CHANNEL, `${channel} (${type}) accepted a test message`)
      : failFinding(
          CHANNEL,
          `${channel} (${type}): ${error}`,
          "fix the channel; until then its messages are lost",
        ),
  );
}
