// The service worker: keeps the page's files, so that it opens without a network. Where there is one, files come from it.

declare const FILES: readonly string[];

/** What of its scope it uses; the libraries of pages have it not. */
interface Scope {
  registration: { scope: string };
  skipWaiting(): Promise<void>;
  clients: { claim(): Promise<void> };
}
interface Waiting extends Event {
  waitUntil(done: Promise<unknown>): void;
}
interface Fetching extends Event {
  request: Request;
  respondWith(answer: Promise<Response>): void;
}

const KEPT = "sawtooth-lab";
const own = self as unknown as Scope;

addEventListener("install", (event) => (event as Waiting).waitUntil(keep()));
addEventListener("activate", (event) => (event as Waiting).waitUntil(own.clients.claim()));
addEventListener("fetch", (event) => {
  const fetching = event as Fetching;
  const { request } = fetching;
  const is = FILES.some((name) => new URL(name, own.registration.scope).href === request.url.split(/[?#]/)[0]);
  if (is && request.method === "GET") fetching.respondWith(answered(request));
});

async function keep(): Promise<void> {
  await (await caches.open(KEPT)).addAll(FILES);
  await own.skipWaiting();
}

async function answered(request: Request): Promise<Response> {
  const kept = await caches.open(KEPT);
  try {
    const answer = await fetch(request);
    if (answer.ok) await kept.put(request, answer.clone());
    return answer;
  } catch (error) {
    const found = await kept.match(request, { ignoreSearch: true });
    if (found === undefined) throw error;
    return found;
  }
}
