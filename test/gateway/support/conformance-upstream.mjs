/**
 * The fixtures that the MCP conformance suite calls by name. ERA=modern serves the newer revision alone,
 * else the older ones; over stdio, or over HTTP with PORT, to compare with what the suite says of it directly.
 */
import { createHmac, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, inputRequired, ProtocolError, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";
const text = (value) => ({ content: [{ type: "text", text: value }] });
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const object = (properties, required) => ({ type: "object", properties, ...(required ? { required } : {}) });
const string = { type: "string" };
const elicit = (message, schema) => inputRequired.elicit({ message, requestedSchema: schema });
const sample = (prompt, maxTokens) =>
  inputRequired.createMessage({
    messages: [{ role: "user", content: { type: "text", text: prompt } }],
    maxTokens,
  });
const sign = (state) => `${state}.${createHmac("sha256", "conformance").update(state).digest("hex")}`;
const signed = (state) =>
  typeof state === "string" && sign(state.split(".")[0]) === state ? state.split(".")[0] : null;

function checkState(given, wanted) {
  if (signed(given) !== wanted) throw new ProtocolError(-32602, "Invalid or tampered requestState");
}

/** Asks in the way of the era: with the answer in the newer one, over the connection in the older ones. */
async function askOlder(context, message, requestedSchema) {
  const answer = await context.mcpReq.elicitInput({ message, requestedSchema });
  return answer;
}

const ENUMS = object({
  untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
  titledSingle: {
    type: "string",
    oneOf: [1, 2, 3].map((n) => ({
      const: `value${n}`,
      title: `${["First", "Second", "Third"][n - 1]} Option`,
    })),
  },
  legacyEnum: {
    type: "string",
    enum: ["opt1", "opt2", "opt3"],
    enumNames: ["Option One", "Option Two", "Option Three"],
  },
  untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
  titledMulti: {
    type: "array",
    items: {
      anyOf: [1, 2, 3].map((n) => ({
        const: `value${n}`,
        title: `${["First", "Second", "Third"][n - 1]} Choice`,
      })),
    },
  },
});
const DEFAULTS = object({
  name: { ...string, default: "John Doe" },
  age: { type: "integer", default: 30 },
  score: { type: "number", default: 95.5 },
  status: { ...string, enum: ["active", "inactive", "pending"], default: "active" },
  verified: { type: "boolean", default: true },
});
const NAME = object({ name: string }, ["name"]);

const ROUNDS = {
  test_input_required_result_elicitation({ user_name }) {
    const name = user_name?.content?.name;
    if (typeof name === "string") return text(`Hello, ${name}!`);
    return inputRequired({ inputRequests: { user_name: elicit("What is your name?", NAME) } });
  },
  test_input_required_result_sampling({ capital_question: answer }) {
    if (answer !== undefined) return text(`The model says: ${JSON.stringify(answer.content)}`);
    return inputRequired({
      inputRequests: { capital_question: sample("What is the capital of France?", 100) },
    });
  },
  test_input_required_result_list_roots({ client_roots }) {
    if (client_roots !== undefined)
      return text(`Roots: ${client_roots.roots.map(({ uri }) => uri).join(", ")}`);
    return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
  },
  test_input_required_result_request_state({ confirm }, state) {
    if (confirm === undefined) {
      const schema = object({ ok: { type: "boolean" } }, ["ok"]);
      return inputRequired({
        inputRequests: { confirm: elicit("Please confirm", schema) },
        requestState: sign("confirm"),
      });
    }
    checkState(state, "confirm");
    return text("state-ok");
  },
  test_input_required_result_tampered_state({ confirm }, state) {
    if (state !== undefined) checkState(state, "tamper");
    if (confirm !== undefined && state !== undefined) return text("state-ok");
    const schema = object({ ok: { type: "boolean" } }, ["ok"]);
    return inputRequired({
      inputRequests: { confirm: elicit("Please confirm", schema) },
      requestState: sign("tamper"),
    });
  },
  test_input_required_result_multiple_inputs({ user_name, greeting, client_roots }, state) {
    if (user_name && greeting && client_roots) {
      checkState(state, "many");
      return text("all inputs received");
    }
    const inputRequests = {
      user_name: elicit("What is your name?", NAME),
      greeting: sample("Generate a greeting", 50),
      client_roots: inputRequired.listRoots(),
    };
    return inputRequired({ inputRequests, requestState: sign("many") });
  },
  test_input_required_result_multi_round({ step1, step2 }, state) {
    if (step2 !== undefined) {
      checkState(state, "round-2");
      return text("done after two rounds");
    }
    if (step1 !== undefined) {
      checkState(state, "round-1");
      const color = object({ color: string }, ["color"]);
      return inputRequired({
        inputRequests: { step2: elicit("Step 2: What is your favorite color?", color) },
        requestState: sign("round-2"),
      });
    }
    return inputRequired({
      inputRequests: { step1: elicit("Step 1: What is your name?", NAME) },
      requestState: sign("round-1"),
    });
  },
  test_input_required_result_capabilities(_responses, _state, { mcpReq }) {
    const can = mcpReq.envelope?.["io.modelcontextprotocol/clientCapabilities"] ?? {};
    const inputRequests = {
      ...(can.elicitation ? { name: elicit("What is your name?", NAME) } : {}),
      ...(can.sampling ? { capital: sample("What is the capital of France?", 100) } : {}),
    };
    return Object.keys(inputRequests).length === 0
      ? text("nothing can be asked")
      : inputRequired({ inputRequests });
  },
};

const TOOLS = {
  test_simple_text: () => text("This is a simple text response for testing."),
  test_image_content: () => ({ content: [{ type: "image", data: PNG, mimeType: "image/png" }] }),
  test_audio_content: () => ({ content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }] }),
  test_embedded_resource: () => ({
    content: [
      {
        type: "resource",
        resource: {
          uri: "test://embedded-resource",
          mimeType: "text/plain",
          text: "This is an embedded resource content.",
        },
      },
    ],
  }),
  test_multiple_content_types: () => ({
    content: [
      { type: "text", text: "Multiple content types test:" },
      { type: "image", data: PNG, mimeType: "image/png" },
      {
        type: "resource",
        resource: {
          uri: "test://mixed-content-resource",
          mimeType: "application/json",
          text: '{"test":"data","value":123}',
        },
      },
    ],
  }),
  async test_tool_with_logging(_args, { mcpReq }) {
    for (const line of ["Tool execution started", "Tool processing data", "Tool execution completed"]) {
      await mcpReq.log("info", line);
      await wait(50);
    }
    return text("Tool with logging executed successfully");
  },
  async test_logging_tool(_args, { mcpReq }) {
    await mcpReq.log("info", "a line that only those who asked should see");
    return text("logged");
  },
  test_error_handling: () => ({
    ...text("This tool intentionally returns an error for testing"),
    isError: true,
  }),
  async test_tool_with_progress(_args, { mcpReq }) {
    const progressToken = mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await mcpReq.notify({
          method: "notifications/progress",
          params: { progressToken, progress, total: 100 },
        });
      await wait(50);
    }
    return text(String(progressToken ?? "no token"));
  },
  async test_sampling({ prompt }, { mcpReq }) {
    const answer = await mcpReq.requestSampling({
      messages: [{ role: "user", content: { type: "text", text: prompt } }],
      maxTokens: 100,
    });
    return text(`LLM response: ${answer.content.text}`);
  },
  async test_elicitation({ message }, context) {
    const schema = object(
      {
        username: { ...string, description: "User's response" },
        email: { ...string, description: "User's email address" },
      },
      ["username", "email"],
    );
    return text(`User response: ${JSON.stringify(await askOlder(context, message, schema))}`);
  },
  async test_elicitation_sep1034_defaults(_args, context) {
    const { action, content } = await askOlder(context, "Please review and update the form", DEFAULTS);
    return text(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`);
  },
  async test_elicitation_sep1330_enums(_args, context) {
    const { action, content } = await askOlder(context, "Please select options", ENUMS);
    return text(`Elicitation completed: action=${action}, content=${JSON.stringify(content)}`);
  },
  test_missing_capability(_args, { mcpReq }) {
    const can = mcpReq.envelope?.["io.modelcontextprotocol/clientCapabilities"] ?? {};
    if (can.sampling) return text("sampling is there");
    throw new ProtocolError(-32021, "Missing required client capability: sampling", {
      requiredCapabilities: { sampling: {} },
    });
  },
  test_streaming_elicitation: () =>
    inputRequired({ inputRequests: { user_name: elicit("What is your name?", NAME) } }),
  test_trigger_tool_change: () => changed("tools"),
  test_trigger_prompt_change: () => changed("prompts"),
};

const ARGUMENTS = {
  test_sampling: object({ prompt: string }, ["prompt"]),
  test_elicitation: object({ message: string }, ["message"]),
};
const SCHEMA_2020 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: { address: { $anchor: "addressDef", type: "object", properties: { street: string, city: string } } },
  properties: {
    name: string,
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: string,
    email: string,
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // biome-ignore lint/suspicious/noThenProperty: it is a keyword of JSON Schema
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

let revision = 0;
const hear = new Set();
function changed(what) {
  revision++;
  for (const tell of hear) tell(what);
  return text(`${what} changed`);
}

const listed = () => [
  ...[...Object.keys(TOOLS), ...Object.keys(ROUNDS)].map((name) => ({
    name,
    description: `the fixture ${name}`,
    inputSchema: ARGUMENTS[name] ?? { type: "object" },
  })),
  {
    name: "json_schema_2020_12_tool",
    description: "Tool with JSON Schema 2020-12 features",
    inputSchema: SCHEMA_2020,
  },
  { name: "changes", description: `revision ${revision}`, inputSchema: { type: "object" } },
];

const PROMPTS = {
  test_simple_prompt: {
    description: "A simple prompt",
    get: () => [{ type: "text", text: "This is a simple prompt for testing." }],
  },
  test_prompt_with_arguments: {
    description: "A prompt with arguments",
    arguments: ["arg1", "arg2"].map((name) => ({ name, description: `${name} of the test`, required: true })),
    get: ({ arg1, arg2 }) => [
      { type: "text", text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` },
    ],
  },
  test_prompt_with_embedded_resource: {
    description: "A prompt with a resource",
    arguments: [{ name: "resourceUri", description: "URI of the resource to embed", required: true }],
    get: ({ resourceUri }) => [
      {
        type: "resource",
        resource: {
          uri: resourceUri,
          mimeType: "text/plain",
          text: "Embedded resource content for testing.",
        },
      },
      { type: "text", text: "Please process the embedded resource above." },
    ],
  },
  test_prompt_with_image: {
    description: "A prompt with an image",
    get: () => [
      { type: "image", data: PNG, mimeType: "image/png" },
      { type: "text", text: "Please analyze the image above." },
    ],
  },
  test_input_required_result_prompt: { description: "A prompt that asks", get: () => [] },
};

