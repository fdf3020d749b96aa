//! Converts a copied stack to functions and lines.
//!
//! The copy is walked with the unwind tables that the compiler generated for exceptions
//! (`.eh_frame`), read by `gimli`, like the C library's unwinder would walk the stack itself. The
//! registers of a caller are computed from those of the callee and from words of the copy. If the
//! copy does not contain a word, the walk ends; it also ends at a function with neither a table nor
//! a frame pointer. The `backtrace` crate finds names and lines, as for the backtrace of a panic.

use std::ffi::c_void;
use std::slice;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, EvaluationResult, Expression,
    NativeEndian, Pointer, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection,
    Value,
};

use super::sample::{REGISTERS, StackCopy};
use crate::stall::report::Frame;

type Slice<'a> = EndianSlice<'a, NativeEndian>;

/// More frames than a report needs.
const MAX_FRAMES: usize = 128;

#[cfg(target_arch = "x86_64")]
mod abi {
    pub(super) const STACK_POINTER: usize = 7;
    pub(super) const FRAME_POINTER: usize = 6;
    pub(super) const RETURN_ADDRESS: usize = 16;
    pub(super) const ADDRESS_BITS: u32 = 64;
}

#[cfg(target_arch = "aarch64")]
mod abi {
    pub(super) const STACK_POINTER: usize = 31;
    pub(super) const FRAME_POINTER: usize = 29;
    pub(super) const RETURN_ADDRESS: usize = 30;
    /// Higher bits may contain a signature (pointer authentication).
    pub(super) const ADDRESS_BITS: u32 = 48;
}

/// Returns the address at which each frame continues, innermost first.
pub(super) fn walk(copy: &StackCopy<'_>) -> Vec<usize> {
    let mut walk = Walk {
        copy,
        registers: copy.registers.map(Some),
        next: copy.next,
        is_exact: true,
    };
    let mut addresses = Vec::new();
    let mut context = Box::new(UnwindContext::new());
    while addresses.len() < MAX_FRAMES {
        addresses.push(walk.next as usize);
        if walk.step(&mut context).is_none() {
            break;
        }
    }
    addresses
}

/// The state of the walk at one frame.
struct Walk<'a> {
    copy: &'a StackCopy<'a>,
    /// `None` if the value is unknown.
    registers: [Option<u64>; REGISTERS],
    /// The address of the next instruction.
    next: u64,
    /// Whether the frame was interrupted at `next`. Otherwise `next` is a return address, which may
    /// be the first instruction of another function.
    is_exact: bool,
}

