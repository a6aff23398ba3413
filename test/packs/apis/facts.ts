/**
 * Facts about the operations that a pack uses, taken from the service's published description: method, path, fields,
 * and the named paths of answers. `<pack>.json` keeps them with the commit and date of the description.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { isJsonObject } from "../../../src/kernel/json/json.ts";
import { readManifests } from "../../../src/rules/manifest/load.ts";
import type { ToolManifest } from "../../../src/rules/manifest/types.ts";
import { parseYaml } from "../../../src/rules/yaml.ts";
import { graphqlOperations } from "./graphql.ts";
import { graphqlField, type NamedParts, namedParts } from "./named.ts";
import { openApiOperations } from "./openapi.ts";
import { type DescribedOperation, fitsDescribedPath } from "./operation.ts";
import { discoveryOperations, smithyOperations } from "./other-forms.ts";
import { type DescriptionSource, PublishedDescription } from "./sources.ts";

export interface OperationFacts {
  readonly method: string;
  readonly path: string;
  readonly required: readonly string[];
  readonly optional: readonly string[];
  /** Paths that an answer can hold, of those that the pack names. */
  readonly answer: readonly string[];
}

export interface ApiFacts {
  readonly from: string;
  /** Commit of a repository, version of a package. */
  readonly version: string;
  readonly date: string;
  readonly operations: Readonly<Record<string, OperationFacts>>;
}

/** Manifests of a pack in the directory of the packs. */
export function packManifests(packs: string, pack: string): readonly ToolManifest[] {
  const text = readFileSync(join(packs, `${pack}.yaml`), "utf8");
  return readManifests([{ file: `${pack}.yaml`, text }]).all;
}

/** Reads the description in `folder`, and keeps what the manifests use. */
export function apiFacts(
  manifests: readonly ToolManifest[],
  source: DescriptionSource,
  folder: string,
): ApiFacts {
  const published = new PublishedDescription(folder, source);
  const operations = source.files.flatMap((file) => operationsOf(source, file, published.read(file)));
  const named = namedParts(manifests);
  const found = manifests.flatMap((manifest): [string, OperationFacts][] => {
    const operation = operationOf(manifest, operations);
    return operation === undefined ? [] : [[manifest.tool, factsOf(operation, named.get(manifest.tool)!)]];
  });
  const { from } = source;
  const { version, date } = published;
  const sorted = Object.fromEntries(found.sort(([a], [b]) => (a < b ? -1 : 1)));
  return { from, version, date, operations: sorted };
}

function operationsOf({ form }: DescriptionSource, file: string, text: string): DescribedOperation[] {
  if (form === "graphql") return graphqlOperations(text, "api.linear.app");
  const document = parseYaml(text, file).value;
  if (!isJsonObject(document)) throw new Error("the description is not an object");
  if (form === "openapi") return openApiOperations(document);
  return form === "discovery"
    ? discoveryOperations(document)
    : smithyOperations(document, "s3.amazonaws.com");
}

type RequestPlace = Pick<OperationFacts, "method" | "path">;

/** Whether the facts are of the manifest's request: for GraphQL, the kind and the name of its field. */
function isOperationOf({ tool, effect, http }: ToolManifest, { method, path }: RequestPlace): boolean {
  const field = graphqlField(http!);
  if (field !== undefined) return field.kind === method && field.name === path;
  // Slack takes POST for every method; its description says GET for those that only read.
  const methods = tool.startsWith("slack.") && effect === "read" ? [http!.method, "GET"] : [http!.method];
  return methods.includes(method) && fitsDescribedPath(http!.path, path);
}

function operationOf(manifest: ToolManifest, operations: readonly DescribedOperation[]) {
  const fitting = operations.filter(
    (one) => one.host === manifest.http!.host && isOperationOf(manifest, one),
  );
  // S3 has several operations at one path, which differ in a query field.
  const isRequired = ({ fields }: DescribedOperation) =>
    [...fields.values()].filter(({ required }) => required);
  return fitting.sort((a, b) => isRequired(a).length - isRequired(b).length)[0];
}

function factsOf({ method, path, fields, holds }: DescribedOperation, named: NamedParts): OperationFacts {
  const of = (required: boolean) =>
    [...fields]
      .filter(([, field]) => field.required === required)
      .map(([name]) => name)
      .sort();
  const answer = [...named.answers].filter((one) => holds(one.split("."))).sort();
  return { method, path, required: of(true), optional: of(false), answer };
}

/** What the manifests name and the facts lack. */
export function driftProblems(
  manifests: readonly ToolManifest[],
  { operations }: ApiFacts,
  undescribed: readonly string[] = [],
): string[] {
  const named = namedParts(manifests);
  return manifests.flatMap((manifest) => {
    const { tool, http } = manifest;
    // The description has no operation for a tool that takes any query or any mutation.
    if (undescribed.includes(tool) || http!.graphql === "query" || http!.graphql === "mutation") return [];
    const facts = operations[tool];
    if (facts === undefined) return [`${tool}: the description has no such request`];
    if (!isOperationOf(manifest, facts))
      return [`${tool}: the facts are of another request; take them again`];
    return partProblems(tool, http!.path, facts, named.get(tool)!);
  });
}

function partProblems(tool: string, path: string, facts: OperationFacts, named: NamedParts): string[] {
  const places = [...path.matchAll(/\{([^}:]*)(?::\w+)?\}/g)].map(([, name]) => name!);
  const known = new Set([...places, ...facts.required, ...facts.optional]);
  const isKnown = (name: string) => known.has(name) || known.has(name.replace(/\[.*$/s, ""));
  const problems = [...named.fields]
    .filter((name) => !isKnown(name))
    .map((name) => `${tool}: no field ${name}`);
  for (const { from, names } of named.requests) {
    for (const name of names) if (!isKnown(name)) problems.push(`${from}: ${tool} has no field ${name}`);
    for (const name of [...places, ...facts.required])
      if (!names.includes(name)) problems.push(`${from}: ${tool} needs ${name}`);
  }
  for (const answer of named.answers)
    if (!facts.answer.includes(answer)) problems.push(`${tool}: its answer has no ${answer}`);
  return problems;
}
