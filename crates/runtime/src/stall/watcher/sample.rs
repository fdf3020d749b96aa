//! What a worker is doing at this moment, copied by its own thread in the handler of a signal.
//!
//! SIGURG, as Go's scheduler uses it: whoever has not asked for it ignores it, so one that comes late or astray harms nobody, where a real-time signal
//! would end the process; debuggers pass it on; C libraries do not use it.
//!
//! 1. There is one [`Sample`] a process. A watcher claims it by a CAS, and frees it when it has read what it wanted. A claim names the epoch: a
//!    forked child has none of its parent's watchers, and takes over what one of these claimed.
//! 2. `word` passes the sample on: `ASKED` with the thread's number; the handler of that thread, and no other, turns it to `WRITING` (CAS, Acquire) and
//!    to `DONE` (Release). A watcher that waited long enough turns `ASKED` back, by a CAS; if that fails the handler is at it, and is waited for.
//! 3. So `pulse` is the watcher's until `ASKED`, and alive until then and beyond, since the watcher has it; `answer` and `memory` are the handler's in
//!    `WRITING` and the watcher's after `DONE`.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::look::Stretch;
use super::signal::{self, SIGNAL};
use crate::stack::{self, overflow};
use crate::stall::pulse::Pulse;
use crate::stall::report::NoFrames;

/// Registers as DWARF numbers them, which the platform's ABI says.
pub(super) const REGISTERS: usize = if cfg!(target_arch = "x86_64") { 17 } else { 33 };

/// Bytes of the stack that runs: a debug build's frames are some hundred bytes each.
const RUNNING: usize = 64 << 10;
/// Bytes of the actor's own, when it runs on the worker's.
const LEFT: usize = 16 << 10;
/// Below where the actor left its own stack lie the frames of the switch.
const SWITCH: usize = 4 << 10;
/// Bytes of a name.
const NAME: usize = 128;

/// A thread that is on a processor answers in microseconds.
const PATIENCE: Duration = Duration::from_secs(1);
const BETWEEN_LOOKS: Duration = Duration::from_micros(100);

struct Sample {
    /// 0: free; else one more than the epoch of who has it.
    claim: AtomicU64,
    word: AtomicU64,
    pulse: UnsafeCell<*const Pulse>,
    answer: UnsafeCell<Answer>,
    memory: UnsafeCell<[MaybeUninit<u8>; RUNNING + LEFT]>,
}

// SAFETY: rule 3.
unsafe impl Sync for Sample {}

static SAMPLE: Sample = Sample {
    claim: AtomicU64::new(0),
    word: AtomicU64::new(QUIET),
    pulse: UnsafeCell::new(std::ptr::null()),
    answer: UnsafeCell::new(Answer::EMPTY),
    // Of the pages behind it none is there before it is first used.
    memory: UnsafeCell::new([MaybeUninit::uninit(); RUNNING + LEFT]),
};

/// In the low half of the word; the thread's number is in the high one.
const STATE: u64 = 0xff;
const QUIET: u64 = 0;
const ASKED: u64 = 1;
const WRITING: u64 = 2;
const DONE: u64 = 3;

/// What the handler found.
pub(super) struct Answer {
    /// `None`: the worker is gone.
    stretch: Option<Stretch>,
    pub(super) registers: [u64; REGISTERS],
    /// The instruction that comes next.
    pub(super) next: u64,
    /// Where what is in `memory` was: start and length.
    ranges: [(usize, usize); 2],
    name: [u8; NAME],
    name_len: Option<usize>,
}

impl Answer {
    const EMPTY: Self = Self {
        stretch: None,
        registers: [0; REGISTERS],
        next: 0,
        ranges: [(0, 0); 2],
        name: [0; NAME],
        name_len: None,
    };
}

/// What the watcher may read, as long as it has the sample.
pub(super) struct Copied<'a> {
    answer: &'a Answer,
    memory: &'a [u8],
}

impl std::ops::Deref for Copied<'_> {
    type Target = Answer;

    fn deref(&self) -> &Answer {
        self.answer
    }
}

