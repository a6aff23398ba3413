/**
 * Security event tokens (RFC 8417) of one transmitter. A token is valid only with a signature of the transmitter's
 * published keys, its issuer and this receiver's audience. Its type separates it from credentials of the same issuer.
 */
import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from "jose";
import { SvcError } from "../kernel/errors.ts";
import { isJsonObject, type JsonObject } from "../kernel/json/json.ts";
import { IssuerKeys, type JwksDeps } from "./jwks.ts";
import { SIGNING_ALGORITHMS } from "./oidc.ts";

const MAX_CHARS = 65_536;
const CLOCK_TOLERANCE_S = 60;
/** Age beyond which an event is refused. The ids of events are kept longer. */
const MAX_AGE_S = 365 * 86_400;
const EVENT_TYPE = "https://schemas.openid.net/secevent/caep/event-type/";
/** Events after which the subject is halted. */
const HALTING_EVENTS = ["session-revoked", "credential-change"] as const;
type HaltingEvent = (typeof HALTING_EVENTS)[number];

/** Error codes of RFC 8935. */
export type DeliveryErrorCode = "invalid_request" | "invalid_key" | "invalid_issuer" | "invalid_audience";

/** Why an event is refused, as the transmitter reads it. */
export class DeliveryError extends Error {
  readonly code: DeliveryErrorCode;

  constructor(code: DeliveryErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

export interface ReceiverSettings {
  readonly issuer: string;
  readonly audience: string;
  readonly jwks_url: string;
}

/** A subject, as its issuer names it. */
export interface EventSubject {
  readonly iss: string;
  readonly sub: string;
}

export interface ReceivedEvent {
  readonly issuer: string;
  readonly jti: string;
  /** Subjects to halt, with the event of each. Empty for events of other types. */
  readonly halts: readonly { readonly event: HaltingEvent; readonly subject: EventSubject }[];
}

export class SecurityEventReceiver {
  private readonly settings: ReceiverSettings;
  private readonly parts: JwksDeps;
  private readonly keys: IssuerKeys;

  constructor(settings: ReceiverSettings, parts: JwksDeps) {
    this.settings = settings;
    this.parts = parts;
    this.keys = new IssuerKeys(settings.issuer, parts, settings.jwks_url);
  }

  /** Verifies a token. Throws a DeliveryError, or `unavailable` while the transmitter's keys cannot be fetched. */
  async receive(token: string): Promise<ReceivedEvent> {
    assertReadable(token, this.settings);
    const payload = await this.verified(token);
    const { iss, jti, iat } = payload;
    if (typeof jti !== "string" || jti === "" || jti.length > 1_024)
      throw new DeliveryError("invalid_request", "the event needs a jti of at most 1024 characters");
    const now_s = this.parts.env.now() / 1_000;
    if (typeof iat !== "number" || iat > now_s + CLOCK_TOLERANCE_S || iat < now_s - MAX_AGE_S)
      throw new DeliveryError("invalid_request", "the event's iat is missing, in the future or too old");
    return { issuer: iss!, jti, halts: haltsIn(payload) };
  }

  /** Returns a problem with the transmitter's keys for svc doctor, or undefined. */
  doctor(): Promise<string | undefined> {
    return this.keys.check();
  }

  private async verified(token: string): Promise<JWTPayload> {
    const { issuer, audience } = this.settings;
    try {
      const { payload } = await jwtVerify(token, this.keys.find, {
        issuer,
        audience,
        algorithms: [...SIGNING_ALGORITHMS],
        requiredClaims: ["iss", "aud", "iat", "jti"],
        clockTolerance: CLOCK_TOLERANCE_S,
        currentDate: new Date(this.parts.env.now()),
      });
      this.keys.confirm();
      return payload;
    } catch (error) {
      if (error instanceof SvcError) throw error;
      throw deliveryErrorOf(error);
    }
  }
}

/** Checks the token's own words before anything is fetched for it. */
function assertReadable(token: string, { issuer }: ReceiverSettings): void {
  if (token.length > MAX_CHARS || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token))
    throw new DeliveryError("invalid_request", "the body is not a signed security event token");
  let claimed: unknown;
  let header: Record<string, unknown>;
  try {
    header = decodeProtectedHeader(token) as Record<string, unknown>;
    claimed = decodeJwt(token).iss;
  } catch {
    throw new DeliveryError("invalid_request", "the token cannot be read");
  }
  const type = String(header["typ"] ?? "").toLowerCase();
  if (type !== "secevent+jwt" && type !== "application/secevent+jwt")
    throw new DeliveryError("invalid_request", "the token's typ is not secevent+jwt");
  if (header["crit"] !== undefined || header["b64"] !== undefined)
    throw new DeliveryError("invalid_request", "the token's header has extensions that are not supported");
  if (claimed !== issuer) throw new DeliveryError("invalid_issuer", "the token is of another issuer");
}

function deliveryErrorOf(error: unknown): DeliveryError {
  if (error instanceof errors.JWTClaimValidationFailed && error.claim === "aud")
    return new DeliveryError("invalid_audience", "the token is for another audience");
  if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired)
    return new DeliveryError("invalid_request", "a claim of the token is missing or not valid");
  return new DeliveryError("invalid_key", "the token is not signed with a key of the issuer");
}

function haltsIn(payload: JWTPayload): ReceivedEvent["halts"] {
  const { events, sub_id } = payload as Record<string, unknown>;
  if (!isJsonObject(events) || Object.keys(events).length === 0)
    throw new DeliveryError("invalid_request", "the token has no events");
  return HALTING_EVENTS.flatMap((event) => {
    const found = events[EVENT_TYPE + event];
    if (found === undefined) return [];
    if (!isJsonObject(found))
      throw new DeliveryError("invalid_request", `the event ${event} is not an object`);
    return [{ event, subject: subjectOf(sub_id ?? found["subject"], event) }];
  });
}

function subjectOf(subject: unknown, event: HaltingEvent): EventSubject {
  const { format, iss, sub } = isJsonObject(subject) ? subject : ({} as JsonObject);
  if (format !== "iss_sub" || typeof iss !== "string" || typeof sub !== "string" || sub === "")
    throw new DeliveryError("invalid_request", `the event ${event} needs a subject of the format iss_sub`);
  return { iss, sub };
}
