//! Sampling: a worker's thread copies its own state in a signal handler.
//!
//! The signal is SIGURG, as in Go's scheduler. Programs that do not use it ignore it, so a late or
//! misdirected signal is harmless, whereas a real-time signal would end the process. Debuggers pass
//! it on, and C libraries do not use it.
//!
//! 1. A process has one [`Sample`]. A watcher claims it by CAS, and releases it after it has read
//!    the result. A claim contains the epoch: a forked child has none of its parent's watchers, so
//!    it takes over a sample that one of them claimed.
//! 2. `word` passes the sample on. The watcher sets it to `REQUESTED` with the thread's number.
//!    Only the handler of that thread changes it to `WRITING` (CAS, Acquire), and then to `DONE`
//!    (Release). A watcher that has waited long enough withdraws `REQUESTED` by CAS; if that fails,
//!    the handler is running, and the watcher waits for it.
//! 3. `status` therefore belongs to the watcher until `REQUESTED`; it stays alive, because the
//!    watcher has a reference. `answer` and `memory` belong to the handler during `WRITING`, and to
//!    the watcher after `DONE`.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::detector::RunInterval;
use super::signal::{self, SIGNAL};
use crate::stack::{self, overflow};
use crate::stall::report::NoFrames;
use crate::stall::status::WorkerStatus;

/// The registers in DWARF order, which the platform's ABI defines.
pub(super) const REGISTERS: usize = if cfg!(target_arch = "x86_64") { 17 } else { 33 };

/// The bytes that are copied from the stack that runs. A frame of a debug build takes some hundred
/// bytes.
const RUNNING_STACK: usize = 64 << 10;
/// The bytes that are copied from the actor's own stack if it runs on the worker's stack.
const ACTOR_STACK: usize = 16 << 10;
/// The frames of the switch are below the place where the actor left its own stack.
const SWITCH_FRAMES: usize = 4 << 10;
/// The bytes that are copied from the actor's name.
const NAME_LEN: usize = 128;

/// The maximum waiting time. A thread that is on a processor responds in microseconds.
const PATIENCE: Duration = Duration::from_secs(1);
const POLL_INTERVAL: Duration = Duration::from_micros(100);

struct Sample {
    /// 0 if it is free; otherwise the owner's epoch plus one.
    claim: AtomicU64,
    word: AtomicU64,
    status: UnsafeCell<*const WorkerStatus>,
    answer: UnsafeCell<StackSample>,
    memory: UnsafeCell<[MaybeUninit<u8>; RUNNING_STACK + ACTOR_STACK]>,
}

// SAFETY: rule 3.
unsafe impl Sync for Sample {}

static SAMPLE: Sample = Sample {
    claim: AtomicU64::new(0),
    word: AtomicU64::new(UNUSED),
    status: UnsafeCell::new(std::ptr::null()),
    answer: UnsafeCell::new(StackSample::EMPTY),
    // Its pages use no memory until the first sample.
    memory: UnsafeCell::new([MaybeUninit::uninit(); RUNNING_STACK + ACTOR_STACK]),
};

/// The state is in the low half of the word, and the thread's number in the high half.
const STATE: u64 = 0xff;
const UNUSED: u64 = 0;
const REQUESTED: u64 = 1;
const WRITING: u64 = 2;
const DONE: u64 = 3;

/// The data that the handler recorded.
pub(super) struct StackSample {
    /// `None` if the worker has ended.
    interval: Option<RunInterval>,
    pub(super) registers: [u64; REGISTERS],
    /// The address of the next instruction.
    pub(super) next: u64,
    /// The original address ranges of the data in `memory`: start and length.
    ranges: [(usize, usize); 2],
    name: [u8; NAME_LEN],
    name_len: Option<usize>,
}

impl StackSample {
    const EMPTY: Self = Self {
        interval: None,
        registers: [0; REGISTERS],
        next: 0,
        ranges: [(0, 0); 2],
        name: [0; NAME_LEN],
        name_len: None,
    };
}

/// The sample, as long as the watcher owns it.
pub(super) struct StackCopy<'a> {
    answer: &'a StackSample,
    memory: &'a [u8],
}