impl Walk<'_> {
    /// Moves to the caller's frame. Returns `None` if there is none, or it cannot be found.
    fn step(&mut self, context: &mut UnwindContext<usize>) -> Option<()> {
        let within = self.next - u64::from(!self.is_exact);
        let before = (self.next, self.registers[abi::STACK_POINTER]);
        match with_tables(within, |tables| self.by_table(within, tables, context)) {
            Some(found) => found?,
            None => self.by_frame_pointer()?,
        }
        let now = (self.next, self.registers[abi::STACK_POINTER]);
        (self.next != 0 && now != before).then_some(())
    }

    fn by_table(
        &mut self,
        within: u64,
        tables: &Tables<'_>,
        context: &mut UnwindContext<usize>,
    ) -> Option<()> {
        let Tables {
            bases,
            index,
            frames,
        } = tables;
        let index = EhFrameHdr::from(*index);
        let index = index.parse(bases, 8).ok()?;
        let fde =
            index
                .table()?
                .fde_for_address(frames, bases, within, UnwindSection::cie_from_offset);
        let Ok(fde) = fde else {
            return self.by_frame_pointer();
        };
        let row = fde
            .unwind_info_for_address(frames, bases, context, within)
            .ok()?;
        let expression = |walk: &Self, expression: &UnwindExpression<usize>, first| {
            walk.evaluate(expression.get(frames).ok()?, fde.cie().encoding(), first)
        };
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.register(*register)?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(program) => expression(self, program, None)?,
        };
        let mut callers = self.registers;
        callers[abi::STACK_POINTER] = Some(cfa);
        for (number, value) in callers.iter_mut().enumerate() {
            let rule = row.register(Register(number as u16));
            *value = match rule {
                None | Some(RegisterRule::SameValue) => *value,
                Some(RegisterRule::Undefined) => None,
                Some(RegisterRule::Offset(offset)) => {
                    self.copy.read(cfa.wrapping_add_signed(offset))
                }
                Some(RegisterRule::ValOffset(offset)) => Some(cfa.wrapping_add_signed(offset)),
                Some(RegisterRule::Register(other)) => self.register(other),
                Some(RegisterRule::Expression(program)) => {
                    let address = expression(self, &program, Some(cfa));
                    address.and_then(|address| self.copy.read(address))
                }
                Some(RegisterRule::ValExpression(program)) => expression(self, &program, Some(cfa)),
                Some(RegisterRule::Constant(value)) => Some(value),
                Some(_) => None,
            };
        }
        self.registers = callers;
        self.next = address(self.register(fde.cie().return_address_register())?);
        // A frame that was interrupted by a signal did not call the frame below it.
        self.is_exact = fde.is_signal_trampoline();
        Some(())
    }

    /// Uses the record to which the frame pointer points: the caller's frame pointer, and the
    /// return address.
    fn by_frame_pointer(&mut self) -> Option<()> {
        let record = self.registers[abi::FRAME_POINTER]?;
        let above = record > self.registers[abi::STACK_POINTER]?;
        let callers = self.copy.read(record).filter(|_| above)?;
        let back = self.copy.read(record.wrapping_add(8))?;
        self.registers = [None; REGISTERS];
        self.registers[abi::FRAME_POINTER] = Some(callers);
        self.registers[abi::STACK_POINTER] = Some(record.wrapping_add(16));
        self.registers[abi::RETURN_ADDRESS] = Some(back);
        self.next = address(back);
        self.is_exact = false;
        Some(())
    }

    fn register(&self, register: Register) -> Option<u64> {
        *self.registers.get(usize::from(register.0))?
    }

    /// Evaluates a DWARF expression from the tables.
    fn evaluate(
        &self,
        program: Expression<Slice<'_>>,
        encoding: gimli::Encoding,
        first: Option<u64>,
    ) -> Option<u64> {
        let mut evaluation = program.evaluation(encoding);
        evaluation.set_max_iterations(1_000);
        if let Some(first) = first {
            evaluation.set_initial_value(first);
        }
        let mut state = evaluation.evaluate().ok()?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresMemory {
                    address, size: 8, ..
                } => evaluation.resume_with_memory(Value::Generic(self.copy.read(address)?)),
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(self.register(register)?))
                }
                _ => return None,
            }
            .ok()?;
        }
        match evaluation.as_result().last()?.location {
            gimli::Location::Address { address } => Some(address),
            _ => None,
        }
    }
}

fn address(word: u64) -> u64 {
    word & (u64::MAX >> (64 - abi::ADDRESS_BITS))
}

/// The unwind tables of the program or library that contains an address.
struct Tables<'a> {
    bases: BaseAddresses,
    index: Slice<'a>,
    frames: EhFrame<Slice<'a>>,
}

