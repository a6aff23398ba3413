/** Makes pages of the reference out of what the code itself goes by: schemas, events, errors. */
import { type Argument, Command } from "commander";
import { COMMANDS } from "../../src/cli/commands/index.ts";
import { globalOptions, type Register } from "../../src/cli/context.ts";
import { openApiDocument } from "../../src/http/openapi.ts";
import { ERROR_CAUSES, INTERNAL_CODE } from "../../src/kernel/error-codes.ts";
import { ERRORS, type ErrorCode } from "../../src/kernel/errors.ts";
import { EVENT_NAMES, EVENTS } from "../../src/ledger/events.ts";

const made = (from: string) =>
  `<!-- Made from ${from}; do not edit. \`npx vitest run test/golden/reference.test.ts --update\` makes it anew. -->`;

interface Schema {
  type?: string | string[];
  description?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  anyOf?: Schema[];
  oneOf?: Schema[];
  additionalProperties?: Schema | boolean;
}

const choices = (schema: Schema): Schema[] => schema.anyOf ?? schema.oneOf ?? [schema];
const code = (text: unknown): string => `\`${typeof text === "string" ? text : JSON.stringify(text)}\``;
const row = (cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll("|", "\\|").replaceAll("\n", " ")).join(" | ")} |\n`;

/** What may stand there, in words. */
function kindOf(schema: Schema): string {
  const kinds = choices(schema).flatMap((one): string[] => {
    if (one.enum !== undefined) return one.enum.filter((value) => value !== null).map(code);
    if (one.const !== undefined) return one.const === null ? [] : [code(one.const)];
    if (one.items !== undefined) return [`list of ${kindOf(one.items)}`];
    const types = [one.type ?? []].flat().filter((type) => type !== "null");
    return types.length === 0 && one.anyOf === undefined && one.oneOf === undefined ? ["any value"] : types;
  });
  const told = [...new Set(kinds)].filter((kind) => kind !== "any value" || kinds.length === 1);
  return told.length === 0 ? "–" : told.join(", ");
}

/** Each key below a schema, the outer ones first, with its whole name. */
function* rowsOf(schema: Schema, path: string): Generator<string> {
  for (const one of choices(schema)) {
    for (const [name, field] of Object.entries(one.properties ?? {})) {
      const key = path === "" ? name : `${path}.${name}`;
      const must = one.required?.includes(name) ? " (required)" : "";
      yield row([
        code(key),
        `${kindOf(field)}${must}`,
        field.default === undefined || field.default === null ? "" : code(field.default),
        field.description ?? "",
      ]);
      yield* rowsOf(field, key);
    }
    if (one.items !== undefined) yield* rowsOf(one.items, `${path}[]`);
  }
}

export function schemaPage(options: {
  title: string;
  about: string;
  from: string;
  schema: Schema;
  example: string;
}): string {
  const { title, about, from, schema, example } = options;
  const rows = [...new Set(rowsOf(schema.items ?? schema, ""))].join("");
  return `# ${title}

${made(from)}

${about}

\`\`\`yaml
${example.trimEnd()}
\`\`\`

${row(["Key", "Value", "Default", "Meaning"])}${row(["-", "-", "-", "-"])}${rows}`;
}

export function errorsPage(): string {
  const kinds = (Object.keys(ERRORS) as ErrorCode[]).map((name) => {
    const { http, exit, rpc } = ERRORS[name];
    return row([code(name), String(http), String(exit), String(rpc), ERROR_CAUSES[name].when]);
  });
  const causes = Object.entries(ERROR_CAUSES)
    .map(([name, cause]) => ({ name, ...cause, http: ERRORS[cause.kind].http }))
    .sort((a, b) => a.http - b.http || a.name.localeCompare(b.name, "en"))
    .map(({ name, kind, http, when, to_do }) => row([code(name), String(http), code(kind), when, to_do]));
  return `# Errors

${made("src/kernel/errors.ts and src/kernel/error-codes.ts")}

Every failure that the service expects is of one of these kinds, on every surface. Over HTTP the body is \`{"error": "<what is
wrong and what to do>"}\`, on the command line it is one line on stderr and the exit code, over MCP a JSON-RPC error. A
message never repeats the value of an argument. A call that is not allowed is no error: it is a decision, \`block\`, with its
reasons.

${row(["Kind", "HTTP", "Exit code", "JSON-RPC", "When"])}${row(["-", "-", "-", "-", "-"])}${kinds.join("")}
A failure that nobody expected is a 500 without details; the server's log has its cause. After a 503 nothing was recorded,
so nothing was done, unless the message says that it may have been: then look before you send it once more.

## Codes

Every HTTP answer of 400 and above has the header \`svc-error-code\`: the code of its cause. Programs go by the code, people
read the message. What a program needs of a 409 besides is JSON in the header \`svc-facts\`, percent-encoded. With
\`SVC_LOG=json\` the line of a refused request holds the same code as \`code\` and the message as \`error\`, next to the
\`request_id\` that the answer carries as \`x-request-id\`. A cause that has no closer code has the name of its kind.

${row(["Code", "HTTP", "Kind", "When", "What a program does"])}${row(["-", "-", "-", "-", "-"])}${causes.join("")}${row([code(INTERNAL_CODE), "500", "none", "Nobody expected the failure.", "Report it with its `x-request-id`; the server's log has the cause."])}`;
}

