/**
 * Serves the console's style sheet, script and icon. Their texts are generated from the files in css and js.
 */
import type { FastifyInstance } from "fastify";
import { sha256Hex } from "../../kernel/hash.ts";
import { ICON_SVG } from "./icon.ts";
import {
  APP_JS,
  APPLE_180_PNG,
  BADGE_96_PNG,
  BASE_CSS,
  BLOCKS_CSS,
  CROSS_SITE_RELOAD_JS,
  DIALOGS_JS,
  ENHANCE_JS,
  EXPAND_JS,
  FORMS_CSS,
  FRAME_CSS,
  ICON_192_PNG,
  ICON_512_PNG,
  LIVE_JS,
  MASKABLE_512_PNG,
  PAGES_CSS,
  PALETTE_CSS,
  PALETTE_JS,
  PASSKEYS_JS,
  POLICY_TRIAL_JS,
  SHORTCUTS_JS,
  SMALL_SCREENS_CSS,
  TOKENS_CSS,
  WEBAUTHN_LIBRARY,
  WORKER_JS,
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
  APP_JS,
].join("\n");

const ASSETS: Record<string, { type: string; text: string | Buffer }> = {
  "console.css": { type: "text/css; charset=utf-8", text: STYLE },
  "console.js": { type: "text/javascript; charset=utf-8", text: SCRIPT },
  "arrive.js": { type: "text/javascript; charset=utf-8", text: CROSS_SITE_RELOAD_JS },
  "icon.svg": { type: "image/svg+xml", text: ICON_SVG },
  "icon-192.png": pngAsset(ICON_192_PNG),
  "icon-512.png": pngAsset(ICON_512_PNG),
  "maskable-512.png": pngAsset(MASKABLE_512_PNG),
  "apple-180.png": pngAsset(APPLE_180_PNG),
  "badge-96.png": pngAsset(BADGE_96_PNG),
};

function pngAsset(base64: string): { type: string; text: Buffer } {
  return { type: "image/png", text: Buffer.from(base64, "base64") };
}

const png = (name: string, size: number, purpose: "any" | "maskable") => ({
  src: `/console/assets/${name}.png`,
  sizes: `${size}x${size}`,
  type: "image/png",
  purpose,
});

/** The console as an app of a phone or a desktop. */
const MANIFEST = JSON.stringify({
  id: "/console",
  name: "Takeback",
  short_name: "Takeback",
  description: "Approve what agents ask for",
  start_url: "/console/approvals",
  scope: "/console",
  display: "standalone",
  background_color: "#12211b",
  theme_color: "#12211b",
  icons: [png("icon-192", 192, "any"), png("icon-512", 512, "any"), png("maskable-512", 512, "maskable")],
});

/** Assets with a fixed address, which browsers ask for again. */
const FIXED: Record<string, { type: string; text: string; scope?: string }> = {
  "/sw.js": { type: "text/javascript; charset=utf-8", text: WORKER_JS, scope: "/console" },
  "/manifest.webmanifest": { type: "application/manifest+json; charset=utf-8", text: MANIFEST },
};

/** Content hash in the asset URLs. Browsers can cache an asset forever and still load a new version at once. */
export const ASSET_VERSION = sha256Hex(STYLE + SCRIPT + ICON_SVG).slice(0, 12);

export function assetRoutes(scope: FastifyInstance): void {
  for (const [name, { type, text }] of Object.entries(ASSETS)) {
    scope.get(`/assets/${name}`, (_request, reply) =>
      reply.type(type).header("cache-control", "public, max-age=31536000, immutable").send(text),
    );
  }
  for (const [path, { type, text, scope: below }] of Object.entries(FIXED)) {
    scope.get(path, (_request, reply) => {
      if (below !== undefined) reply.header("service-worker-allowed", below);
      return reply.type(type).header("cache-control", "no-cache").send(text);
    });
  }
}
