import type { Handle } from './index.js';

/** Base of the clients of generated packages. */
export interface Client extends Handle {}
export class Client {
  protected constructor();
}

/** Base of the resources of generated packages. */
export interface Resource extends Handle {}
export class Resource {
  protected constructor();
}
