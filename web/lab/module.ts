// The core, fetched and compiled once for the page and all its workers.

/** Raises Error where it cannot be had. */
export const module = load();
// Who waits for it is told.
module.catch(() => {});

async function load(): Promise<WebAssembly.Module> {
  const bytes = await fetch(new URL("sawtooth.wasm", document.baseURI));
  if (!bytes.ok) throw new Error(`sawtooth.wasm: ${bytes.status}`);
  // Not while it comes: servers that do not know its type are enough.
  return WebAssembly.compile(await bytes.arrayBuffer());
}
