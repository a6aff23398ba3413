/** Tokens of a GraphQL document. Refuses block strings and text outside the grammar. */

export interface GraphqlToken {
  readonly kind: "name" | "number" | "string" | "mark";
  /** A string without its quotes and escapes; otherwise the text itself. */
  readonly text: string;
}

const IGNORED = /(?:[\uFEFF\t \n\r,]|#[^\n\r]*)+/y;
const TOKEN =
  /([_A-Za-z][_0-9A-Za-z]*)|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![_A-Za-z0-9.]))|("(?:[^"\\\n\r]|\\(?:u[0-9A-Fa-f]{4}|["\\/bfnrt]))*")(?!")|(\.\.\.|[!$&()=:@[\]{|}])/y;

export class GraphqlError extends Error {}

export function graphqlTokens(text: string): GraphqlToken[] {
  const tokens: GraphqlToken[] = [];
  let at = 0;
  const skip = () => {
    IGNORED.lastIndex = at;
    if (IGNORED.test(text)) at = IGNORED.lastIndex;
  };
  for (skip(); at < text.length; skip()) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (match === null)
      throw new GraphqlError(
        text.startsWith('"""', at)
          ? "a block string is not read; send the text as a variable"
          : "holds text that is not GraphQL",
      );
    at = TOKEN.lastIndex;
    tokens.push(tokenOf(match));
  }
  return tokens;
}

function tokenOf([whole, name, number, string]: RegExpExecArray): GraphqlToken {
  if (name !== undefined) return { kind: "name", text: name };
  if (number !== undefined) return { kind: "number", text: number };
  if (string === undefined) return { kind: "mark", text: whole };
  try {
    return { kind: "string", text: JSON.parse(string) as string };
  } catch {
    throw new GraphqlError("a string holds a control character; send the text as a variable");
  }
}
