/** `svc init --from <openapi>`: drafts the files of a proxy for an HTTP API. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import type { EgressClient } from "../../../egress/egress.ts";
import { policyText } from "../../../gateway/init/render.ts";
import { invalidError } from "../../../kernel/errors.ts";
import type { JsonObject } from "../../../kernel/json/json.ts";
import { draftHttpManifests, isOpenapi } from "../../../proxy/openapi.ts";
import { loadPolicy } from "../../../rules/policy/load.ts";
import { parseYaml } from "../../../rules/yaml.ts";

const MAX_BYTES = 33_554_432;
const DOCUMENT = /\.(?:json|ya?ml)$/i;

interface ApiFiles {
  readonly files: Readonly<Record<string, string>>;
  /** Summary for people. */
  readonly told: string;
}

/** Whether `--from` names an API description: a file or a URL of one. */
export function namesOpenapi(from: string, cwd: string): boolean {
  if (/^https?:\/\//i.test(from)) return URL.canParse(from) && DOCUMENT.test(new URL(from).pathname);
  const path = resolve(cwd, from);
  return DOCUMENT.test(from) && existsSync(path) && statSync(path).isFile();
}

export async function draftFromOpenapi(
  from: string,
  named: string | undefined,
  cwd: string,
  egress: EgressClient,
): Promise<ApiFiles> {
  const url = /^https?:\/\//i.test(from) ? from : null;
  const text = url === null ? readFileSync(resolve(cwd, from), "utf8") : await fetchText(url, egress);
  const document = parseYaml(text, "the API description").value;
  if (!isOpenapi(document))
    throw invalidError("--from: is not an OpenAPI document (no openapi or swagger, or no paths)");
  const name = nameOf(document, named, from);
  const draft = draftHttpManifests(document, name, url);
  const policy = policyText([
    {
      id: "other-hosts",
      tool: "net.connect",
      when: [],
      action: "require_approval",
      reason: "it reaches a host that no manifest names",
    },
  ]);
  loadPolicy(policy, "policy.yaml");
  const { tools, reads, undoable, left_out } = draft;
  return {
    files: {
      [join("manifests", `${name}.yaml`)]: draft.text,
      "policy.yaml": policy,
      "svc.config.yaml": "manifests: manifests\npolicy: policy.yaml\nkeys: keys.json\n",
    },
    told: `${tools} tools: ${reads} read, ${undoable} with a proposed undo, ${tools - reads - undoable} irreversible, ${left_out} left out`,
  };
}

async function fetchText(url: string, egress: EgressClient): Promise<string> {
  const { status, body } = await egress.request(url, { max_bytes: MAX_BYTES });
  if (status !== 200) throw invalidError(`--from: the server answered with status ${status}`);
  return new TextDecoder().decode(body);
}

function nameOf({ info }: JsonObject, named: string | undefined, from: string): string {
  const title = typeof info === "object" && info !== null && !Array.isArray(info) ? info["title"] : undefined;
  const text = named ?? (typeof title === "string" ? title : basename(from).replace(DOCUMENT, ""));
  const plain = text
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, "-")
    .replace(/^-+|(?<!-)-+$/g, "")
    .slice(0, 64);
  return plain === "" || plain === "svc" ? "api" : plain;
}
