/**
 * Shows tools to clients according to the configuration: names, the extra reason argument, and the service's own tools.
 */
import { isPersonal, needsConsent } from "../../config/sections/gateway.ts";
import type { LoadedSettings } from "../../config/settings.ts";
import { ProblemsError } from "../../kernel/errors.ts";
import type { JsonObject } from "../../kernel/json/json.ts";
import { askingReason, takeReason } from "../call/ask-reason.ts";
import { AGENT_TOOLS, connectUpstreamTool } from "../tools/agent-tools.ts";
import { OPERATOR_TOOLS } from "../tools/operator-tools.ts";
import { definitionOf, type OwnTool } from "../tools/own-tool.ts";
import type { ToolCatalog, ToolRoute } from "./catalog.ts";
import { assignNames, type ToolNames, toProviderName } from "./tool-names.ts";

type ListingSettings = Pick<LoadedSettings, "tool_names" | "own_tools" | "ask_reason" | "upstreams">;

/** The service's own tools by their provider-safe names, which upstream tools cannot use. */
const OWN = new Map(
  [...AGENT_TOOLS, ...OPERATOR_TOOLS].map(({ name }) => [toProviderName(name, null), name]),
);

export class ToolListing {
  private readonly settings: ListingSettings;
  private readonly catalog: () => ToolCatalog;
  /** Tool names that manifests declare, including tools that no upstream offers. */
  private readonly declared: () => Iterable<string>;
  private readonly definitions = new WeakMap<ToolRoute, JsonObject>();
  private known: { of: ToolCatalog; names: ToolNames } | null = null;

  constructor(settings: ListingSettings, catalog: () => ToolCatalog, declared: () => Iterable<string>) {
    this.settings = settings;
    this.catalog = catalog;
    this.declared = declared;
    const unknown = this.wanted(AGENT_TOOLS).filter(
      (name) => !AGENT_TOOLS.some((tool) => tool.name === name),
    );
    if (unknown.length === 0) return;
    const known = AGENT_TOOLS.map(({ name }) => name).join(", ");
    throw new ProblemsError(unknown.map((name) => `own_tools: unknown tool ${name}; choose from ${known}`));
  }

  private names(): ToolNames {
    const of = this.catalog();
    if (this.known?.of === of) return this.known.names;
    const tools = [...of.offers].map(([tool, [first]]) => ({ tool, namespace: namespaceOf(first) }));
    const names = assignNames(tools, OWN.keys());
    this.known = { of, names };
    return names;
  }

  /** The name in manifests and records for a name from a call, in either spelling. */
  dotted(name: string): string {
    const { offers } = this.catalog();
    if (offers.has(name)) return name;
    return this.names().dotted.get(name) ?? OWN.get(name) ?? this.declaredAs(name) ?? name;
  }

  /** The manifest name of a tool whose upstream never connected. Undefined if the name is ambiguous. */
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
    return toProviderName(tool, upstream?.name ?? null);
  }

  spelled(tool: string): string {
    if (this.settings.tool_names === "dots") return tool;
    return this.names().plain.get(tool) ?? this.made(tool);
  }

  /** The definition that clients see. */
  shown(route: ToolRoute): JsonObject {
    const known = this.definitions.get(route);
    if (known !== undefined) return known;
    const { definition } = route;
    const name = this.spelled(route.tool);
    const asked = this.settings.ask_reason ? askingReason(definition) : definition;
    const shown = name === asked["name"] ? asked : { ...asked, name };
    this.definitions.set(route, shown);
    return shown;
  }

  /** Definitions of the service's own tools. Agents see the ones that `own_tools` names. */
  own(tools: readonly OwnTool[]): JsonObject[] {
    const shown =
      tools === AGENT_TOOLS ? tools.filter(({ name }) => this.wanted(AGENT_TOOLS).includes(name)) : tools;
    return shown.map((tool) => ({ ...definitionOf(tool), name: this.spelled(tool.name) }));
  }

  private wanted(all: readonly OwnTool[]): string[] {
    const { own_tools, upstreams } = this.settings;
    if (own_tools === "none") return [];
    const connects = upstreams.some((spec) => needsConsent(spec) && isPersonal(spec));
    if (own_tools === "all")
      return all.filter((tool) => connects || tool !== connectUpstreamTool).map(({ name }) => name);
    return own_tools.map((name) => OWN.get(name) ?? name.replace(/^svc_/, "svc."));
  }

  /** Instructions about the service for agents, with the tool names that they see. */
  instructions(): string {
    const named = (tool: string) => (this.wanted(AGENT_TOOLS).includes(tool) ? this.spelled(tool) : null);
    const wait = named("svc.await_approval");
    const plan = named("svc.plan_rollback");
    return [
      "Every tool call here is decided and recorded by an action governance service. A blocked call answers with isError and its reasons;",
      wait === null
        ? "if it needs approval, send the same call again after the approval."
        : `if it needs approval, wait with ${wait} and send the same call again.`,
      ...(plan === null ? [] : [`${plan} shows what can be undone.`]),
    ].join(" ");
  }

  /** Separates the reason from the other arguments of a call. */
  apart(args: JsonObject, route: ToolRoute | undefined): { args: JsonObject; reason: string | undefined } {
    return this.settings.ask_reason ? takeReason(args, route?.definition) : { args, reason: undefined };
  }
}

function namespaceOf(route: ToolRoute | undefined): string | null {
  return route?.upstream.spec.namespace === true ? route.upstream.name : null;
}
