// What `sawtooth lab` offers in addition to the page's files, to a page opened with the key in its address.

import { InputError } from "./problem";

const KEPT = "sawtooth-key";

/** The key in the address, which is then removed from it; undefined if another server has the page. */
export function key(): string | undefined {
  const url = new URL(location.href);
  const given = url.searchParams.get("key");
  try {
    if (given !== null) {
      sessionStorage.setItem(KEPT, given);
      url.searchParams.delete("key");
      history.replaceState(history.state, "", url);
    }
    return sessionStorage.getItem(KEPT) ?? undefined;
  } catch {
    // If the browser stores nothing for pages, the key stays in the address.
    return given ?? undefined;
  }
}

/** Raises InputError with the server's words, and Error if the server does not answer. */
export async function answered(request: Request): Promise<Response> {
  const answer = await fetch(request);
  if (answer.ok) return answer;
  if (!answer.headers.get("Content-Type")?.startsWith("application/json")) throw new Error(`the server answered ${answer.status}`);
  const { error } = (await answer.json()) as { error: { code: string; message: string; fix: string | null; field: string | null } };
  throw new InputError(error.code, error.message, error.fix ?? "", error.field ?? undefined);
}

/** A request for results, with the key. */
export function asking(path: string, given: string, signal?: AbortSignal): Request {
  return new Request(new URL(path, new URL(".", location.href)), { headers: { "X-Sawtooth-Key": given }, ...(signal === undefined ? {} : { signal }) });
}
