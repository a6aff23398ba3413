/** Every place that something may be sent to, held against the egress rules; and the test message on request. */
import { openNotifier } from "../../app/wiring/notifier.ts";
import { isRemote } from "../../config/row.ts";
import type { Settings } from "../../config/settings.ts";
import { messageOf } from "../../kernel/errors.ts";
import { redactSecrets } from "../../model/detect/secrets.ts";
import type { Destination } from "../../notify/channel.ts";
import type { Notifier } from "../../notify/notifier.ts";
import { silentLogger } from "../../telemetry/log.ts";
import { type DoctorFinding, fail, ok, type World, warn } from "./finding.ts";

const EGRESS = "egress";
const CHANNEL = "send-test";

interface Place {
  /** What goes there, in a word or two. */
  what: string;
  destination: Destination;
}

function notifierOf({ settings, egress, env }: World): Notifier {
  return openNotifier({ settings, egress, log: silentLogger, core: { env, redact: redactSecrets } });
}

function placesOf(settings: Settings, notifier: Notifier): Place[] {
  const url = (what: string, address: string | null): Place[] =>
    address === null ? [] : [{ what, destination: { kind: "url", url: address } }];
  const { manifests, anchor, otlp, oidc, upstreams } = settings;
  return [
    ...notifier
      .destinations()
      .map(({ name, destination }) => ({ what: `notifications ${name}`, destination })),
    ...anchor.sinks.flatMap((sink) => (sink.type === "webhook" ? url("anchors", sink.url) : [])),
    ...url("traces", otlp.endpoint),
    ...url("manifests", manifests !== null && isRemote(manifests) ? manifests : null),
    ...url("OIDC issuer", oidc.issuer),
    ...upstreams.flatMap((upstream) =>
      "url" in upstream ? url(`upstream ${upstream.name}`, upstream.url) : [],
    ),
  ];
}

/** Resolves names and judges addresses; no connection is made. */
export async function checkDestinations(world: World): Promise<DoctorFinding[]> {
  const places = placesOf(world.settings, notifierOf(world));
  const { sentences } = world.egress.describe();
  const found = await Promise.all(places.map((place) => judge(world, place)));
  return [ok(EGRESS, sentences.join(" ")), ...found];
}

async function judge({ egress }: World, { what, destination }: Place): Promise<DoctorFinding> {
  const fix =
    "correct the address, the name service, or the egress rules; until then nothing is delivered there";
  if (destination.kind === "url") {
    const refused = await egress.check(destination.url);
    if (refused !== null) return fail(EGRESS, `${what}: ${refused.message}`, fix);
    return ok(EGRESS, `${what}: ${new URL(destination.url).host} is allowed and resolves`);
  }
  const { host, port } = destination;
  try {
    await egress.checkHost(host, port);
    return ok(EGRESS, `${what}: ${host}:${port} is allowed and resolves`);
  } catch (error) {
    return fail(EGRESS, `${what}: ${messageOf(error)}`, fix);
  }
}

/** One message through each channel, now. */
export async function sendTests(world: World): Promise<DoctorFinding[]> {
  const results = await notifierOf(world).sendTest("svc doctor");
  if (results.length === 0) {
    return [warn(CHANNEL, "no notification channel is configured", "add one under notifications.channels")];
  }
  return results.map(({ channel, type, error }) =>
    error === null
      ? ok(CHANNEL, `${channel} (${type}) took a test message`)
      : fail(
          CHANNEL,
          `${channel} (${type}): ${error}`,
          "correct the channel; until then its messages are lost",
        ),
  );
}
