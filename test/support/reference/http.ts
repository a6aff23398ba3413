/** Reference pages of the HTTP API: an index, and a page per group of routes. */
import { openApiDocument } from "../../../src/http/routes/openapi.ts";
import { EXAMPLE_BODIES, ROUTE_GROUPS, type RouteGroup } from "./http-groups.ts";
import { codeSpan, generatedNote, markdownTable } from "./markdown.ts";
import { alternativesOf, distinctRows, type JsonSchema, keyRows, valueWords } from "./schema.ts";
import { typeText } from "./type-text.ts";

interface ApiResponse {
  description: string;
  content?: Record<string, { schema?: JsonSchema }>;
}
export interface ApiOperation {
  operationId: string;
  summary: string;
  "x-svc-role"?: string;
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema: JsonSchema }[];
  requestBody?: { content: Record<string, { schema: JsonSchema }> };
  responses: Record<string, ApiResponse>;
}
export interface ApiDocument {
  paths: Record<string, Record<string, ApiOperation>>;
  components: { schemas: Record<string, JsonSchema> };
}
interface Route {
  readonly method: string;
  readonly path: string;
  readonly operation: ApiOperation;
}

const FROM = "src/http/api/http-table.ts and the operations";
/** Responses of nearly every route, described once in the index. */
const COMMON_ERRORS = new Set(["400", "401", "403", "413", "415", "429", "503"]);

export const apiDocument = (): ApiDocument => openApiDocument("") as unknown as ApiDocument;

