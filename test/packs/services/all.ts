/** The drills of all packs. */
import type { PackDrill } from "../drill.ts";
import { github } from "./github.ts";
import { slack } from "./slack.ts";
import { stripe } from "./stripe.ts";

export const PACK_DRILLS: readonly PackDrill[] = [stripe, slack, github];
