/**
 * Options for fastify: routes here have no schemas of fastify's own, because operations check their input. Fastify then
 * loads none of its schema libraries, which take longer to load than the rest of it.
 */
const refuse = () => () => {
  throw new Error("routes take no fastify schema: the operation checks the input");
};

export const NO_SCHEMAS = {
  schemaController: { compilersFactory: { buildValidator: refuse, buildSerializer: refuse } },
};
