// What the types accept and refuse. `tsc --strict` checks this file; it does not run.
import { BadArgument, type Batch, ServiceError, type Stream, ThalwegError } from 'thalweg';
import {
  Echo,
  type Tick,
  type TickColumns,
  type Timer,
  TimerErrorException,
} from '../../../examples/echo/generated/node/echo.js';

export async function accepted(path: string): Promise<void> {
  using echo = Echo.open(path);
  const version: string = await echo.version({ timeout: 10, signal: AbortSignal.timeout(5) });
  await using timer: Timer = await echo.timer(version);
  const { message, name } = await timer.echo({ message: 'm', delayMs: 1 });
  const { itemCount } = await timer.complex({
    messages: [],
    tags: [message, name],
    note: undefined,
  });
  const count: bigint = itemCount + 1n;
  const ticks: Stream<Tick, TickColumns> = await timer.schedule(1, Number(count));
  for await (const tick of ticks) {
    const late: bigint = tick.lateNs;
    void late;
  }
  for await (const batch of ticks.batches({ max: 5 })) {
    const typed: Batch<Tick, TickColumns> = batch;
    const numbers: Uint32Array = typed.columns.number.gather();
    const late: bigint | undefined = typed.columns.lateNs.at(0);
    void [numbers, late, ...batch];
  }
  try {
    await echo.version();
  } catch (error) {
    if (error instanceof TimerErrorException) {
      switch (error.payload.tag) {
        case 'too-long':
          error.payload.val.toFixed();
          break;
        case 'no-name':
        case 'too-short':
          break;
        default:
          error.payload satisfies never;
      }
    } else if (error instanceof ServiceError) {
      const payload: unknown = error.payload;
      void payload;
    } else if (error instanceof BadArgument || error instanceof ThalwegError) {
      const [code, retryable]: [string, boolean] = [error.code, error.retryable];
      void [code, retryable];
    }
  }
}

export async function refused(echo: Echo, timer: Timer): Promise<void> {
  // @ts-expect-error a client is opened, not created
  new Echo();
  // @ts-expect-error a text is required
  await echo.timer(5);
  // @ts-expect-error a field is missing
  await timer.echo({ message: 'm' });
  // @ts-expect-error 64-bit integers are bigint
  await timer.complex({ messages: [], tags: [], retries: 3 });
  // @ts-expect-error the timeout is a number of milliseconds
  await echo.version({ timeout: '1s' });
  // @ts-expect-error the record has no such column
  for await (const batch of (await timer.schedule(1, 1)).batches()) void batch.columns.missing;
}
