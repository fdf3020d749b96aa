// Stands in for `thalweg/generated`: a call returns the function that writes its arguments.

export { BadArgument, ServiceError } from './lib/errors.js';
export { Reader } from './lib/reader.js';
export { Writer } from './lib/writer.js';

export class Package {
  methods = new Map();

  method(method) {
    this.methods.set(method.name, method);
    return method;
  }

  hostImport() {}
}

export class Client {}
export class Resource {}
export class Stream {}

export function readFuture() {}

export function call(_client, method, _options, put) {
  return { method, put };
}
