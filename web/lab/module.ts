// Fetches and compiles the core once, for the page and all its workers.

/** Raises Error if the core cannot be loaded. */
export const module = load();
// Callers that wait for the core.
module.catch(() => {});

async function load(): Promise<WebAssembly.Module> {
  const bytes = await fetch(new URL("sawtooth.wasm", document.baseURI));
  if (!bytes.ok) throw new Error(`sawtooth.wasm: ${bytes.status}`);
  // Does not compile while downloading, because some servers send the wrong content type.
  return WebAssembly.compile(await bytes.arrayBuffer());
}
