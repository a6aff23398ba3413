/** Reads the operations of OpenAPI 2 and 3 documents. */
import { isJsonObject, type JsonObject, type JsonValue } from "../../../src/kernel/json/json.ts";
import { type DescribedOperation, type ReferenceReader, schemaFields, schemaHolds } from "./operation.ts";

const METHODS = ["get", "put", "post", "delete", "patch", "head"];
const BODY_TYPES = ["application/json", "application/x-www-form-urlencoded"];

export function openApiOperations(document: JsonObject): DescribedOperation[] {
  const read = referenceReader(document);
  const { host, prefix } = serverOf(document);
  return Object.entries(objectOf(document["paths"])).flatMap(([path, item]) => {
    const shared = objectOf(item);
    const at = serverOf({ ...shared, basePath: prefix, host });
    return METHODS.flatMap((method): DescribedOperation[] => {
      const operation = shared[method];
      if (!isJsonObject(operation)) return [];
      const parameters = [...listOf(shared["parameters"]), ...listOf(operation["parameters"])];
      const answers = answerSchemas(operation, read);
      return [
        {
          method: method.toUpperCase(),
          host: at.host,
          path: `${at.prefix}${path}`,
          fields: new Map([...parameterFields(parameters, read), ...bodyFields(operation, read)]),
          holds: (wanted) => answers.some((schema) => schemaHolds(schema, wanted, read)),
        },
      ];
    });
  });
}

const objectOf = (value: JsonValue | undefined): JsonObject => (isJsonObject(value) ? value : {});
const listOf = (value: JsonValue | undefined): JsonValue[] => (Array.isArray(value) ? value : []);

function referenceReader(document: JsonObject): ReferenceReader {
  return (reference) => {
    let at: JsonValue | undefined = document;
    for (const name of reference.slice("#/".length).split("/"))
      at = objectOf(at)[name.replaceAll("~1", "/").replaceAll("~0", "~")];
    return at;
  };
}

function serverOf({ servers, host, basePath }: JsonObject): { host: string; prefix: string } {
  const [server] = listOf(servers);
  if (!isJsonObject(server)) return { host: String(host ?? ""), prefix: String(basePath ?? "") };
  const url = new URL(String(server["url"]));
  return { host: url.host, prefix: url.pathname.replace(/\/$/, "") };
}

function parameterFields(parameters: readonly JsonValue[], read: ReferenceReader) {
  return parameters.flatMap((one): [string, { required: boolean }][] => {
    const parameter = resolved(one, read);
    const isField = parameter["in"] === "query" || parameter["in"] === "formData";
    // Slack's token is a field or a header.
    if (!isField || parameter["name"] === "token") return [];
    return [[String(parameter["name"]), { required: parameter["required"] === true }]];
  });
}

function resolved(value: JsonValue, read: ReferenceReader): JsonObject {
  const object = objectOf(value);
  return typeof object["$ref"] === "string" ? objectOf(read(object["$ref"])) : object;
}

function bodyFields(operation: JsonObject, read: ReferenceReader) {
  const content = objectOf(resolved(operation["requestBody"] ?? null, read)["content"]);
  return BODY_TYPES.flatMap((type) => [...schemaFields(objectOf(content[type])["schema"], read)]);
}

function answerSchemas(operation: JsonObject, read: ReferenceReader): JsonValue[] {
  const answers = Object.entries(objectOf(operation["responses"])).filter(([status]) =>
    /^2|default/.test(status),
  );
  return answers.flatMap(([, one]) => {
    const { schema, content } = resolved(one, read);
    const inContent = Object.values(objectOf(content)).map((media) => objectOf(media)["schema"]);
    return [schema, ...inContent].filter((found) => found !== undefined);
  });
}
