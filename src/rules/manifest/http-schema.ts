/** The `http` part of a manifest: which request calls the tool, and how its answer is read. */
import * as z from "zod";
import { declaredFields, toUndeclared } from "./declared-fields.ts";
import {
  graphqlSchema,
  httpHostSchema,
  httpMethodSchema,
  httpPathSchema,
  templateSchema,
} from "./field-schemas.ts";

/** A place in a path is the only kind of place: method and host are literal, so that TLS opens for known hosts alone. */
export const httpSchema = z
  .strictObject({
    scheme: z
      .enum(["https", "http"])
      .nullish()
      .meta({ default: "https", description: "Scheme of the request: https or http." })
      .transform((scheme) => scheme ?? "https"),
    host: httpHostSchema.describe("Host of the request, with a port if it is not the one of the scheme."),
    method: httpMethodSchema.describe("Method of the request, such as POST."),
    path: httpPathSchema.describe(
      "Path with places: {name} within a segment, {name:digits} for digits, a last {name:path} for the rest.",
    ),
    query: z
      .array(z.string().min(1))
      .max(100)
      .nullish()
      .describe("The only query fields that the request can have.")
      .transform(toUndeclared),
    body: z
      .enum(["json", "form", "opaque"])
      .nullish()
      .describe(
        "json or form accepts only that; default both. opaque accepts any body and shows only its length and hash.",
      )
      .transform(toUndeclared),
    graphql: graphqlSchema
      .nullish()
      .describe("query, mutation, or a GraphQL document with the one field that the tool takes.")
      .transform(toUndeclared),
    failed: templateSchema
      .refine(
        (answer) => Object.keys(answer).length > 0,
        "matches every answer; write members that only a failure has",
      )
      .nullish()
      .describe("An answer below 400 that shows a failure; objects match partially.")
      .transform(toUndeclared),
    answer_headers: z
      .array(z.string().regex(/^[a-z0-9-]+$/, "must be the name of a header in small letters"))
      .max(20)
      .nullish()
      .describe("Headers of the answer that $result.headers shows, in small letters.")
      .transform(toUndeclared),
    websocket: z
      .literal(true)
      .nullish()
      .describe("The request opens a WebSocket, whose messages are not read.")
      .transform(toUndeclared),
  })
  .superRefine(({ graphql, method, path, body, query, websocket }, context) => {
    const isPlain = method === "POST" && !path.includes("{") && (body ?? "json") === "json";
    if (graphql !== undefined && !(isPlain && query === undefined && websocket === undefined))
      context.addIssue({
        code: "custom",
        path: ["graphql"],
        message: "needs method POST, a path without placeholders, and a JSON body",
      });
  })
  .transform(declaredFields);
