//! Tests of both kinds of guards.

use corosensei::stack::Stack as _;

use super::child::in_child;
use super::touch;
use crate::stack::guard::Guards;
use crate::stack::{Depot, Magazine, StackError};

const SIZE: usize = 64 << 10;

/// In a child: uses a stack down to its guard, prints a line, and then accesses one byte of the
/// guard.
fn one_byte_too_far(name: &str, guards: Guards) {
    let ended = in_child(name, || {
        let mut magazine = Magazine::new(Depot::apart(SIZE, guards, 100));
        // Not the first stack: its neighbour below is also a stack, whose top must not absorb the
        // access.
        let _below = magazine.take().expect("a stack");
        let stack = magazine.take().expect("a stack");
        let layout = stack.depot.layout();
        let usable = stack.base().get() - stack.limit().get() - layout.guard;
        touch(&stack, (128..=usable).step_by(128));
        println!("used to the last byte");
        touch(&stack, [usable + 1]);
    });
    assert_eq!(ended.signal, Some(libc::SIGSEGV), "{ended:?}");
    assert!(ended.stdout.contains("used to the last byte"), "{ended:?}");
}

#[test]
fn light_guard_faults() {
    if Guards::probed() == Guards::Light {
        one_byte_too_far("guarding::light_guard_faults", Guards::Light);
    }
}

#[test]
fn heavy_guard_faults() {
    one_byte_too_far("guarding::heavy_guard_faults", Guards::Heavy);
}

#[test]
fn heavy_guards_beyond_the_limit_are_an_error_with_the_limit() {
    let mut magazine = Magazine::new(Depot::apart(SIZE, Guards::Heavy, 10));
    let mut stacks: Vec<_> = (0..10)
        .map(|_| magazine.take().expect("within the limit"))
        .collect();
    let error = magazine.take().expect_err("beyond the limit");
    assert!(matches!(error, StackError::Mappings { max: 10 }), "{error}");
    assert!(error.is_retryable());
    assert!(error.to_string().contains("vm.max_map_count"), "{error}");
    // A stack that was returned is handed out again.
    magazine.give(stacks.pop().expect("ten of them"));
    magazine.take().expect("the returned stack");
}

#[test]
fn stack_larger_than_the_address_space_is_an_error() {
    for guards in [Guards::Light, Guards::Heavy] {
        let mut magazine = Magazine::new(Depot::apart(usize::MAX, guards, 10));
        let error = magazine.take().expect_err("larger than the address space");
        assert!(matches!(error, StackError::Memory { .. }), "{error}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn out_of_memory_is_an_error_and_existing_stacks_still_work() {
    let name = "guarding::out_of_memory_is_an_error_and_existing_stacks_still_work";
    let ended = in_child(name, || {
        let mut magazine = Magazine::new(Depot::apart(1 << 20, Guards::probed(), 100));
        let mut stacks = vec![magazine.take().expect("a stack")];
        limit_address_space(64 << 20);
        let error = loop {
            match magazine.take() {
                Ok(stack) => stacks.push(stack),
                Err(error) => break error,
            }
        };
        assert!(error.is_retryable(), "{error}");
        assert!(matches!(error, StackError::Memory { .. }), "{error}");
        // All remaining slots are used, down to the last one.
        assert!((60..80).contains(&stacks.len()), "{}", stacks.len());
        let base = stacks[0].base();
        magazine.give(stacks.swap_remove(0));
        assert_eq!(magazine.take().expect("the returned stack").base(), base);
        println!("behaves as expected");
        std::process::exit(0);
    });
    assert!(ended.stdout.contains("behaves as expected"), "{ended:?}");
}

/// Limits the address space of this process to its current size plus `more` bytes.
#[cfg(target_os = "linux")]
fn limit_address_space(more: u64) {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages = pages.split(' ').next().expect("the size comes first");
    let now = pages.parse::<u64>().expect("a number") * crate::stack::page_size() as u64;
    let limit = libc::rlimit {
        rlim_cur: now + more,
        rlim_max: now + more,
    };
    // SAFETY: rule 6.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

#[test]
fn guard_refused_by_the_system_is_not_retryable() {
    // No guard of either kind may begin within a page.
    let layout = crate::stack::SlotLayout::new(SIZE);
    let budget = crate::stack::guard::Budget::new(1);
    let error = Guards::Light.install(1, layout, &budget);
    assert!(matches!(error, Err(StackError::Guard { .. })), "{error:?}");
    assert!(error.is_err_and(|error| !error.is_retryable()));
}

#[test]
#[cfg(target_os = "linux")]
fn stack_never_gets_a_huge_page() {
    if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        return;
    }
    for guards in [Guards::probed(), Guards::Heavy] {
        let mut magazine = Magazine::new(Depot::apart(4 << 20, guards, 100));
        let stack = magazine.take().expect("a stack");
        assert!(flags_at(stack.base().get() - 1).contains(&"nh".to_owned()));
        touch(&stack, [1, 3 << 20]);
        assert_eq!(super::resident(&stack), 2);
    }
}

/// Returns the kernel's flags of the mapping that contains `address`.
#[cfg(target_os = "linux")]
fn flags_at(address: usize) -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("Linux has it");
    let mut holds = false;
    for line in maps.lines() {
        if let Some((low, high)) = range(line) {
            holds = (low..high).contains(&address);
        } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| holds) {
            return flags.split_whitespace().map(str::to_owned).collect();
        }
    }
    Vec::new()
}

/// Returns the address range in a line that begins a mapping.
#[cfg(target_os = "linux")]
fn range(line: &str) -> Option<(usize, usize)> {
    let (low, high) = line.split_whitespace().next()?.split_once('-')?;
    let number = |text| usize::from_str_radix(text, 16).ok();
    Some((number(low)?, number(high)?))
}

/// Counts mappings in a child: other tests of this process map memory meanwhile.
#[cfg(target_os = "linux")]
fn many_with_light_guards(name: &str, count: usize) {
    if Guards::probed() != Guards::Light {
        return;
    }
    let ended = in_child(name, || {
        let before = super::mappings();
        let mut magazine = Magazine::new(Depot::apart(SIZE, Guards::Light, 0));
        let stacks: Vec<_> = (0..count)
            .map(|_| magazine.take().expect("a stack"))
            .collect();
        for stack in stacks.iter().step_by(stacks.len() / 100) {
            touch(stack, [1, 10_000]);
        }
        let more = super::mappings().saturating_sub(before);
        println!("{count} stacks: {more} mappings");
        // Heavy guards would need two mappings each.
        assert!(more < 200, "too many mappings");
        println!("few enough");
        std::process::exit(0);
    });
    assert!(ended.stdout.contains("few enough"), "{ended:?}");
}

#[test]
#[cfg(target_os = "linux")]
fn hundred_thousand_stacks_are_a_few_mappings() {
    let name = "guarding::hundred_thousand_stacks_are_a_few_mappings";
    many_with_light_guards(name, 100_000);
}

#[test]
#[cfg(target_os = "linux")]
#[ignore = "a second, and 64 GB of address space"]
fn million_stacks_are_a_few_mappings() {
    let name = "guarding::million_stacks_are_a_few_mappings";
    many_with_light_guards(name, 1_000_000);
}
