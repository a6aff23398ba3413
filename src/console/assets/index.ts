/**
 * Serves the console's style sheet, script and icon. Their texts are generated from the files in css and js.
 */
import type { FastifyInstance } from "fastify";
import { sha256Hex } from "../../kernel/hash.ts";
import { ICON_SVG } from "./icon.ts";
import {
  BASE_CSS,
  BLOCKS_CSS,
  CROSS_SITE_RELOAD_JS,
  DIALOGS_JS,
  ENHANCE_JS,
  EXPAND_JS,
  FORMS_CSS,
  FRAME_CSS,
  LIVE_JS,
  PAGES_CSS,
  PALETTE_CSS,
  PALETTE_JS,
  PASSKEYS_JS,
  POLICY_TRIAL_JS,
  SHORTCUTS_JS,
  SMALL_SCREENS_CSS,
  TOKENS_CSS,
  WEBAUTHN_LIBRARY,
} from "./texts.ts";

/** Order matters: later sheets override earlier ones. */
const STYLE = [
  TOKENS_CSS,
  BASE_CSS,
  FRAME_CSS,
  BLOCKS_CSS,
  FORMS_CSS,
  PAGES_CSS,
  PALETTE_CSS,
  SMALL_SCREENS_CSS,
].join("\n");
const SCRIPT = [
  ENHANCE_JS,
  DIALOGS_JS,
  EXPAND_JS,
  LIVE_JS,
  SHORTCUTS_JS,
  PALETTE_JS,
  POLICY_TRIAL_JS,
  WEBAUTHN_LIBRARY,
  PASSKEYS_JS,
].join("\n");

const ASSETS: Record<string, { type: string; text: string }> = {
  "console.css": { type: "text/css; charset=utf-8", text: STYLE },
  "console.js": { type: "text/javascript; charset=utf-8", text: SCRIPT },
  "arrive.js": { type: "text/javascript; charset=utf-8", text: CROSS_SITE_RELOAD_JS },
  "icon.svg": { type: "image/svg+xml", text: ICON_SVG },
};

/** Content hash in the asset URLs. Browsers can cache an asset forever and still load a new version at once. */
export const ASSET_VERSION = sha256Hex(STYLE + SCRIPT + ICON_SVG).slice(0, 12);

export function assetRoutes(scope: FastifyInstance): void {
  for (const [name, { type, text }] of Object.entries(ASSETS)) {
    scope.get(`/assets/${name}`, (_request, reply) =>
      reply.type(type).header("cache-control", "public, max-age=31536000, immutable").send(text),
    );
  }
}
