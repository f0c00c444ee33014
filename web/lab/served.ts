// What `sawtooth lab` offers beside the page's files, to a page that was opened with the key that its address has.

import { InputError } from "./problem";

const KEPT = "sawtooth-key";

/** The key of the address, which does not stay there; undefined where any other server has the page. */
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
    // A browser that keeps nothing for pages; then the key stays in the address.
    return given ?? undefined;
  }
}

/** Raises InputError, in the words of the server, and Error where it does not answer. */
export async function answered(request: Request): Promise<Response> {
  const answer = await fetch(request);
  if (answer.ok) return answer;
  if (!answer.headers.get("Content-Type")?.startsWith("application/json")) throw new Error(`the server answered ${answer.status}`);
  const { error } = (await answer.json()) as { error: { code: string; message: string; fix: string | null; field: string | null } };
  throw new InputError(error.code, error.message, error.fix ?? "", error.field ?? undefined);
}

/** A question about results, with the key. */
export function asking(path: string, given: string, signal?: AbortSignal): Request {
  return new Request(new URL(path, new URL(".", location.href)), { headers: { "X-Sawtooth-Key": given }, ...(signal === undefined ? {} : { signal }) });
}