const groupOf = (path: string): RouteGroup => {
  const found = ROUTE_GROUPS.find(({ paths }) => paths.test(path.replace(/^\/v1\//, "")));
  if (found === undefined) throw new Error(`${path} is in no group of routes`);
  return found;
};

/** The pages by file name below `docs/reference`. */
export function httpPages(): Record<string, string> {
  const document = apiDocument();
  const routes = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  );
  const pages = ROUTE_GROUPS.map((group) => {
    const own = routes.filter(({ path }) => groupOf(path) === group);
    return [`http/${group.page}.md`, groupPage(group, own, document)];
  });
  return { "http.md": indexPage(routes, document), ...Object.fromEntries(pages) };
}

/** The anchor that GitHub makes of a heading: `POST /v1/runs` becomes `post-v1runs`. */
const anchorOf = ({ method, path }: Route): string =>
  `${method} ${path}`
    .toLowerCase()
    .replaceAll(/[^\w\- ]/g, "")
    .replaceAll(" ", "-");

const roleOf = ({ operation }: Route): string => operation["x-svc-role"] ?? "none";

function indexPage(routes: readonly Route[], { components }: ApiDocument): string {
  const groups = ROUTE_GROUPS.map((group) => {
    const rows = routes
      .filter(({ path }) => groupOf(path) === group)
      .map((route) => [
        `[\`${route.method} ${route.path}\`](http/${group.page}.md#${anchorOf(route)})`,
        roleOf(route),
        route.operation.summary,
      ]);
    return `\n## ${group.title}\n\n${markdownTable(["Request", "Role", "Purpose"], rows)}`;
  });
  const shared = ["Run", "Step", "Decision", "Outcome", "Approval", "Halt", "RollbackPlan"].map(
    (name) => `### ${name}\n\n\`\`\`ts\n${typeText(components.schemas[name]!)}\n\`\`\``,
  );
  return `# HTTP

${generatedNote(FROM)}

Send \`Authorization: Bearer <key or token>\` with each request. A body is JSON of at most 1 MB. An unknown field is an
error that names the field. Your server describes itself at \`/openapi.json\` (OpenAPI 3.1), for code generators. For
retries, paging and other rules see [HTTP conventions](../http-conventions.md).

The role is the least privileged one that can call the route. An agent sees only its own runs.

## Common errors

Every route can answer with these. The body is \`{"error": "<text>"}\`. The header \`svc-error-code\` has the
[code of the cause](errors.md).

| Status | Meaning | Your next step |
| - | - | - |
| 400 | the path, query or body is invalid | Correct the field that the message names |
| 401 | the credential is missing or invalid | Send a valid key or token |
| 403 | the role or the permission cap forbids it | Use another credential |
| 413, 415 | the body is over 1 MB or not JSON | Send less, as \`application/json\` |
| 429 | a quota is used up; nothing was done | Wait for the seconds in \`Retry-After\` |
| 503 | the ledger is not available; nothing was done | Retry with the same \`Idempotency-Key\` |
${groups.join("")}
## Shared objects

Responses use these types. A field with \`?\` can be absent.

${shared.join("\n\n")}
`;
}

function groupPage(group: RouteGroup, routes: readonly Route[], document: ApiDocument): string {
  return `# ${group.title}

${generatedNote(FROM)}

${group.about} Credentials, common errors and shared objects: [HTTP](../http.md).

${routes.map((route) => routeEntry(route, document)).join("\n\n")}
`;
}

function routeEntry(route: Route, document: ApiDocument): string {
  const { operation, method, path } = route;
  const fields = bodyOf(operation, document);
  const errors = Object.entries(operation.responses).filter(
    ([status]) => Number(status) >= 400 && !COMMON_ERRORS.has(status),
  );
  return [
    `## ${method} ${path}`,
    sentencesOf(operation.summary),
    `**Role:** ${roleOf(route)}`,
    ...parameterTable(operation),
    ...bodyTable(fields),
    `\`\`\`sh\n${requestExample(route)}\n\`\`\``,
    ...Object.entries(operation.responses)
      .filter(([status]) => Number(status) < 400)
      .map(([status, response]) => responseText(status, response, document)),
    ...(errors.length === 0
      ? []
      : [
          `**Errors:** ${errors.map(([status, { description }]) => `\`${status}\` ${description}`).join(" · ")}`,
        ]),
  ].join("\n\n");
}

const sentencesOf = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`);

function parameterTable({ parameters = [] }: ApiOperation): string[] {
  const rows = parameters
    .filter((one) => one.in !== "path")
    .map((one) => [
      codeSpan(one.name),
      `${one.in}${one.required ? ", required" : ""}`,
      valueWords(one.schema),
      one.description ?? one.schema.description ?? "",
    ]);
  return rows.length === 0 ? [] : [markdownTable(["Parameter", "In", "Value", "Meaning"], rows).trimEnd()];
}

export function bodyOf({ requestBody }: ApiOperation, { components }: ApiDocument): JsonSchema | undefined {
  const schema = requestBody?.content["application/json"]?.schema;
  return schema?.$ref === undefined ? schema : components.schemas[schema.$ref.split("/").at(-1)!];
}

function bodyTable(body: JsonSchema | undefined): string[] {
  if (body === undefined) return [];
  const rows = distinctRows(keyRows(body)).map(([key, value, , meaning]) => [key!, value!, meaning!]);
  return rows.length === 0 ? [] : [markdownTable(["Field", "Value", "Meaning"], rows).trimEnd()];
}

const PATH_VALUES: Readonly<Record<string, string>> = {
  tool: "payments.refund",
  n: "0",
  index: "0",
  version: "3",
};

function requestExample({ method, path, operation }: Route): string {
  const named = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const prefix = path.split(`/{${name}}`)[0]!.split("/").at(-1)!;
    return PATH_VALUES[name] ?? (prefix === "runs" ? "ticket-4826" : "$ID");
  });
  const required = (operation.parameters ?? []).filter((one) => one.in === "query" && one.required);
  const query = required.map(
    ({ name, schema }) => `${name}=${valueWords(schema) === "integer" ? 10 : "payments.refund"}`,
  );
  const url = `"$SVC_URL${named}${query.length > 0 ? `?${query.join("&")}` : ""}"`;
  const isOpen = operation["x-svc-role"] === undefined;
  const lines = [
    `curl ${method === "GET" ? "" : `-X ${method} `}${url}`,
    ...(isOpen && path !== "/metrics" ? [] : [`-H "Authorization: Bearer $SVC_TOKEN"`]),
    ...(method === "POST" || method === "PATCH" ? bodyLines(operation) : []),
  ];
  return lines.join(" \\\n  ");
}

function bodyLines({ operationId, requestBody }: ApiOperation): string[] {
  if (requestBody?.content["application/json"] === undefined)
    return ["--data-urlencode payload@payload.json"];
  const body = JSON.stringify(EXAMPLE_BODIES[operationId] ?? {});
  return [`-H "Content-Type: application/json"`, `-d '${body}'`];
}

function responseText(
  status: string,
  { description, content = {} }: ApiResponse,
  document: ApiDocument,
): string {
  const about = description === "ok" ? "" : `: ${description}`;
  const schema = content["application/json"]?.schema;
  const types = Object.keys(content);
  if (schema === undefined)
    return `**Response ${status}**${about}. A document of type ${types.map(codeSpan).join(" or ")}.`;
  const name = schema.$ref?.split("/").at(-1);
  const target = name === undefined ? schema : document.components.schemas[name]!;
  const shared = name !== undefined && !name.endsWith("_answer");
  if (shared) return `**Response ${status}**${about}: [${name}](../http.md#${name.toLowerCase()}).`;
  const isEmpty = alternativesOf(target).every(
    (one) => one.type === "object" && one.properties === undefined,
  );
  if (isEmpty && Object.keys(target).length <= 2) return `**Response ${status}**${about}: a JSON object.`;
  return `**Response ${status}**${about}\n\n\`\`\`ts\n${typeText(target)}\n\`\`\``;
}
