/**
 * The console's own files: one style sheet, one script, one icon. They are part of the program, so that it has no
 * build step.
 */
import type { FastifyInstance } from "fastify";
import { sha256Hex } from "../../kernel/hash.ts";
import { BASE } from "./css/base.ts";
import { BLOCKS } from "./css/blocks.ts";
import { FORMS } from "./css/forms.ts";
import { FRAME } from "./css/frame.ts";
import { PAGES } from "./css/pages.ts";
import { SMALL } from "./css/small.ts";
import { TOKENS } from "./css/tokens.ts";
import { ICON } from "./icon.ts";
import { ARRIVE } from "./js/arrive.ts";
import { DIALOGS } from "./js/dialogs.ts";
import { EXPAND } from "./js/expand.ts";
import { LIVE } from "./js/live.ts";
import { SHORTCUTS } from "./js/shortcuts.ts";
import { TOUCHES } from "./js/touches.ts";
import { TRIAL } from "./js/trial.ts";

/** Later ones win over earlier ones: tokens first, small screens last. */
const STYLE = [TOKENS, BASE, FRAME, BLOCKS, FORMS, PAGES, SMALL].join("\n");
const SCRIPT = [TOUCHES, DIALOGS, EXPAND, LIVE, SHORTCUTS, TRIAL].join("\n");

const ASSETS: Record<string, { type: string; text: string }> = {
  "console.css": { type: "text/css; charset=utf-8", text: STYLE },
  "console.js": { type: "text/javascript; charset=utf-8", text: SCRIPT },
  "arrive.js": { type: "text/javascript; charset=utf-8", text: ARRIVE },
  "icon.svg": { type: "image/svg+xml", text: ICON },
};

/** Part of their addresses, so that a browser may keep them for ever and still sees a new version at once. */
export const ASSET_VERSION = sha256Hex(STYLE + SCRIPT + ICON).slice(0, 12);

export function assetRoutes(scope: FastifyInstance): void {
  for (const [name, { type, text }] of Object.entries(ASSETS)) {
    scope.get(`/assets/${name}`, (_request, reply) =>
      reply.type(type).header("cache-control", "public, max-age=31536000, immutable").send(text),
    );
  }
}
