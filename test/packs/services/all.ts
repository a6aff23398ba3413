/** The drills of all packs. */
import type { PackDrill } from "../drill.ts";
import { github } from "./github.ts";
import { calendar, drive, gmail } from "./google.ts";
import { linear } from "./linear.ts";
import { s3 } from "./s3.ts";
import { slack } from "./slack.ts";
import { stripe } from "./stripe.ts";
import { twilio } from "./twilio.ts";

export const PACK_DRILLS: readonly PackDrill[] = [
  stripe,
  slack,
  github,
  calendar,
  drive,
  gmail,
  twilio,
  s3,
  linear,
];
