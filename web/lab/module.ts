// Fetches and compiles the core once, for the page and all its workers.

const NAME = "sawtooth.wasm.gzip";

/** Raises Error if the core cannot be loaded. */
export const module = load();
// Callers that wait for the core.
module.catch(() => {});

/** Compiles while downloading. The file is compressed already, because many servers do not compress it. */
async function load(): Promise<WebAssembly.Module> {
  const packed = await fetch(new URL(NAME, document.baseURI));
  if (!packed.ok) throw new Error(`${NAME}: ${packed.status}`);
  const bytes = packed.body!.pipeThrough(new DecompressionStream("gzip"));
  try {
    return await WebAssembly.compileStreaming(new Response(bytes, { headers: { "Content-Type": "application/wasm" } }));
  } catch (error) {
    throw new Error(`${NAME} is not WebAssembly packed with gzip: ${error instanceof Error ? error.message : String(error)}`);
  }
}
