//! The services and servers that an nginx can call, and the libraries that it loads for them.

use crate::guests::Guest;
use crate::hosts;
use crate::problem::Problem;

/// What sends a message back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// The lab's service in Rust.
    Service,
    /// The lab's service in another language.
    Guest(Guest),
    /// A library for lua-resty-ffi, by `ngx.load_ffi`.
    LoadFfi(Language),
    /// The server on the Unix socket.
    Socket,
}

/// The language of a library for lua-resty-ffi.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C.
    C,
    /// Go.
    Go,
}

impl Echo {
    /// Its name in the argument `ways` of the page.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Service => "ffi",
            Self::Guest(Guest::C) => "guest_c",
            Self::Guest(Guest::CPort) => "guest_c_port",
            Self::Guest(Guest::Go) => "guest_go",
            Self::LoadFfi(Language::C) => "load_ffi",
            Self::LoadFfi(Language::Go) => "load_ffi_go",
            Self::Socket => "uds",
        }
    }

    /// Whether `libthalweg.so` opens it.
    #[must_use]
    pub const fn is_guest(self) -> bool {
        matches!(self, Self::Guest(_))
    }
}

/// The fields `services` and `runtimes` of the argument of `start` in `echo_benchmark.lua`: the paths or addresses by
/// name. Libraries that are missing are compiled.
pub(super) fn table(echoes: &[Echo], spin: bool) -> Result<String, Problem> {
    let (mut services, mut runtimes) = (Vec::new(), Vec::new());
    for echo in echoes {
        let (fields, path) = match echo {
            Echo::Service => (
                &mut services,
                hosts::library("thalweg-lab")?.display().to_string(),
            ),
            Echo::Guest(guest) => (&mut services, guest.address()?),
            Echo::LoadFfi(Language::C) => {
                (&mut runtimes, hosts::resty_ffi_c()?.display().to_string())
            }
            Echo::LoadFfi(Language::Go) => {
                (&mut runtimes, hosts::resty_ffi_go()?.display().to_string())
            }
            Echo::Socket => continue,
        };
        fields.push(format!(r#"{} = "{path}""#, echo.name()));
    }
    let [services, runtimes] = [services, runtimes].map(|fields| fields.join(", "));
    Ok(format!(
        "services = {{ {services} }}, runtimes = {{ {runtimes} }}, spin = {spin}"
    ))
}
