/**
 * For generated packages.
 */
export { call } from './call.js';
export { Client, Resource } from './client.js';
export { ServiceError } from './errors.js';
export { Package } from './package.js';
export { readFuture, Stream } from './stream.js';
