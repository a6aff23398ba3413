/**
 * Meaning of each field inside a setting, for editors. A key is a path in the schema or its end, so that fields of
 * several settings are described once; the longest key wins.
 */
const FIELD_TEXTS: Readonly<Record<string, string>> = {
  "quotas[].match": "Which callers this quota is about.",
  "match.tenant": "Glob over the tenant.",
  "match.actor": "Glob over the name of the actor.",
  requests_per_second: "Requests that are accepted per second, on average.",
  burst: "Requests that are accepted at once above the average.",
  open_approvals: "Approval requests and plans that can wait for a decision.",
  waiting: "Callers that can wait for a decision, per server.",
  sessions: "MCP sessions that can be open, per server.",

  "sinks[].type": "Kind of this sink.",
  path: "File to append to.",
  secret: "Secret that signs each delivery, so that the receiver can check where it comes from.",
  "anchor.sinks[].key": "Verifier key of the witness, as text or as a file.",
  format: "Format of the records: jsonl, cef or ocsf.",
  protocol: "Transport of the syslog messages: tcp or udp.",
  host: "Host name or address of the receiver.",
  port: "Port of the receiver.",
  url: "Address to send to.",

  "channels[].type": "Kind of this channel.",
  "channels[].name": "Name of this channel, as logs and the console show it.",
  events: "Events to send. Without a list, all of them.",
  routing_key: "Integration key of the PagerDuty service.",
  api_key: "API key of the Opsgenie integration.",
  secure: "Whether the connection uses TLS from its start.",
  starttls: "Whether the connection has to change to TLS: required, optional or off.",
  user: "Name to sign in with.",
  password: "Password to sign in with.",
  "channels[].from": "Sender of the messages.",
  to: "Recipients of the messages.",

  "upstreams[].name": "Short name of this tool server.",
  command: "Program that starts the tool server.",
  args: "Arguments of the program.",
  "upstreams[].env": "Environment variables of the program.",
  cwd: "Directory in which the program runs.",
  "upstreams[].url": "Address of a remote tool server.",
  headers: "Headers that the gateway adds to its requests.",
  auth: "How the gateway signs in to the tool server.",
  "auth.type": "oauth for consent in a browser, or exchange for the caller's token.",
  per: "Who consents: each principal, or an admin for the service.",
  scopes: "OAuth scopes to ask for. Without a list, those that the tool server names.",
  issuer: "Address of the authorization server.",
  client_id: "Id of this client at the authorization server.",
  client_secret: "Secret of this client at the authorization server.",
  namespace: "Whether each tool has the server's name in front.",
  timeout: "Longest time that a call can take.",
  passthrough: "Further MCP features to pass on. Approvals do not cover them.",
  isolation: "Who gets a separate connection: each principal, each session, or nobody (shared).",
  max_connections: "Connections that can be open at the same time.",
  idle: "Time without a call after which a connection closes.",

  "credentials[].name": "Name of this credential, as logs show it.",
  hosts: "Hosts whose requests get it.",
  header: "Adds the credential as a header.",
  "header.name": "Name of the header.",
  prefix: "Text in front of the credential, such as `Bearer `.",
  query: "Adds the credential as this parameter of the query.",
  basic: "Adds the credential as the password of basic authentication.",
  "basic.user": "Name of the user.",
  aws_sigv4: "Signs the request for AWS.",
  region: "AWS region of the service.",
  service: "AWS name of the service.",
  from: "Where the credential comes from: a variable, a file or a command.",
  "from.env": "Environment variable that holds the credential.",
  file: "File that holds the credential.",
  "from.command": "Command that prints the credential.",
};

export function describeSettingField(path: string): string | undefined {
  const parts = path.split(".");
  for (let start = 0; start < parts.length; start++) {
    const text = FIELD_TEXTS[parts.slice(start).join(".")];
    if (text !== undefined) return text;
  }
  return undefined;
}
