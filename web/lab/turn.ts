// Turns: lets a worker that computes for a long time receive messages in between.

/** Lets messages in, without the delay of a timer. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      channel.port1.close();
      resolve();
    };
    channel.port2.postMessage(null);
  });
}
