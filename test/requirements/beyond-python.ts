/** Statements on the Python SDK where agents already are. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondPython = section("beyond", "7.2 Python", {
  "beyond.python.read": [22, "with `read` a call from Python reads what its manifest's `before` asks for, before and after, and a read that fails lets nothing run"],
  "beyond.python.decorator": [22, "`governed` decorates functions and coroutine functions: each call is asked for first, and does not run where it is refused or no run is open"],
  "beyond.python.context": [22, "`with run.action(..)` asks before a block and reports how it ended; `with run:` is where decorated functions ask"],
  "beyond.python.asyncio": [22, "`AsyncClient` asks, waits and reports without holding up the loop; what is cancelled leaves no step that looks as if its tool had run"],
  "beyond.python.frameworks": [22, "`govern` wraps tools of LangChain, OpenAI Agents and CrewAI, which are imported only when used"],
});
