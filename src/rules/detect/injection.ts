/**
 * Finds text that addresses the model instead of a reader: orders to ignore instructions, forged conversation marks,
 * requests to hide or leak data, invisible characters. A hint, not a proof, so policies usually only warn.
 */
import { collectHits, type DetectorHit, mergeHits } from "./hits.ts";

interface Phrase {
  readonly kind: string;
  readonly pattern: RegExp;
}

/** Gap between two words: up to 6 characters that are not letters or digits, so that `ignore - all` matches too. */
const G = "[^\\p{L}\\p{N}]{1,6}";
const phrase = (kind: string, ...parts: string[]): Phrase => ({
  kind,
  pattern: new RegExp(`(?<![\\p{L}\\p{N}])${parts.join(G)}(?![\\p{L}\\p{N}])`, "giu"),
});

const OLD = "(?:previous|prior|above|preceding|earlier|foregoing|existing|original|initial|past)";
const ORDERS =
  "(?:instructions?|prompts?|messages?|directions?|directives?|rules|guidelines|commands|context|training|constraints|restrictions)";
const DROP = "(?:ignore|disregard|forget|override|bypass|discard|neglect)";
const MINE = "(?:your|the|its|my|any)";

const PHRASES: readonly Phrase[] = [
  phrase(
    "override",
    DROP,
    `(?:(?:all|any|every|each)${G})?(?:(?:of|the|your|my|these|those)${G}){0,2}(?:${OLD})`,
    `(?:\\p{L}{1,20}${G})?${ORDERS}`,
  ),
  phrase(
    "override",
    DROP,
    `(?:(?:all|any)${G})?(?:of${G})?(?:the|your|its)`,
    `(?:\\p{L}{1,20}${G})?${ORDERS}`,
  ),
  phrase(
    "override",
    "(?:ignore|disregard|forget)",
    "(?:everything|anything|all)",
    `(?:that${G})?(?:you|above|before|previously|you've)`,
  ),
  phrase(
    "override",
    "(?:do|does)",
    "not",
    "(?:follow|obey)",
    `(?:(?:any|all|of|the|your|these)${G}){1,3}(?:(?:${OLD})${G})?${ORDERS}`,
  ),
  phrase(
    "override",
    "(?:new|updated|revised)",
    `(?:system${G})?(?:instructions|directive|directives|orders)`,
    `(?:(?:for|from|to)${G}(?:the${G})?(?:you|your|system|admin|administrator|ai|assistant|model|agent)|follow|override|supersede)`,
  ),
  phrase(
    "role",
    "you",
    "are",
    "(?:now|no longer)",
    `(?:(?:a|an|in|the)${G})?(?:dan|jailbroken|unrestricted|unfiltered|developer mode|root|admin|bound|restricted|going to|evil|free|different|new)`,
  ),
  phrase(
    "role",
    "(?:act|behave|respond|pretend)",
    "(?:as|like|to be)",
    `(?:(?:if|you|an?|the|were|are)${G}){0,4}(?:unrestricted|unfiltered|jailbroken|dan|uncensored|root|admin|evil|developer mode|system)`,
  ),
  phrase(
    "role",
    "(?:enter|enable|activate|switch to)",
    "(?:developer|debug|god|jailbreak|dan|maintenance|admin)",
    "mode",
  ),
  phrase(
    "leak",
    "(?:reveal|print|show|output|repeat|display|leak|disclose|return|tell me)",
    `(?:(?:me|us|all|of|verbatim)${G}){0,2}${MINE}`,
    `(?:(?:full|entire|hidden|initial|original|exact|secret)${G})?(?:system|developer|hidden|initial)`,
    "(?:prompt|instructions?|message)",
  ),
  phrase(
    "leak",
    "(?:send|post|upload|exfiltrate|forward|email|transmit|leak)",
    `(?:(?:all|the|your|every|any|of|me|us)${G}){0,3}(?:(?:\\p{L}{1,15}${G})?)(?:secrets?|credentials?|passwords?|api keys?|tokens?|conversation|chat history|environment variables|private keys?|system prompt)`,
    `(?:\\p{L}{1,15}${G})?(?:to|at|via)`,
  ),
  phrase(
    "conceal",
    "(?:do not|don't|dont|never|without)",
    "(?:tell|telling|mention|mentioning|inform|informing|notify|notifying|alert|alerting|reveal|show)",
    `(?:(?:this|it|any of this|anything)${G}(?:to${G})?)?(?:the|your|any|to the)`,
    "(?:user|users|human|humans|operator|owner|admin|person)",
  ),
  phrase(
    "conceal",
    "(?:the )?user",
    "(?:must|should|need)",
    "(?:not|never)",
    "(?:know|learn|be told|notice|find out)",
  ),
  phrase(
    "tool_order",
    "(?:you must|you should|please|now|immediately|then|instead)",
    `(?:(?:now|immediately|also|first|instead)${G}){0,2}(?:call|invoke|run|execute|use)`,
    "the",
    "[`'\"]?[\\p{L}\\p{N}_.]{2,40}[`'\"]?",
    "(?:tool|function|command|api)",
  ),
  phrase(
    "tool_order",
    "(?:important|attention|note to|message to|instructions? (?:for|to))",
    `(?:(?:the|any|all)${G})?(?:ai|llm|assistant|language model|agent|chatbot|claude|gpt|copilot|gemini)(?:${G}(?:agents?|assistants?|models?|reading|processing))?`,
  ),
];

