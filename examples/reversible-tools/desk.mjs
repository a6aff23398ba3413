/** What the two commands share: the JSON on stdin, and a request to the desk named on the command line. */
const base = process.argv[2] ?? "http://127.0.0.1:4010";

export async function input() {
  let text = "";
  for await (const chunk of process.stdin) text += chunk;
  return JSON.parse(text);
}

export async function ask(method, path, body, headers = {}) {
  const response = await fetch(base + path, {
    method,
    headers: { "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${method} answered ${response.status}: ${answer.error}`);
  return answer;
}
