// Puts the viewer into one file, index.html, that opens from disk: the sources under src/ in the order their imports
// ask for, inlined, and a content security policy that allows exactly those bytes and nothing else.
//
//   node viewer/build.mjs           writes viewer/index.html
//   node viewer/build.mjs --check   exits 1 where index.html is not what the sources give

import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const SRC = join(HERE, "src");
const IMPORT = /^(?:import|export)\s[^;]*?\sfrom\s+"([^"]+)";\n/gm;
const DECLARED = /^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+|\[[^\]]+\])/gm;

/** The modules an entry needs, each after what it imports, except those under `given`, which are there already. */
function inOrder(entry, given = [], found = []) {
  if (given.includes(entry) || found.some(({ path }) => path === entry)) return found;
  const text = readFileSync(entry, "utf8");
  for (const [, target] of text.matchAll(IMPORT)) inOrder(resolve(dirname(entry), target), given, found);
  found.push({ path: entry, text });
  return found;
}

/** One script out of many modules. They share one scope, so no two may declare the same name. */
function concatenate(modules) {
  const owner = new Map();
  return modules
    .map(({ path, text }) => {
      for (const [, declared] of text.matchAll(DECLARED)) {
        for (const name of declared.match(/\w+/g)) {
          if (owner.has(name)) throw new Error(`${name} is declared in ${owner.get(name)} and in ${path}`);
          owner.set(name, path);
        }
      }
      const plain = text
        .replace(IMPORT, "")
        .replace(/^export /gm, "")
        .trim();
      return `// ---- ${relative(SRC, path)} ----\n${plain}\n`;
    })
    .join("\n");
}

function inline(name, text) {
  if (/<\/(?:script|style)|<!--/i.test(text))
    throw new Error(`${name} holds a sequence that would end its element`);
  return { text, allowed: `'sha256-${createHash("sha256").update(text).digest("base64")}'` };
}

function build() {
  const session = join(SRC, "session.js");
  const core = inline(
    "core",
    `\n"use strict";\n{\n${concatenate(inOrder(session))}\nglobalThis.svcViewer = { createSession };\n}\n`,
  );
  const shared = "const { createSession } = globalThis.svcViewer;\n";
  const app = inline(
    "app",
    `\n"use strict";\n{\n${shared}${concatenate(inOrder(join(SRC, "ui/app.js"), [session]))}}\n`,
  );
  const style = inline("style", `\n${readFileSync(join(SRC, "style.css"), "utf8")}`);
  const csp = [
    "default-src 'none'",
    `script-src ${core.allowed} ${app.allowed}`,
    `style-src ${style.allowed}`,
    "worker-src blob:",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types svc-viewer",
  ].join("; ");
  const parts = { csp, style: style.text, core: core.text, app: app.text };
  return readFileSync(join(SRC, "template.html"), "utf8").replace(
    /\{\{(csp)\}\}|\/\*(style|core|app)\*\//g,
    (_, attribute, block) => parts[attribute ?? block],
  );
}

const target = join(HERE, "index.html");
const built = build();
if (process.argv.includes("--check")) {
  if (readFileSync(target, "utf8") !== built) {
    console.error("viewer/index.html is not what its sources give: run node viewer/build.mjs");
    process.exit(1);
  }
} else writeFileSync(target, built);
