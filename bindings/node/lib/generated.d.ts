import type { Handle } from './index.js';

/** Base of the clients of generated packages. */
export class Client implements Handle {
  protected constructor();
  readonly closed: boolean;
  close(): void;
  [Symbol.dispose](): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Base of the resources of generated packages. */
export class Resource implements Handle {
  protected constructor();
  readonly closed: boolean;
  close(): void;
  [Symbol.dispose](): void;
  [Symbol.asyncDispose](): Promise<void>;
}