const MARKS: readonly Phrase[] = [
  {
    kind: "forged_mark",
    pattern:
      /<\|(?:im_start|im_end|system|user|assistant|endoftext|begin_of_text|start_header_id|end_header_id|eot_id)\|>/g,
  },
  {
    kind: "forged_mark",
    pattern:
      /\[\/?INST\]|<<\/?SYS>>|<\/?(?:system|assistant|developer)(?:[ _-]?(?:prompt|message|instructions?))?>|<\/?(?:tool_result|function_results?|function_calls?)>/gi,
  },
  {
    kind: "forged_mark",
    pattern:
      /(?:^|\n)[ \t]{0,4}(?:#{1,6}[ \t]{0,3})?(?:system|assistant|developer)(?:[ \t](?:prompt|message|instructions?))?[ \t]{0,3}:[ \t]{0,3}(?:you|ignore|forget|override|from now|new|disregard)/gi,
  },
];

/** Bidirectional overrides, runs of zero-width characters, and tag characters that encode hidden text. */
const UNSEEN = new RegExp(
  "[\u202a-\u202e\u2066-\u2069]" +
    "|(?:\u200b|\u200c|\u200d|\u2060|\ufeff){4,}" +
    "|(?<!\u{1f3f4}|[\u{e0020}-\u{e007e}])[\u{e0020}-\u{e007e}]{2,}",
  "gu",
);

const GATE =
  /ignore|disregard|forget|overrid|bypass|discard|neglect|follow|obey|instruct|directive|orders|prompt|pretend|behave|respond|act as|act like|mode|you are|secret|credential|password|token|key|conversation|history|variables|user|human|operator|owner|admin|person|tool|function|command|api|important|attention|message|assistant|agent|model/i;

export function findInjection(text: string, _key?: string): DetectorHit[] {
  if (text.length < 8) return [];
  const hits: DetectorHit[] = [];
  const look = ({ kind, pattern }: Phrase) =>
    collectHits(text, pattern, hits, (match) => ({
      kind,
      start: match.index,
      end: match.index + match[0].length,
    }));
  if (GATE.test(text)) for (const entry of PHRASES) look(entry);
  for (const entry of MARKS) look(entry);
  look({ kind: "unseen_text", pattern: UNSEEN });
  return mergeHits(hits);
}
