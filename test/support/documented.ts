/** Holds answers to the interface's own document: a status that it names, and a body of the shape that it gives. */
import { z } from "zod";
import { openApiDocument } from "../../src/http/routes/openapi.ts";

interface Response {
  content?: Record<string, { schema?: object }>;
}
interface Document {
  paths: Record<string, Record<string, { responses: Record<string, Response> }>>;
  components: { schemas: object };
}

const document = openApiDocument("test") as unknown as Document;
const routes = Object.entries(document.paths).map(([path, methods]) => ({
  path,
  form: new RegExp(`^${path.replaceAll(/[.]/g, "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
  methods,
}));
// The reader of schemas knows definitions by this place only.
const local = (value: object) =>
  JSON.parse(JSON.stringify(value).replaceAll("#/components/schemas/", "#/$defs/"));
const $defs = local(document.components.schemas);
const readers = new Map<object, z.ZodType>();

function readerOf(schema: object): z.ZodType {
  const known = readers.get(schema);
  if (known !== undefined) return known;
  const own = local(schema);
  const reader = z.fromJSONSchema({ ...own, $defs: namedIn(own) });
  readers.set(schema, reader);
  return reader;
}

/** The definitions that a schema names, itself or through others: the reader copies each of them for each schema. */
function namedIn(schema: object, found: Record<string, object> = {}): Record<string, object> {
  for (const [, name] of JSON.stringify(schema).matchAll(/"#\/\$defs\/([^"]+)"/g)) {
    if (found[name!] !== undefined) continue;
    found[name!] = $defs[name!];
    namedIn($defs[name!], found);
  }
  return found;
}

export interface Answered {
  method: string;
  url: string;
  status: number;
  type: string;
  /** Parsed, where it is JSON. */
  body: unknown;
}

/** Throws if the document doesn't announce the answer. Routes outside the document are ignored. */
export function assertDocumented({ method, url, status, type, body }: Answered): void {
  const path = url.split("?", 1)[0]!;
  const found = routes.filter(({ form }) => form.test(path));
  // A fixed part of a path comes before a parameter.
  const route = found.find((one) => one.path === path) ?? found[0];
  const operation = route?.methods[method.toLowerCase()];
  if (operation === undefined) return;
  const what = `${method} ${route!.path} answered ${status}`;
  const response = operation.responses[status];
  if (response === undefined) throw new Error(`${what}, which the document does not name`);
  const content = response.content?.[type.split(";", 1)[0]!];
  if (content === undefined) throw new Error(`${what} as ${type}, which the document does not name`);
  if (content.schema === undefined) return;
  const read = readerOf(content.schema).safeParse(body);
  if (!read.success) throw new Error(`${what} with another body: ${z.prettifyError(read.error)}`);
}
