//! What cannot be opened.

use std::path::Path;
use std::sync::PoisonError;

use thalweg::guest::OpenGuest;
use thalweg::port::ServiceClient;
use thalweg::{Code, Failure};
use thalweg_codegen_tests::guests::changed::ProbeClient as Changed;
use thalweg_codegen_tests::guests::major::ProbeClient as Major;
use thalweg_codegen_tests::guests::probe::ProbeClient;
use thalweg_codegen_tests::guests::stranger::StrangerClient;

use crate::library::{SLOTS, address, becomes, few, guest, is_loaded, no_guest};

fn refusal<C: ServiceClient>(address: &str) -> Failure {
    match C::open(address) {
        Ok(_) => panic!("{address} was opened"),
        Err(why) => why,
    }
}

#[track_caller]
fn refused<C: ServiceClient>(address: &str, code: Code, reason: &str) {
    let why = refusal::<C>(address);
    assert_eq!(why.code, code, "{why}");
    assert!(why.message.contains(reason), "{why}");
}

#[test]
fn wrong_addresses_are_refused() {
    let _few = few();
    for (address, reason) in [
        ("thread:", "has no path"),
        ("thread:/no/such/guest.so", "/no/such/guest.so"),
        ("process:/bin/true", "only guests in the process"),
        ("remote:somewhere", "only guests in the process"),
        ("./libprobe.so", "is not the address of a guest"),
    ] {
        refused::<ProbeClient>(address, Code::Argument, reason);
    }
}

#[test]
fn wrong_libraries_are_refused() {
    let _few = few();
    refused::<ProbeClient>(&address(&no_guest()), Code::Argument, "tw_guest");
    for (option, code, reason) in [
        ("-DPROBE_ABI", Code::Version, "guest abi"),
        ("-DPROBE_REFUSES", Code::Argument, "not today"),
        ("-DPROBE_SILENT", Code::Argument, "serve"),
        ("-DPROBE_TWICE", Code::Argument, "once"),
    ] {
        let path = guest(&format!("wrong{option}"), &[option]);
        refused::<ProbeClient>(&address(&path), code, reason);
        becomes("it is unloaded", || !is_loaded(&path));
    }
}

#[test]
fn incompatible_packages_are_refused() {
    let _few = few();
    let path = guest("incompatible", &[]);
    let at = address(&path);
    let theirs = "thalweg:probe@0.1.0";
    refused::<StrangerClient>(&at, Code::Version, theirs);
    refused::<StrangerClient>(&at, Code::Version, "thalweg:stranger@0.1.0");
    refused::<Major>(&at, Code::Version, theirs);
    refused::<Changed>(&at, Code::Version, theirs);
    refused::<Changed>(&at, Code::Version, "probe.echo");
    // A refusal leaves nothing open.
    becomes("it is unloaded", || !is_loaded(&path));
    assert_eq!(ProbeClient::open(&at).unwrap().add(2).wait(), Ok(2));
}

#[test]
fn sixty_four_guests_are_open_at_most() {
    let _alone = SLOTS.write().unwrap_or_else(PoisonError::into_inner);
    let path = guest("many", &[]);
    let copy = |number: usize| path.with_file_name(format!("libguest_copy{number}.so"));
    let copies: Vec<_> = (0..65).map(copy).collect();
    for copy in &copies {
        std::fs::copy(&path, copy).unwrap();
    }
    let open = |path: &Path| ProbeClient::open(&address(path)).unwrap();
    let mut open: Vec<_> = copies[..64].iter().map(|path| open(path)).collect();
    let last = address(&copies[64]);
    refused::<ProbeClient>(&last, Code::Overloaded, "64 guests are open");
    open.pop();
    assert_eq!(ProbeClient::open(&last).unwrap().add(1).wait(), Ok(1));
}