const RESOURCES = {
  "test://static-text": { mimeType: "text/plain", text: "This is the content of the static text resource." },
  "test://static-binary": { mimeType: "image/png", blob: PNG },
  "test://watched-resource": { mimeType: "text/plain", text: "watched" },
};

function read(uri) {
  if (Object.hasOwn(RESOURCES, uri)) return { uri, ...RESOURCES[uri] };
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (id !== undefined)
    return {
      uri,
      mimeType: "application/json",
      text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
    };
  throw new ProtocolError(-32602, "Resource not found", { uri });
}

function factory() {
  const modern = process.env.ERA === "modern";
  const server = new Server(
    { name: "conformance-fixtures", version: "1.0.0" },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        completions: {},
        logging: {},
      },
      inputRequired: { legacyShim: false },
    },
  );
  server.setRequestHandler("tools/list", () => ({ tools: listed() }));
  server.setRequestHandler("tools/call", async ({ params: { name, arguments: args = {} } }, context) => {
    if (Object.hasOwn(ROUNDS, name))
      return ROUNDS[name](context.mcpReq.inputResponses ?? {}, context.mcpReq.requestState(), context);
    if (Object.hasOwn(TOOLS, name)) return TOOLS[name](args, context);
    throw new ProtocolError(-32602, `Unknown tool: ${name}`);
  });
  server.setRequestHandler("prompts/list", () => ({
    prompts: Object.entries(PROMPTS).map(([name, { get: _, ...rest }]) => ({ name, ...rest })),
  }));
  server.setRequestHandler("prompts/get", ({ params: { name, arguments: args = {} } }, { mcpReq }) => {
    if (!Object.hasOwn(PROMPTS, name)) throw new ProtocolError(-32602, `Unknown prompt: ${name}`);
    if (name === "test_input_required_result_prompt") {
      const given = mcpReq.inputResponses?.user_context?.content?.context;
      const schema = object({ context: string }, ["context"]);
      if (given === undefined)
        return inputRequired({
          inputRequests: { user_context: elicit("What context should the prompt use?", schema) },
        });
      return { messages: [{ role: "user", content: { type: "text", text: `In the context of ${given}` } }] };
    }
    return { messages: PROMPTS[name].get(args).map((content) => ({ role: "user", content })) };
  });
  server.setRequestHandler("resources/list", () => ({
    resources: Object.entries(RESOURCES).map(([uri, { mimeType }]) => ({
      uri,
      name: uri.slice(7),
      description: `the fixture ${uri}`,
      mimeType,
    })),
  }));
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: [
      {
        uriTemplate: "test://template/{id}/data",
        name: "template",
        description: "a template",
        mimeType: "application/json",
      },
    ],
  }));
  server.setRequestHandler("resources/read", ({ params: { uri } }) => ({ contents: [read(uri)] }));
  server.setRequestHandler("completion/complete", () => ({
    completion: { values: ["paris", "park", "party"], total: 3, hasMore: false },
  }));
  if (!modern) {
    server.setRequestHandler("resources/subscribe", () => ({}));
    server.setRequestHandler("resources/unsubscribe", () => ({}));
  }
  const tell = (what) =>
    void server.notification({ method: `notifications/${what}/list_changed` }).catch(() => {});
  hear.add(tell);
  server.onclose = () => hear.delete(tell);
  return server;
}

const { ERA = "legacy", PORT } = process.env;
if (PORT === undefined) serveStdio(factory, { legacy: ERA === "modern" ? "reject" : "serve" });
else if (ERA === "modern") {
  const handler = createMcpHandler(factory, { legacy: "reject" });
  hear.add((what) => (what === "tools" ? handler.notify.toolsChanged() : handler.notify.promptsChanged()));
  const serve = toNodeHandler(handler);
  createServer((request, response) => void serve(request, response)).listen(Number(PORT), "127.0.0.1");
} else {
  const sessions = new Map();
  createServer(async (request, response) => {
    const id = request.headers["mcp-session-id"];
    let transport = sessions.get(id);
    if (transport === undefined) {
      transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (made) => void sessions.set(made, transport),
      });
      await factory().connect(transport);
    }
    await transport.handleRequest(request, response);
  }).listen(Number(PORT), "127.0.0.1");
}