impl std::ops::Deref for StackCopy<'_> {
    type Target = StackSample;

    fn deref(&self) -> &StackSample {
        self.answer
    }
}

impl StackCopy<'_> {
    /// Returns the actor's name, possibly truncated.
    pub(super) fn name(&self) -> Option<String> {
        let name = self.answer.name.get(..self.answer.name_len?)?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    /// Returns eight bytes that were on the stack at this address.
    pub(super) fn read(&self, address: u64) -> Option<u64> {
        let address = usize::try_from(address).ok()?;
        let places = [0, RUNNING_STACK];
        let ranges = self.answer.ranges.iter().zip(places);
        ranges.into_iter().find_map(|(&(start, len), place)| {
            let offset = address.checked_sub(start)?;
            if offset.checked_add(8)? > len {
                return None;
            }
            let bytes = self.memory.get(place + offset..)?.first_chunk()?;
            Some(u64::from_ne_bytes(*bytes))
        })
    }
}

/// Why there is no sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleError {
    /// The watcher of another runtime is using the sample.
    Busy,
    NoFrames(NoFrames),
}

impl From<NoFrames> for SampleError {
    fn from(why: NoFrames) -> Self {
        SampleError::NoFrames(why)
    }
}

/// Interrupts the worker and passes the sample to `read`, if the worker was still in that interval.
pub(super) fn sample_thread<R>(
    status: &WorkerStatus,
    interval: RunInterval,
    read: impl FnOnce(&StackCopy<'_>) -> R,
) -> Result<R, SampleError> {
    let thread = status.thread.load(Ordering::Acquire);
    if thread == 0 {
        return Err(NoFrames::Over.into());
    }
    let _claim = Claim::take().ok_or(SampleError::Busy)?;
    signal::take(on_signal)?;
    // SAFETY: rule 3. The sample belongs to this watcher, and no request is pending.
    unsafe { *SAMPLE.status.get() = status };
    let asked = (thread as u64) << 32 | REQUESTED;
    SAMPLE.word.store(asked, Ordering::Release);
    // SAFETY: the call takes no address. If the thread has ended, or another thread got its number,
    // the signal has no effect.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, SIGNAL) };
    if sent != 0 || !wait_for_response(asked) {
        SAMPLE.word.store(UNUSED, Ordering::Relaxed);
        let why = if sent == 0 {
            NoFrames::NoAnswer
        } else {
            NoFrames::Over
        };
        return Err(why.into());
    }
    // SAFETY: rule 3. The handler is done, and the claim is held until this function returns.
    // Memory that the handler did not write is zero.
    let (answer, memory) = unsafe {
        let memory = SAMPLE.memory.get().cast::<u8>();
        (
            &*SAMPLE.answer.get(),
            std::slice::from_raw_parts(memory, RUNNING_STACK + ACTOR_STACK),
        )
    };
    if answer.interval != Some(interval) {
        return Err(NoFrames::Over.into());
    }
    Ok(read(&StackCopy { answer, memory }))
}

/// Rule 2. Returns `false` if the thread did not respond; then it never will.
fn wait_for_response(asked: u64) -> bool {
    let mut left = PATIENCE.as_micros() / POLL_INTERVAL.as_micros();
    loop {
        std::thread::sleep(POLL_INTERVAL);
        let word = SAMPLE.word.load(Ordering::Acquire);
        if word & STATE == DONE {
            return true;
        }
        left = left.saturating_sub(1);
        if left == 0
            && word == asked
            && SAMPLE
                .word
                .compare_exchange(asked, UNUSED, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
        {
            return false;
        }
    }
}

/// Rule 1.
struct Claim;

impl Claim {
    fn take() -> Option<Self> {
        let mine = crate::epoch() + 1;
        let tries = PATIENCE.as_micros() / POLL_INTERVAL.as_micros();
        for _ in 0..tries {
            let seen = SAMPLE.claim.load(Ordering::Relaxed);
            if seen != mine
                && SAMPLE
                    .claim
                    .compare_exchange(seen, mine, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return Some(Self);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        // The owner waits for a thread that does not respond, or there are many watchers.
        None
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        SAMPLE.claim.store(0, Ordering::Release);
    }
}

/// `stall`'s rule 3. It preserves `errno`, because none of its own calls fails.
extern "C" fn on_signal(
    number: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: these are the arguments that the kernel passed.
    if !unsafe { answer(context) } || !signal::is_from_here(info) {
        // SAFETY: as above.
        unsafe { signal::forward(number, info, context) };
    }
}

/// Returns whether the sample was requested from this thread.
///
/// # Safety
/// Call it in the handler, with the arguments that the kernel passed.
unsafe fn answer(context: *mut libc::c_void) -> bool {
    let word = SAMPLE.word.load(Ordering::Acquire);
    // SAFETY: the call takes no address.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    if word != (thread as u64) << 32 | REQUESTED {
        return false;
    }
    let taken = SAMPLE
        .word
        .compare_exchange(word, WRITING, Ordering::Acquire, Ordering::Relaxed);
    if taken.is_err() {
        return false;
    }
    // SAFETY: the kernel passes the context of the interrupted code. By rule 3 the sample belongs
    // to the handler, and its status belongs to this thread.
    unsafe {
        let status = &**SAMPLE.status.get();
        let answer = &mut *SAMPLE.answer.get();
        fill(answer, status, &*context.cast());
    }
    SAMPLE.word.store(DONE, Ordering::Release);
    true
}

/// # Safety
/// Call it in the handler, with the argument that the kernel passed, on the thread of the status's
/// worker. The sample's memory belongs to the caller.
unsafe fn fill(answer: &mut StackSample, status: &WorkerStatus, context: &libc::ucontext_t) {
    answer.interval = (status.thread.load(Ordering::Relaxed) != 0).then(|| status.interval());
    let stack_pointer = read_registers(answer, context);
    let memory = SAMPLE.memory.get().cast::<u8>();
    answer.ranges = [(0, 0); 2];
    if let Some(end) = end_of_stack(status, stack_pointer) {
        let len = (end - stack_pointer).min(RUNNING_STACK);
        // SAFETY: the range is from the stack pointer to the end of an existing stack, and it fits
        // into the memory.
        unsafe { copy(stack_pointer, memory, len) };
        answer.ranges[0] = (stack_pointer, len);
    }
    let left = status.actor_stack_pointer.load(Ordering::Relaxed);
    if let Some((start, end)) = stack::usable_around(left) {
        let start = start.max(left.saturating_sub(SWITCH_FRAMES)) & !7;
        let len = (end - start).min(ACTOR_STACK);
        // SAFETY: the range is on the actor's own stack, above its guard, and it fits into the
        // memory.
        unsafe { copy(start, memory.add(RUNNING_STACK), len) };
        answer.ranges[1] = (start, len);
    }
    // SAFETY: this thread runs, or is about to run, the actor of that name, and does nothing else
    // before the handler returns.
    let name = unsafe { overflow::current_name() };
    answer.name_len = name.map(|name| {
        let name = name.as_bytes();
        let len = name.len().min(NAME_LEN);
        for (to, from) in answer.name.iter_mut().zip(name) {
            *to = *from;
        }
        len
    });
}

/// Returns the end of the stack that contains this address: the thread's own stack, or one of this
/// crate's. Only performs loads.
fn end_of_stack(status: &WorkerStatus, address: usize) -> Option<usize> {
    let [start, end] = status.stack.each_ref().map(|at| at.load(Ordering::Relaxed));
    if (start..end).contains(&address) {
        return Some(end);
    }
    stack::usable_around(address).map(|(_, end)| end)
}

/// Reads the registers of the interrupted code. Returns its stack pointer.
#[cfg(target_arch = "x86_64")]
fn read_registers(answer: &mut StackSample, context: &libc::ucontext_t) -> usize {
    /// The order of the System V ABI, figure 3.36.
    const ORDER: [libc::c_int; REGISTERS] = [
        libc::REG_RAX,
        libc::REG_RDX,
        libc::REG_RCX,
        libc::REG_RBX,
        libc::REG_RSI,
        libc::REG_RDI,
        libc::REG_RBP,
        libc::REG_RSP,
        libc::REG_R8,
        libc::REG_R9,
        libc::REG_R10,
        libc::REG_R11,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
        libc::REG_RIP,
    ];
    let known = &context.uc_mcontext.gregs;
    answer.registers = ORDER.map(|register| known[register as usize] as u64);
    answer.next = known[libc::REG_RIP as usize] as u64;
    known[libc::REG_RSP as usize] as usize
}

/// Reads the registers of the interrupted code. Returns its stack pointer.
#[cfg(target_arch = "aarch64")]
fn read_registers(answer: &mut StackSample, context: &libc::ucontext_t) -> usize {
    let known = &context.uc_mcontext;
    answer.registers[..31].copy_from_slice(&known.regs);
    answer.registers[31] = known.sp;
    answer.next = known.pc;
    known.sp as usize
}

/// Copies memory, in assembly. The source contains variables of other functions, so for the
/// compiler a read of them would be undefined, and a sanitizer would report some of them.
///
/// # Safety
/// `len` bytes are readable at `from` and writable at `to`.
unsafe fn copy(from: usize, to: *mut u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's contract. By the ABI the direction flag is clear, also in a handler.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the caller's contract.
    unsafe {
        std::arch::asm!(
            "cbz {len}, 3f",
            "2:",
            "ldrb {byte:w}, [{from}], #1",
            "strb {byte:w}, [{to}], #1",
            "subs {len}, {len}, #1",
            "b.ne 2b",
            "3:",
            len = inout(reg) len => _,
            from = inout(reg) from => _,
            to = inout(reg) to => _,
            byte = out(reg) _,
            options(nostack)
        );
    }
}

/// Returns how long the worker's thread has waited for a processor so far, from the second number
/// in the kernel's `schedstat`.
pub(super) fn waited(status: &WorkerStatus) -> u64 {
    let thread = status.thread.load(Ordering::Relaxed);
    let schedstat = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"));
    let waited = schedstat.ok().and_then(|schedstat| {
        let waited = schedstat.split_ascii_whitespace().nth(1);
        waited.and_then(|waited| waited.parse().ok())
    });
    // If the kernel does not record it, all of the time counts as the actor's.
    waited.unwrap_or(0)
}

/// A worker's thread that accepts the signal.
#[derive(Debug)]
pub(super) struct SampledThread {
    /// Whether the thread had blocked the signal.
    was_blocked: bool,
}

impl SampledThread {
    /// Publishes the thread and its stack, and unblocks the signal. Called by the worker's thread.
    pub(super) fn begin(status: &WorkerStatus) -> Self {
        let [start, end] = stack_of_thread().unwrap_or([0, 0]);
        status.stack[0].store(start, Ordering::Relaxed);
        status.stack[1].store(end, Ordering::Relaxed);
        // SAFETY: the call takes no address.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        status.thread.store(thread as i32, Ordering::Release);
        Self {
            was_blocked: mask(libc::SIG_UNBLOCK),
        }
    }

    /// Called by the same thread.
    pub(super) fn end(&self, status: &WorkerStatus) {
        status.thread.store(0, Ordering::Relaxed);
        if self.was_blocked {
            mask(libc::SIG_BLOCK);
        }
    }
}

/// Blocks or unblocks the signal on this thread. Returns whether it was blocked.
fn mask(how: libc::c_int) -> bool {
    // SAFETY: `sigset_t` is plain data that the calls fill; all pointers are to locals.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, SIGNAL);
        libc::pthread_sigmask(how, &set, &mut before);
        libc::sigismember(&before, SIGNAL) == 1
    }
}

/// Returns this thread's own stack: its lowest address, and one past its highest.
fn stack_of_thread() -> Option<[usize; 2]> {
    // SAFETY: plain data of this thread that the calls fill. What was initialised is destroyed.
    unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return None;
        }
        let (mut start, mut size) = (std::ptr::null_mut(), 0);
        let known = libc::pthread_attr_getstack(&attributes, &mut start, &mut size) == 0;
        libc::pthread_attr_destroy(&mut attributes);
        known.then(|| [start.addr(), start.addr() + size])
    }
}
