/** Reads the operations of Google's discovery documents and of Smithy models. */
import { isJsonObject, type JsonObject, type JsonValue } from "../../../src/kernel/json/json.ts";
import { type DescribedOperation, schemaFields, schemaHolds } from "./operation.ts";

export function discoveryOperations(document: JsonObject): DescribedOperation[] {
  const schemas = objectOf(document["schemas"]);
  const read = (name: string) => schemas[name];
  const base = new URL(String(document["servicePath"]), String(document["rootUrl"]));
  const everywhere = Object.keys(objectOf(document["parameters"]));
  return methodsOf(document).map((method) => {
    const parameters = Object.entries(objectOf(method["parameters"])).filter(
      ([, one]) => objectOf(one)["location"] === "query",
    );
    return {
      method: String(method["httpMethod"]),
      host: base.host,
      path: `${base.pathname}${String(method["path"])}`,
      fields: new Map([
        ...everywhere.map((name) => [name, { required: false }] as const),
        ...schemaFields(method["request"], read),
        ...parameters.map(([name, one]) => [name, { required: objectOf(one)["required"] === true }] as const),
      ]),
      holds: (path) => schemaHolds(method["response"], path, read),
    };
  });
}

const objectOf = (value: JsonValue | undefined): JsonObject => (isJsonObject(value) ? value : {});

function methodsOf(part: JsonObject): JsonObject[] {
  const own = Object.values(objectOf(part["methods"])).map(objectOf);
  return [...own, ...Object.values(objectOf(part["resources"])).flatMap((one) => methodsOf(objectOf(one)))];
}

/** Answers of S3 are XML. Packs name only their status. */
export function smithyOperations(model: JsonObject, host: string): DescribedOperation[] {
  const shapes = objectOf(model["shapes"]);
  return Object.values(shapes).flatMap((shape): DescribedOperation[] => {
    const { traits, input } = objectOf(shape);
    const http = objectOf(objectOf(traits)["smithy.api#http"]);
    const { uri, method } = http;
    if (typeof uri !== "string") return [];
    const [path, query = ""] = uri.split("?");
    const members = Object.values(objectOf(objectOf(shapes[String(objectOf(input)["target"])])["members"]));
    const inQuery = members.flatMap((member): [string, { required: boolean }][] => {
      const own = objectOf(objectOf(member)["traits"]);
      const name = own["smithy.api#httpQuery"];
      return typeof name === "string" ? [[name, { required: own["smithy.api#required"] !== undefined }]] : [];
    });
    const literal = query.split("&").filter(Boolean);
    const marks = literal.map(
      (mark) => [mark.split("=")[0]!, { required: !mark.startsWith("x-id") }] as const,
    );
    return [
      {
        method: String(method),
        host,
        path: path!.replace("+}", "}"),
        fields: new Map([...inQuery, ...marks]),
        holds: () => false,
      },
    ];
  });
}