interface ApiOperation {
  summary: string;
  "x-svc-role": string;
  parameters?: { name: string; in: string; required?: boolean }[];
  requestBody?: { content: Record<string, { schema: Schema & { $ref?: string } }> };
}
interface ApiDocument {
  paths: Record<string, Record<string, ApiOperation>>;
  components: { schemas: Record<string, Schema> };
}

/** What a request takes beside its path: query and header first, then the body; what may be left out has a `?`. */
function takenBy({ parameters = [], requestBody }: ApiOperation, { components }: ApiDocument): string {
  const named = (name: string, required: boolean | undefined) => code(required ? name : `${name}?`);
  const body = requestBody?.content["application/json"]?.schema ?? {};
  const schema = body.$ref === undefined ? body : components.schemas[body.$ref.split("/").at(-1)!]!;
  return [
    ...parameters.filter((one) => one.in !== "path").map(({ name, required }) => named(name, required)),
    ...Object.keys(schema.properties ?? {}).map((name) => named(name, schema.required?.includes(name))),
  ].join(", ");
}

export function httpPage(): string {
  const document = openApiDocument("") as unknown as ApiDocument;
  const rows = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) =>
      row([
        code(`${method.toUpperCase()} ${path}`),
        operation["x-svc-role"] ?? "",
        takenBy(operation, document),
        operation.summary,
      ]),
    ),
  );
  return `# HTTP

${made("src/api/table.ts and the operations behind it")}

A server describes itself at \`/openapi.json\`, with every schema, for people and generators. A request carries
\`Authorization: Bearer <key or token>\`; bodies are JSON of one megabyte at most, read strictly: an unknown field is an
error that names it. The role is the least that is let in; where an agent is, it sees its own runs alone. What may be left
out has a \`?\`. What goes wrong is one of the [errors](errors.md).

${row(["Request", "Role", "Takes", "What for"])}${row(["-", "-", "-", "-"])}${rows.join("")}`;
}

/** The commands that do something, each with its words. */
function* commandsBelow(command: Command, words: string): Generator<string> {
  for (const child of command.commands) {
    const called = `${words} ${child.name()}`;
    if (child.commands.length > 0) {
      yield* commandsBelow(child, called);
      continue;
    }
    const args = child.registeredArguments.map((one) => ` ${argumentWords(one)}`).join("");
    const shared = new Set(globalOptions(new Command()).options.map(({ long }) => long));
    const options = child.options.filter(({ long, hidden }) => !hidden && !shared.has(long));
    yield row([
      code(called + args),
      inText(child.description()),
      options.map(({ flags, description }) => `${code(flags)} ${inText(description)}`).join("; "),
    ]);
  }
}

/** `<prefix>` is a word here, and no tag. */
const inText = (text: string): string => text.replaceAll("<", "&lt;");

function argumentWords(argument: Argument): string {
  const name = argument.name() + (argument.variadic ? "..." : "");
  return argument.required ? `<${name}>` : `[${name}]`;
}

export async function commandsPage(): Promise<string> {
  const program = globalOptions(new Command("svc"));
  // Nothing is run, so nothing is asked of it.
  const context = { io: {} } as Parameters<Register>[1];
  for (const { load } of COMMANDS) (await load())(program, context);
  const shared = program.options.map(({ flags, description }) => row([code(flags), description])).join("");
  return `# The command line

${made("src/cli/commands")}

\`svc <command> --help\` says the same for one command, \`svc completion bash|zsh|fish\` completes in a shell. A command works on a
data folder or database, beside a running server, with every role; with \`--server\` it asks a server, with the role of the
key. Exit codes: 0 success, 1 failure, 2 a result that needs attention. Whatever has a setting takes it from the
[configuration](config.md), too.

Most commands take these:

${row(["Option", "Meaning"])}${row(["-", "-"])}${shared}
${row(["Command", "What for", "Options of its own"])}${row(["-", "-", "-"])}${[...commandsBelow(program, "svc")].join("")}`;
}

const FIELDS: readonly (readonly [name: string, about: string])[] = [
  ["`seq`", "position in the whole ledger, from 0, without gaps"],
  ["`ts_ms`", "when, in milliseconds since 1970"],
  ["`event`", "what happened, one of those below"],
  ["`actor`", "who did it: an agent, a person, a key's name, or the engine"],
  ["`run_id`, `run_seq`", "the run, and the record's position in it; absent where no run is concerned"],
  ["`step`, `tool`, `effect`, `reason`", "the call, where there is one; the reason is the agent's"],
  ["`args_hash`, `result_hash`", "keyed hashes of arguments and result; the values are never on the ledger"],
  ["`before_hash`, `after_hash`", "the same for what was read before and after the call"],
  ["`detail`", "why it was blocked, how it failed, what was decided on what card"],
  ["`prev`", "the hash of the record before; 64 zeros at the beginning"],
  ["`hash`", "SHA-256 over the record without this field, as canonical JSON (RFC 8785)"],
];

export function recordsPage(): string {
  return `# Records and events

${made("src/ledger/events.ts")}

The ledger is a list of records, one canonical JSON object a line, each with the hash of the one before. \`svc export\`,
\`GET /v1/runs/{id}/export\` and \`GET /v1/search/records\` give them; \`svc verify\` and two verifiers written apart check them
([how](../guides/prove-it.md)). Fields may be added; verifiers know none by name.

${row(["Field", "Holds"])}${row(["-", "-"])}${FIELDS.map((field) => row(field)).join("")}
## Events

${row(["Event", "In words"])}${row(["-", "-"])}${EVENT_NAMES.map((name) => row([code(name), EVENTS[name]])).join("")}`;
}
