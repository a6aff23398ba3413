/**
 * Distinguishes the operations of a GraphQL API, which all go to one address. A manifest's document names one field of a
 * query or a mutation; a request fits it with that field alone, and if it asks for at least what the document asks for.
 */
import { isJsonObject, type JsonObject, type JsonValue } from "../../../kernel/json/json.ts";
import {
  type GraphqlDocument,
  type GraphqlField,
  type GraphqlOperation,
  type GraphqlSelection,
  type GraphqlValue,
  parseGraphql,
} from "./document.ts";
import { GraphqlError } from "./tokens.ts";

/** What a manifest's `http.graphql` takes: any operation of a kind, or one field. */
export interface GraphqlRoute {
  readonly kind: "query" | "mutation";
  readonly field: GraphqlField | undefined;
  readonly text: string;
}

/** Reads `query`, `mutation`, or a document with one field whose arguments are variables of the same names. */
export function parseGraphqlRoute(text: string): GraphqlRoute | { problem: string } {
  if (text === "query" || text === "mutation") return { kind: text, field: undefined, text };
  try {
    const { operations, fragments } = parseGraphql(text);
    const [operation] = operations;
    const [field] = operation?.selections ?? [];
    const isOne = operations.length === 1 && fragments.size === 0 && operation!.selections.length === 1;
    if (!isOne || field === undefined || !("name" in field) || !field.isPlain)
      return {
        problem: "must be query, mutation, or one operation with one field, without alias or fragments",
      };
    const hasOwnNames = [...field.args].every(
      ([name, value]) => "variable" in value && value.variable === name,
    );
    if (!hasOwnNames || field.args.size !== operation!.variables.size)
      return { problem: "must pass each variable to the argument of its name, such as issue(id: $id)" };
    return { kind: operation!.kind, field, text };
  } catch (error) {
    if (error instanceof GraphqlError) return { problem: error.message };
    throw error;
  }
}

/** Whether two manifests take the same requests. A document comes before the word of its kind. */
export const graphqlRoutesMeet = (a: GraphqlRoute, b: GraphqlRoute): boolean =>
  a.kind === b.kind && a.field?.name === b.field?.name;

export interface GraphqlRequest {
  readonly kind: "query" | "mutation";
  /** The only field, if nothing can change its meaning. */
  readonly field: GraphqlField | undefined;
  readonly args: JsonObject;
  /** The request's own members. */
  readonly body: JsonObject;
  readonly fragments: GraphqlDocument["fragments"];
}

const MEMBERS = new Set(["query", "variables", "operationName"]);

/** Reads the body of a request. Other members, such as the hash of a stored query, are refused. */
export function readGraphqlRequest(body: JsonValue): GraphqlRequest | { problem: string } {
  if (!isJsonObject(body)) return { problem: "a GraphQL request is one object; send one request at a time" };
  const unknown = Object.entries(body).some(([name, value]) => !MEMBERS.has(name) && value !== null);
  const { query, variables = null, operationName = null } = body;
  if (unknown || typeof query !== "string" || (variables !== null && !isJsonObject(variables)))
    return { problem: "a GraphQL request has query, variables and operationName only" };
  try {
    const { operations, fragments } = parseGraphql(query);
    const [operation] = operations;
    if (operation === undefined || operations.length > 1)
      return { problem: "a GraphQL request must hold one operation" };
    if (operationName !== null && operationName !== operation.name)
      return { problem: "operationName is not the name of the operation" };
    const field = plainField(operation);
    const args = field === undefined ? {} : argumentsOf(field, operation, variables ?? {});
    return { kind: operation.kind, field, args, body, fragments };
  } catch (error) {
    if (error instanceof GraphqlError) return { problem: `the query ${error.message}` };
    throw error;
  }
}

function plainField({ selections, hasDirectives }: GraphqlOperation): GraphqlField | undefined {
  const [field] = selections;
  const isPlain = selections.length === 1 && field !== undefined && "name" in field && field.isPlain;
  return isPlain && !hasDirectives ? field : undefined;
}

function argumentsOf(field: GraphqlField, operation: GraphqlOperation, given: JsonObject): JsonObject {
  const fill = (value: GraphqlValue): JsonValue | undefined => {
    if ("literal" in value) return value.literal;
    if ("members" in value) return objectFrom(value.members, fill);
    if ("list" in value) {
      const items = value.list.map(fill);
      if (items.includes(undefined)) throw new GraphqlError("has a list with a variable that is not given");
      return items as JsonValue[];
    }
    const { variable } = value;
    if (!operation.variables.has(variable))
      throw new GraphqlError("uses a variable that it does not declare");
    if (Object.hasOwn(given, variable)) return given[variable];
    const other = operation.variables.get(variable);
    return other === undefined ? undefined : fill(other);
  };
  return objectFrom(field.args, fill);
}

function objectFrom(
  members: ReadonlyMap<string, GraphqlValue>,
  fill: (value: GraphqlValue) => JsonValue | undefined,
): JsonObject {
  const filled = [...members].flatMap(([name, value]): [string, JsonValue][] => {
    const own = fill(value);
    return own === undefined ? [] : [[name, own]];
  });
  return Object.fromEntries(filled);
}

/** Whether the request fits the document of a route: the same field, and an answer that holds what the undo needs. */
export function fitsGraphqlRoute({ kind, field }: GraphqlRoute, request: GraphqlRequest): boolean {
  if (field === undefined || request.field?.name !== field.name || kind !== request.kind) return false;
  // An argument that the document does not know can make another change of it.
  const isKnown = Object.keys(request.args).every((name) => field.args.has(name));
  return isKnown && covers(request.field.selections, field.selections, request.fragments);
}

function covers(
  asked: readonly GraphqlSelection[],
  wanted: readonly GraphqlSelection[],
  fragments: GraphqlDocument["fragments"],
): boolean {
  const fields = plainFields(asked, fragments, new Set());
  return wanted.every((one) => {
    if (!("name" in one)) return false;
    const same = fields.filter(({ name }) => name === one.name);
    return (
      same.length > 0 &&
      covers(
        same.flatMap(({ selections }) => selections),
        one.selections,
        fragments,
      )
    );
  });
}

/** Reads each fragment once, since more of the same adds nothing. */
function plainFields(
  selections: readonly GraphqlSelection[],
  fragments: GraphqlDocument["fragments"],
  seen: Set<string>,
): GraphqlField[] {
  return selections.flatMap((one) => {
    if (!one.isPlain) return [];
    if ("name" in one) return [one];
    if ("inline" in one) return plainFields(one.inline, fragments, seen);
    if (seen.has(one.fragment)) return [];
    seen.add(one.fragment);
    return plainFields(fragments.get(one.fragment) ?? [], fragments, seen);
  });
}

/** Body of a request that calls a field with these arguments. */
export function graphqlBody(
  { field, text }: GraphqlRoute,
  args: JsonObject,
): { body: JsonObject } | { problem: string } {
  if (field === undefined)
    return { problem: "http.graphql names no field, so no request can be built for it" };
  if (Object.keys(args).some((name) => !field.args.has(name)))
    return { problem: "an argument is not in the document of http.graphql" };
  return { body: { query: text, variables: args } };
}
