/** Manifests for servers whose tools change nothing that would need an undo. */
import type { ManifestPack, PackEntry } from "./pack.ts";

const read: PackEntry = { effect: "read" };

export const everythingPack: ManifestPack = {
  tried: "@modelcontextprotocol/server-everything 2026.8.31",
  tools: {
    echo: "51e68d304df41c09",
    "get-annotated-message": "4130af72a8c7e9fd",
    "get-env": "b5ea28f3a066e246",
    "get-resource-links": "8276c3047f064922",
    "get-resource-reference": "fe1a792157302bb0",
    "get-structured-content": "b4f257e062dda892",
    "get-sum": "59c9fd6267a4bbd1",
    "get-tiny-image": "b5ea28f3a066e246",
    "gzip-file-as-resource": "863f107f0f666e5d",
    "toggle-simulated-logging": "b5ea28f3a066e246",
    "toggle-subscriber-updates": "b5ea28f3a066e246",
    "trigger-long-running-operation": "9ef271d6aeb7986d",
    "simulate-research-query": "fecb13d069cf3201",
  },
  entries: {
    echo: read,
    "get-annotated-message": read,
    "get-resource-links": read,
    "get-resource-reference": read,
    "get-structured-content": read,
    "get-sum": read,
    "get-tiny-image": read,
    "trigger-long-running-operation": read,
    "get-env": { effect: "read", note: "prints the server's environment, including its secrets" },
  },
  rules: [
    {
      id: "environment-needs-a-person",
      tool: "get-env",
      when: [],
      action: "require_approval",
      reason: "it prints the server's environment",
    },
  ],
};

export const sequentialThinkingPack: ManifestPack = {
  tried: "@modelcontextprotocol/server-sequential-thinking 2026.8.31",
  tools: {
    sequentialthinking: "c6dda595808f8d17",
  },
  entries: { sequentialthinking: { effect: "read", note: "keeps thoughts for its own connection only" } },
};