impl Copied<'_> {
    /// As much as there was room for.
    pub(super) fn name(&self) -> Option<String> {
        let name = self.answer.name.get(..self.answer.name_len?)?;
        Some(String::from_utf8_lossy(name).into_owned())
    }

    /// Eight bytes that were on the stack at this address.
    pub(super) fn read(&self, address: u64) -> Option<u64> {
        let address = usize::try_from(address).ok()?;
        let places = [0, RUNNING];
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

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silent {
    /// Another runtime's watcher has the sample.
    Busy,
    Why(NoFrames),
}

impl From<NoFrames> for Silent {
    fn from(why: NoFrames) -> Self {
        Silent::Why(why)
    }
}

/// Has the worker of this pulse interrupted, and reads what it found, if it was still in that stretch.
pub(super) fn ask<R>(
    pulse: &Pulse,
    stretch: Stretch,
    read: impl FnOnce(&Copied<'_>) -> R,
) -> Result<R, Silent> {
    let thread = pulse.thread.load(Ordering::Acquire);
    if thread == 0 {
        return Err(NoFrames::Over.into());
    }
    let _claim = Claim::take().ok_or(Silent::Busy)?;
    signal::take(on_signal)?;
    // SAFETY: rule 3: the sample is ours, and nobody was asked.
    unsafe { *SAMPLE.pulse.get() = pulse };
    let asked = (thread as u64) << 32 | ASKED;
    SAMPLE.word.store(asked, Ordering::Release);
    // SAFETY: it takes no address. A thread that ended, or another that got its number, does nothing with it.
    let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, SIGNAL) };
    if sent != 0 || !was_answered(asked) {
        SAMPLE.word.store(QUIET, Ordering::Relaxed);
        let why = if sent == 0 {
            NoFrames::NoAnswer
        } else {
            NoFrames::Over
        };
        return Err(why.into());
    }
    // SAFETY: rule 3: it is done, and the claim is ours until we return. What the handler did not write is zero.
    let (answer, memory) = unsafe {
        let memory = SAMPLE.memory.get().cast::<u8>();
        (
            &*SAMPLE.answer.get(),
            std::slice::from_raw_parts(memory, RUNNING + LEFT),
        )
    };
    if answer.stretch != Some(stretch) {
        return Err(NoFrames::Over.into());
    }
    Ok(read(&Copied { answer, memory }))
}

/// Rule 2. `false`: nobody answered, and nobody will.
fn was_answered(asked: u64) -> bool {
    let mut left = PATIENCE.as_micros() / BETWEEN_LOOKS.as_micros();
    loop {
        std::thread::sleep(BETWEEN_LOOKS);
        let word = SAMPLE.word.load(Ordering::Acquire);
        if word & STATE == DONE {
            return true;
        }
        left = left.saturating_sub(1);
        if left == 0
            && word == asked
            && SAMPLE
                .word
                .compare_exchange(asked, QUIET, Ordering::Relaxed, Ordering::Relaxed)
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
        let tries = PATIENCE.as_micros() / BETWEEN_LOOKS.as_micros();
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
            std::thread::sleep(BETWEEN_LOOKS);
        }
        // It has asked somebody who does not answer, or there are many.
        None
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        SAMPLE.claim.store(0, Ordering::Release);
    }
}

/// `stall`'s rule 3. It keeps `errno`: of its own calls none fails.
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

/// Whether this thread was asked.
///
/// # Safety
/// In the handler, with what the kernel passed.
unsafe fn answer(context: *mut libc::c_void) -> bool {
    let word = SAMPLE.word.load(Ordering::Acquire);
    // SAFETY: it takes no address.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) };
    if word != (thread as u64) << 32 | ASKED {
        return false;
    }
    let taken = SAMPLE
        .word
        .compare_exchange(word, WRITING, Ordering::Acquire, Ordering::Relaxed);
    if taken.is_err() {
        return false;
    }
    // SAFETY: the kernel passes the context of what it interrupted; and rule 3: the sample is the handler's, and its pulse this thread's.
    unsafe {
        let pulse = &**SAMPLE.pulse.get();
        let answer = &mut *SAMPLE.answer.get();
        fill(answer, pulse, &*context.cast());
    }
    SAMPLE.word.store(DONE, Ordering::Release);
    true
}