/// Calls `f` with the tables. They stay valid during the call, because the loader's lock is held.
/// Returns `None` if there are none.
fn with_tables<R>(address: u64, f: impl FnOnce(&Tables<'_>) -> R) -> Option<R> {
    struct Search<F, R> {
        address: u64,
        f: Option<F>,
        result: Option<R>,
    }
    unsafe extern "C" fn look<F: FnOnce(&Tables<'_>) -> R, R>(
        object: *mut libc::dl_phdr_info,
        _: usize,
        search: *mut c_void,
    ) -> libc::c_int {
        // SAFETY: the search belongs to the caller, below. The object belongs to the loader and is
        // valid until this function returns.
        let (search, object) = unsafe { (&mut *search.cast::<Search<F, R>>(), &*object) };
        // SAFETY: as above.
        let tables = unsafe { Tables::of(object, search.address) };
        match tables {
            Found::Elsewhere => 0,
            Found::None => 1,
            Found::Here(tables) => {
                search.result = search.f.take().map(|f| f(&tables));
                1
            }
        }
    }
    fn callback<F: FnOnce(&Tables<'_>) -> R, R>(
        _: &Search<F, R>,
    ) -> unsafe extern "C" fn(*mut libc::dl_phdr_info, usize, *mut c_void) -> libc::c_int {
        look::<F, R>
    }
    let mut search = Search {
        address,
        f: Some(f),
        result: None,
    };
    let look = callback(&search);
    // SAFETY: the callback gets the search for which it was instantiated, and this thread waits for
    // it.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    search.result
}

enum Found<'a> {
    Elsewhere,
    /// The address is in this object, which has no tables.
    None,
    Here(Tables<'a>),
}

impl Tables<'_> {
    /// # Safety
    /// The object is loaded, and stays loaded as long as the tables are used.
    unsafe fn of<'a>(object: &libc::dl_phdr_info, address: u64) -> Found<'a> {
        let base = object.dlpi_addr as usize;
        // SAFETY: the loader provides their address and number.
        let segments = unsafe { slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
        let range = |segment: &libc::Elf64_Phdr| {
            let start = base.wrapping_add(segment.p_vaddr as usize);
            start..start.wrapping_add(segment.p_memsz as usize)
        };
        let loaded = |address: usize| {
            let mut loaded = segments
                .iter()
                .filter(|segment| segment.p_type == libc::PT_LOAD);
            loaded.find(|segment| range(segment).contains(&address))
        };
        if loaded(address as usize).is_none() {
            return Found::Elsewhere;
        }
        let index = segments
            .iter()
            .find(|segment| segment.p_type == libc::PT_GNU_EH_FRAME)
            .map(range);
        let Some(index) = index else {
            return Found::None;
        };
        // SAFETY: the object's header shows that the range is loaded.
        let bytes = unsafe { slice::from_raw_parts(index.start as *const u8, index.len()) };
        let bases = BaseAddresses::default().set_eh_frame_hdr(index.start as u64);
        let parsed = EhFrameHdr::new(bytes, NativeEndian).parse(&bases, 8);
        let Ok(Pointer::Direct(frames)) = parsed.map(|parsed| parsed.eh_frame_ptr()) else {
            return Found::None;
        };
        let Some(segment) = loaded(frames as usize) else {
            return Found::None;
        };
        // The length of the tables is not recorded. They end at the end of their segment at the
        // latest.
        let len = range(segment).end - frames as usize;
        // SAFETY: it is the rest of a loaded segment.
        let rest = unsafe { slice::from_raw_parts(frames as *const u8, len) };
        Found::Here(Tables {
            bases: bases.set_eh_frame(frames),
            index: EndianSlice::new(bytes, NativeEndian),
            frames: EhFrame::new(rest, NativeEndian),
        })
    }
}

/// Returns the functions at these addresses.
pub(super) fn resolve(addresses: &[usize]) -> Vec<Frame> {
    let mut frames = Vec::new();
    for (nth, &address) in addresses.iter().enumerate() {
        let before = frames.len();
        // `backtrace` looks one byte before the given address, to find the call. The interrupted
        // instruction is not preceded by a call.
        let place = address + usize::from(nth == 0);
        backtrace::resolve(place as *mut c_void, |symbol| {
            frames.push(Frame {
                address,
                function: symbol.name().map(|name| format!("{name:#}")),
                file: symbol.filename().map(ToOwned::to_owned),
                line: symbol.lineno(),
            });
        });
        if frames.len() == before {
            frames.push(Frame {
                address,
                function: None,
                file: None,
                line: None,
            });
        }
    }
    frames
}
