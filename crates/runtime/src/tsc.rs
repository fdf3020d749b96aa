//! The processor's time stamp counter.

use std::sync::OnceLock;
use std::time::Duration;

use thalweg_queue::NoPreemptGuard;
#[cfg(any(miri, not(target_arch = "aarch64")))]
use thalweg_queue::clock;

/// Reads the counter: on x86-64 the time stamp counter, on aarch64 `cntvct_el0`, elsewhere (and
/// under Miri) the nanoseconds of the clock. Its rate is [`tsc_hz`]. The processor may reorder the
/// read by some instructions.
#[inline]
pub fn rdtsc() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        // SAFETY: every x86-64 processor has the instruction, and Linux permits it unless the
        // process has disabled it (PR_SET_TSC).
        unsafe { std::arch::x86_64::_rdtsc() }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let count: u64;
        // SAFETY: it reads a register that Linux and macOS permit processes to read, and changes
        // nothing.
        unsafe {
            std::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags));
        }
        count
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    clock::now()
}

/// Returns the rate of [`rdtsc`] in counts per second. On x86-64 it is measured once against the
/// clock, for which the first caller's thread sleeps 5 ms. On aarch64 the processor reports it.
///
/// ```
/// use thalweg_runtime::preempt;
///
/// let before = preempt::rdtsc();
/// assert!(preempt::tsc_hz() > 0);
/// assert!(preempt::rdtsc() >= before);
/// ```
pub fn tsc_hz() -> u64 {
    static HZ: OnceLock<u64> = OnceLock::new();
    *HZ.get_or_init(|| {
        // Otherwise another actor of this thread could wait for this one.
        let _no_preempt = NoPreemptGuard::enter();
        measure()
    })
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn measure() -> u64 {
    // The two readings of the clock have an error of about 50 ns: 10 ppm of this.
    const MEASURED: Duration = Duration::from_millis(5);
    let (began, from) = read_both();
    std::thread::sleep(MEASURED);
    let (ended, to) = read_both();
    let took = u128::from(ended.saturating_sub(began).max(1));
    let counted = u128::from(to.saturating_sub(from));
    u64::try_from(counted * 1_000_000_000 / took)
        .unwrap_or(u64::MAX)
        .max(1)
}

/// Reads the clock and the counter at the same time.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn read_both() -> (u64, u64) {
    // The pair of readings that took the least time is used, because a reading may be interrupted.
    const READS: usize = 8;
    let reads = (0..READS).map(|_| {
        let before = clock::now();
        let count = rdtsc();
        let took = clock::now() - before;
        (took, before + took / 2, count)
    });
    let (_, time, count) = reads.min().expect("there is at least one");
    (time, count)
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
fn measure() -> u64 {
    let hz: u64;
    // SAFETY: as in `rdtsc`.
    unsafe {
        std::arch::asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags));
    }
    hz.max(1)
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn measure() -> u64 {
    1_000_000_000
}

/// Converts counts to a duration.
pub(crate) fn duration_of(counts: u64) -> Duration {
    let ns = u128::from(counts) * 1_000_000_000 / u128::from(tsc_hz());
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::{duration_of, rdtsc, tsc_hz};
    use std::time::{Duration, Instant};

    #[test]
    #[cfg_attr(miri, ignore = "the clock of Miri counts executed code")]
    fn counter_and_clock_agree_on_ten_milliseconds() {
        let hz = tsc_hz();
        let (clock, counter) = (Instant::now(), rdtsc());
        std::thread::sleep(Duration::from_millis(10));
        let counted = duration_of(rdtsc() - counter);
        let took = clock.elapsed();
        // A busy machine may suspend the thread between the two readings.
        let apart = counted.abs_diff(took);
        assert!(
            apart < Duration::from_millis(2),
            "{hz} Hz: {counted:?} {took:?}"
        );
    }
}
