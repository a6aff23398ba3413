/** How tools are shown to clients, by the configuration: their names, what they are asked beside, and which of ours. */
import type { Settings } from "../config/settings.ts";
import { ProblemsError } from "../kernel/errors.ts";
import type { JsonObject } from "../kernel/json.ts";
import { askingReason, takeReason } from "./ask-reason.ts";
import type { Catalog, Route } from "./catalog.ts";
import { type Names, nameAll, plainly } from "./names.ts";
import { AGENT_TOOLS } from "./tools/agent-tools.ts";
import { OPERATOR_TOOLS } from "./tools/operator-tools.ts";
import { definitionOf, type OwnTool } from "./tools/own-tool.ts";

type ListingSettings = Pick<Settings, "tool_names" | "own_tools" | "ask_reason" | "upstreams">;

/** The service's own tools by the name that providers take; no upstream's tool may get one of these. */
const OWN = new Map([...AGENT_TOOLS, ...OPERATOR_TOOLS].map(({ name }) => [plainly(name, null), name]));

export class Listing {
  private readonly settings: ListingSettings;
  private readonly catalog: () => Catalog;
  /** Names that manifests declare, whether an upstream offers them or not. */
  private readonly declared: () => Iterable<string>;
  private readonly definitions = new WeakMap<Route, JsonObject>();
  private known: { of: Catalog; names: Names } | null = null;

  constructor(settings: ListingSettings, catalog: () => Catalog, declared: () => Iterable<string>) {
    this.settings = settings;
    this.catalog = catalog;
    this.declared = declared;
    const unknown = this.wanted(AGENT_TOOLS).filter(
      (name) => !AGENT_TOOLS.some((tool) => tool.name === name),
    );
    if (unknown.length === 0) return;
    const known = AGENT_TOOLS.map(({ name }) => name).join(", ");
    throw new ProblemsError(unknown.map((name) => `own_tools: there is no tool ${name}; known are ${known}`));
  }

  private names(): Names {
    const of = this.catalog();
    if (this.known?.of === of) return this.known.names;
    const tools = [...of.offers].map(([tool, [first]]) => ({ tool, namespace: namespaceOf(first) }));
    const names = nameAll(tools, OWN.keys());
    this.known = { of, names };
    return names;
  }

  /** The name that manifests and records have for what a call names, in whichever spelling. */
  dotted(name: string): string {
    const { offers } = this.catalog();
    if (offers.has(name)) return name;
    return this.names().dotted.get(name) ?? OWN.get(name) ?? this.declaredAs(name) ?? name;
  }

  /** Of a tool whose upstream never showed itself the manifest alone knows the name; what could be two is none. */
  private declaredAs(name: string): string | undefined {
    const { offers } = this.catalog();
    const all = [...new Set([...offers.keys(), ...this.declared()])];
    const [tool, ...others] = all.filter((one) => this.made(one) === name);
    return tool === undefined || others.length > 0 || offers.has(tool) ? undefined : tool;
  }

  private made(tool: string): string {
    const upstream = this.settings.upstreams.find(
      ({ name, namespace }) => namespace && tool.startsWith(`${name}.`),
    );
    return plainly(tool, upstream?.name ?? null);
  }

  spelled(tool: string): string {
    if (this.settings.tool_names === "dots") return tool;
    return this.names().plain.get(tool) ?? this.made(tool);
  }

  /** The definition as clients are shown it. */
  shown(route: Route): JsonObject {
    const known = this.definitions.get(route);
    if (known !== undefined) return known;
    const { definition } = route;
    const name = this.spelled(route.tool);
    const asked = this.settings.ask_reason ? askingReason(definition) : definition;
    const shown = name === asked["name"] ? asked : { ...asked, name };
    this.definitions.set(route, shown);
    return shown;
  }

  /** A tool of ours; agents are shown those that `own_tools` names. */
  own(tools: readonly OwnTool[]): JsonObject[] {
    const shown =
      tools === AGENT_TOOLS ? tools.filter(({ name }) => this.wanted(AGENT_TOOLS).includes(name)) : tools;
    return shown.map((tool) => ({ ...definitionOf(tool), name: this.spelled(tool.name) }));
  }

  private wanted(all: readonly OwnTool[]): string[] {
    const { own_tools } = this.settings;
    if (own_tools === "none") return [];
    if (own_tools === "all") return all.map(({ name }) => name);
    return own_tools.map((name) => OWN.get(name) ?? name.replace(/^svc_/, "svc."));
  }

  /** What an agent is told of us, in the names that it is shown. */
  instructions(): string {
    const named = (tool: string) => (this.wanted(AGENT_TOOLS).includes(tool) ? this.spelled(tool) : null);
    const wait = named("svc.await_approval");
    const plan = named("svc.plan_rollback");
    return [
      "Every tool call here is decided and recorded by an action governance service. A blocked call answers with isError and its reasons;",
      wait === null
        ? "when it needs an approval, send the same call again once it was given."
        : `when it needs an approval, wait with ${wait} and send the same call again.`,
      ...(plan === null ? [] : [`${plan} shows what can be undone.`]),
    ].join(" ");
  }

  /** The arguments of the call alone, and the reason that came among them. */
  apart(args: JsonObject, route: Route | undefined): { args: JsonObject; reason: string | undefined } {
    return this.settings.ask_reason ? takeReason(args, route?.definition) : { args, reason: undefined };
  }
}

function namespaceOf(route: Route | undefined): string | null {
  return route?.upstream.spec.namespace === true ? route.upstream.name : null;
}