/// # Safety
/// In the handler, with what the kernel passed, on the thread of the pulse's worker; the sample's memory is the caller's.
unsafe fn fill(answer: &mut Answer, pulse: &Pulse, context: &libc::ucontext_t) {
    answer.stretch = (pulse.thread.load(Ordering::Relaxed) != 0).then(|| pulse.stretch());
    let stack_pointer = read_registers(answer, context);
    let memory = SAMPLE.memory.get().cast::<u8>();
    answer.ranges = [(0, 0); 2];
    if let Some(end) = end_of_stack(pulse, stack_pointer) {
        let len = (end - stack_pointer).min(RUNNING);
        // SAFETY: from the stack pointer to the end of a stack that is there; and there is room.
        unsafe { copy(stack_pointer, memory, len) };
        answer.ranges[0] = (stack_pointer, len);
    }
    let left = pulse.left.load(Ordering::Relaxed);
    if let Some((start, end)) = stack::usable_around(left) {
        let start = start.max(left.saturating_sub(SWITCH)) & !7;
        let len = (end - start).min(LEFT);
        // SAFETY: the actor's own stack, above its guard; and there is room.
        unsafe { copy(start, memory.add(RUNNING), len) };
        answer.ranges[1] = (start, len);
    }
    // SAFETY: this thread runs, or is about to run, the actor of that name, and does nothing else before we return.
    let name = unsafe { overflow::current_name() };
    answer.name_len = name.map(|name| {
        let name = name.as_bytes();
        let len = name.len().min(NAME);
        for (to, from) in answer.name.iter_mut().zip(name) {
            *to = *from;
        }
        len
    });
}

/// Of the stack that this address is on: the thread's own, or one of ours. Nothing but loads.
fn end_of_stack(pulse: &Pulse, address: usize) -> Option<usize> {
    let [start, end] = pulse.stack.each_ref().map(|at| at.load(Ordering::Relaxed));
    if (start..end).contains(&address) {
        return Some(end);
    }
    stack::usable_around(address).map(|(_, end)| end)
}

/// Of what was interrupted; and its stack pointer.
#[cfg(target_arch = "x86_64")]
fn read_registers(answer: &mut Answer, context: &libc::ucontext_t) -> usize {
    /// In the order of the System V ABI, figure 3.36.
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

/// Of what was interrupted; and its stack pointer.
#[cfg(target_arch = "aarch64")]
fn read_registers(answer: &mut Answer, context: &libc::ucontext_t) -> usize {
    let known = &context.uc_mcontext;
    answer.registers[..31].copy_from_slice(&known.regs);
    answer.registers[31] = known.sp;
    answer.next = known.pc;
    known.sp as usize
}

/// As the processor sees it: what is there are other functions' variables, which the compiler would say are none of ours, and a sanitizer that parts of
/// them are not to be read.
///
/// # Safety
/// So many bytes can be read from `from`, and written to `to`.
unsafe fn copy(from: usize, to: *mut u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as said. The direction flag is clear, by the ABI in a handler too.
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
    // SAFETY: as said.
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

/// How long the worker's thread has waited for a processor in its life, by the kernel's books: the second number there.
pub(super) fn waited(pulse: &Pulse) -> u64 {
    let thread = pulse.thread.load(Ordering::Relaxed);
    let book = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat"));
    let waited = book.ok().and_then(|book| {
        let waited = book.split_ascii_whitespace().nth(1);
        waited.and_then(|waited| waited.parse().ok())
    });
    // A kernel that keeps none leaves all of it to the actor.
    waited.unwrap_or(0)
}

/// A worker's thread that lets itself be asked.
#[derive(Debug)]
pub(super) struct Asked {
    /// Whether the signal was blocked there.
    was_blocked: bool,
}

impl Asked {
    /// By the worker's thread: says where it is, and lets the signal in.
    pub(super) fn begin(pulse: &Pulse) -> Self {
        let [start, end] = stack_of_thread().unwrap_or([0, 0]);
        pulse.stack[0].store(start, Ordering::Relaxed);
        pulse.stack[1].store(end, Ordering::Relaxed);
        // SAFETY: it takes no address.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) };
        pulse.thread.store(thread as i32, Ordering::Release);
        Self {
            was_blocked: mask(libc::SIG_UNBLOCK),
        }
    }

    /// By the same thread.
    pub(super) fn end(&self, pulse: &Pulse) {
        pulse.thread.store(0, Ordering::Relaxed);
        if self.was_blocked {
            mask(libc::SIG_BLOCK);
        }
    }
}

/// Blocks the signal on this thread, or lets it in. Whether it was blocked.
fn mask(how: libc::c_int) -> bool {
    // SAFETY: sigset_t is plain data that the calls fill; all pointers are to locals.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, SIGNAL);
        libc::pthread_sigmask(how, &set, &mut before);
        libc::sigismember(&before, SIGNAL) == 1
    }
}

/// This thread's own: its lowest address, and the one behind its highest.
fn stack_of_thread() -> Option<[usize; 2]> {
    // SAFETY: plain data that the calls fill, of this thread; what was initialised is destroyed.
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
