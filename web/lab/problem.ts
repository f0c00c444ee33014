// An error in an input, with the words and codes of the command line (src/sawtooth/errors.py).

export class InputError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly fix: string,
    readonly field?: string,
  ) {
    super(message);
  }

  /** The same error, at a field. */
  at(field: string): InputError {
    return new InputError(this.code, this.message, this.fix, this.field === undefined ? field : `${field}.${this.field}`);
  }
}

/** The error in sentences: what is wrong, and what to do. */
export function words({ message, fix }: InputError): string {
  return `${message}. ${fix.replace(/^./, (first) => first.toUpperCase())}.`;
}

/** The result of `act`; errors get the field `field`. */
export function within<A>(field: string, act: () => A): A {
  try {
    return act();
  } catch (error) {
    throw error instanceof InputError ? error.at(field) : error;
  }
}
