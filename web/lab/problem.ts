// What is wrong with an input, in the words and with the codes of the command line (src/sawtooth/errors.py).

export class InputError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly fix: string,
    readonly field?: string,
  ) {
    super(message);
  }

  /** The same, of a field. */
  at(field: string): InputError {
    return new InputError(this.code, this.message, this.fix, this.field === undefined ? field : `${field}.${this.field}`);
  }
}

/** In sentences: what is wrong, and what to do. */
export function words({ message, fix }: InputError): string {
  return `${message}. ${fix.replace(/^./, (first) => first.toUpperCase())}.`;
}

/** What `act` answers; what it finds wrong is of `field`. */
export function within<A>(field: string, act: () => A): A {
  try {
    return act();
  } catch (error) {
    throw error instanceof InputError ? error.at(field) : error;
  }
}
