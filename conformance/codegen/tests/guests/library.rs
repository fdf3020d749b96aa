//! The guest, which is compiled now.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, PoisonError, RwLock, RwLockReadGuard};

use thalweg_bindgen::{GUESTS, parse};

/// A test that opens all guests that a process can have runs alone.
pub static SLOTS: RwLock<()> = RwLock::new(());

/// The guests of a test that opens a few of them.
pub fn few() -> RwLockReadGuard<'static, ()> {
    SLOTS.read().unwrap_or_else(PoisonError::into_inner)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn folder() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rust-guests");
        fs::create_dir_all(&folder).unwrap();
        let package = parse(&root().join("bindings/c/tests/guests/interface")).unwrap();
        let language = GUESTS.iter().find(|guest| guest.name == "c").unwrap();
        for header in (language.emit)(&package).unwrap() {
            fs::write(folder.join(header.path), header.contents).unwrap();
        }
        folder
    });
    &FOLDER
}

/// Compiles a source with the headers of the guest. Each test has a library of its own, because a library
/// is a guest only once in a process.
fn compile(source: &Path, name: &str, options: &[&str]) -> PathBuf {
    let library = folder().join(format!("libguest_{name}.so"));
    // Another process of this test may have the file open.
    let new = folder().join(format!("{name}-{}", std::process::id()));
    let status = Command::new("cc")
        .args([
            "-std=c11",
            "-D_XOPEN_SOURCE=700",
            "-Wall",
            "-Wextra",
            "-Werror",
        ])
        .args(["-shared", "-fPIC", "-fvisibility=hidden", "-pthread", "-o"])
        .arg(&new)
        .arg("-I")
        .arg(root().join("bindings/c/include"))
        .arg("-I")
        .arg(folder())
        .args(options)
        .arg(source)
        .status()
        .expect("cc can be started");
    assert!(status.success());
    fs::rename(new, &library).unwrap();
    library
}

/// The path of the guest, compiled with these options.
pub fn guest(name: &str, options: &[&str]) -> PathBuf {
    compile(
        &root().join("bindings/c/tests/guests/probe.c"),
        name,
        options,
    )
}

/// A library that is no guest.
pub fn no_guest() -> PathBuf {
    let source = folder().join("none.c");
    fs::write(&source, "int none;\n").unwrap();
    compile(&source, "none", &[])
}

/// The address of a library.
pub fn address(path: &Path) -> String {
    format!("thread:{}", path.display())
}

/// Whether the library is loaded in this process.
pub fn is_loaded(path: &Path) -> bool {
    let path = path.canonicalize().unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .any(|line| line.ends_with(path.to_str().unwrap()))
}

/// Waits until something is so, for a minute at most.
pub fn becomes(what: &str, is: impl Fn() -> bool) {
    for _ in 0..60_000 {
        if is() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("not after a minute: {what}");
}

/// A counter of the guest: `probe_cells`. Keeps the library loaded for ever: the guest's threads are
/// detached, and run some code after they have decremented a counter.
pub fn counter(path: &Path, name: &str) -> impl Fn() -> i64 + use<> {
    // SAFETY: the guest is loaded already, and its initialisers run nothing.
    let library = unsafe { libloading::Library::new(path) }.unwrap();
    let library: &'static libloading::Library = Box::leak(Box::new(library));
    // SAFETY: the counters of the guest are of this type.
    let counter = unsafe { library.get::<*const std::sync::atomic::AtomicI64>(name.as_bytes()) };
    let counter = *counter.unwrap();
    move || {
        // SAFETY: the library stays loaded.
        let counter = unsafe { &*counter };
        counter.load(std::sync::atomic::Ordering::SeqCst)
    }
}
